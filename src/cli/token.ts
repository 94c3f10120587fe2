import { Command } from 'commander'
import { diagnoseKey, type Diagnosis } from '../service/diagnose-key.ts'
import { findNamed } from './command-error.ts'
import { loadConfigFile } from './config-file.ts'
import { addCommonOptions, print, type CommonOptions, type Context } from './context.ts'
import { withLedger } from './open-ledger.ts'
import { withService } from './with-service.ts'
import { harmless } from './words.ts'

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
  const found = await withLedger(config, (ledger) =>
    withService(config, ledger, async (service) => {
      const diagnoses: (Diagnosis & { account: string })[] = []
      for (const { name } of chosen) {
        const diagnosis = await diagnoseKey(service.client(name), context.stop)
        diagnoses.push({ account: name, ...diagnosis })
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
    const text = harmless(line, 1_000)
    return index === 0 ? terminal.paint(ok ? 'green' : 'red', text) : `  ${text}`
  })
}
