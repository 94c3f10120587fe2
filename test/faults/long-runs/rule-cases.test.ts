/** Every case of the alert rules against all of them, as an operator runs promtool. */
import { expect, test } from 'vitest'
import { prometheusFolder, promtool, ruleTestFiles } from '../../support/alert-rules.ts'
import { installByApt, isInstalled } from '../../support/tools.ts'

test.skipIf(!isInstalled('promtool', installByApt('prometheus')))(
  'promtool finds every case as it says',
  async () => {
    const files = ruleTestFiles()
    const said = await promtool(prometheusFolder, 'test', 'rules', ...files)
    expect(said.match(/SUCCESS/g)).toHaveLength(files.length)
  },
  400_000,
)
