/** No test fails because the machine is slow: none says how long something may take at most. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'

const folder = join(import.meta.dirname, '..')
const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((file) =>
  /\.test\.ts$|^support.*\.ts$/.test(file),
)

test.each([
  [
    'a span is measured',
    /expect\((?:performance\.now|\w+\.monotonic|Date\.now|cpuMs)\(\) - [\w.!]+\)\s*\.toBeLessThan/g,
  ],
  ['time of the processor is measured', /expect\([^;]{0,60}cpuUsage\([^;]{0,60}toBeLessThan/gi],
  ['a wait ends within ten seconds', /\buntil\([^\n]*, (?:\d_)?\d{3}\)/g],
])('%s by no expectation that a slow machine breaks', (_what, bound) => {
  const found = files.flatMap((file) =>
    (readFileSync(join(folder, file), 'utf8').match(bound) ?? []).map((text) => `${file}: ${text}`),
  )
  expect(found).toEqual([])
})
