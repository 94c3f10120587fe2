/** `token test`: whether the API keys work. */
import { Command } from 'commander'
import { diagnoseKey } from '../../upstream/access/diagnose-key.ts'
import {
  addCommonOptions,
  type CommonOptions,
  type Context,
  loadConfigFile,
  print,
} from '../context.ts'
import { withStore } from '../open/open-store.ts'
import { withUpstream } from '../open/open-upstream.ts'
import { findNamed, sanitize } from '../terminal.ts'

interface TokenTestOptions extends CommonOptions {
  account?: string
}

export function tokenCommand(context: Context): Command {
  const test = addCommonOptions(new Command('test'))
    .description('say whether the API keys work, and if not, what to do')
    .option('--account <name>', 'only the key of this account')
    .action((options: TokenTestOptions) => testTokens(context, options))
  return new Command('token').addCommand(test)
}

async function testTokens(context: Context, options: TokenTestOptions): Promise<void> {
  const { config } = loadConfigFile(context, options.config)
  const { accounts } = config
  const chosen = options.account ? [findNamed(accounts, options.account, 'account')] : accounts
  const found = await withStore(config, (store) =>
    withUpstream(config, store, async (upstream) => {
      const diagnoses: { account: string; ok: boolean; lines: string[] }[] = []
      for (const { name } of chosen) {
        const { ok, lines } = await diagnoseKey(upstream.client(name), context.stop)
        diagnoses.push({ account: name, ok, lines })
      }
      return diagnoses
    }),
  )
  print(context, options, {
    json: found,
    lines: () => found.flatMap(({ ok, lines }) => diagnosisLines(context, ok, lines)),
  })
  if (found.some(({ ok }) => !ok)) context.exitCode = 1
}

function diagnosisLines({ terminal }: Context, ok: boolean, lines: string[]): string[] {
  return lines.map((line, index) => {
    const text = sanitize(line, 1_000)
    return index === 0 ? terminal.paint(ok ? 'green' : 'red', text) : `  ${text}`
  })
}
