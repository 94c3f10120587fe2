/** What the commands that ask the service share: their options, the account, its client, the turn. */
import { Option, type Command } from 'commander'
import type { Config } from '../../config/config.ts'
import { systemClock } from '../../runtime/clock.ts'
import type { ServiceClient } from '../../service/client.ts'
import type { Asked } from '../../service/operations/operation.ts'
import { CommandError, findNamed } from '../command-error.ts'
import { loadConfigFile } from '../config-file.ts'
import type { Context } from '../context.ts'
import { withLedger, type OpenLedger } from '../open-ledger.ts'
import { withService } from '../with-service.ts'

export interface ServiceOptions {
  config?: string
  account?: string
  output: OutputForm
}

/** `text`: a table for people; the others for machines, all of them with every field. */
export type OutputForm = 'text' | 'json' | 'ndjson' | 'csv'

export function addServiceOptions(
  command: Command,
  forms: readonly OutputForm[] = ['text', 'json', 'ndjson', 'csv'],
): Command {
  return command
    .option('--config <file>', 'the configuration (default: config/tocsin.yaml, then tocsin.yaml)')
    .option('--account <name>', 'whose key is used; may be left out where there is only one')
    .addOption(
      new Option('--output <form>', 'for people or for machines').choices(forms).default('text'),
    )
}

export interface OpenService {
  config: Config
  ledger: OpenLedger
  /** The name of the one whose key is used. */
  account: string
  client: ServiceClient
  /** In whose name the next request takes its turn: after the feeds, or one slot in ten. */
  asked: () => Asked
}

/**
 * Under the same limits as the running daemon's requests, which Redis keeps. Throws ConfigError,
 * CommandError, StoreError, and whatever `work` throws.
 */
export async function withClient<Result>(
  context: Context,
  options: Pick<ServiceOptions, 'config' | 'account'>,
  work: (service: OpenService) => Promise<Result>,
): Promise<Result> {
  const { config } = loadConfigFile(context, options.config)
  const account = accountOf(config, options.account)
  const asked = (): Asked => ({
    turn: { kind: 'command', name: 'command', dueSinceMs: systemClock.now() },
    signal: context.stop,
  })
  return withLedger(config, (ledger) =>
    withService(config, ledger, (service) =>
      work({ config, ledger, account, client: service.client(account), asked }),
    ),
  )
}

function accountOf({ accounts }: Config, named: string | undefined): string {
  if (named !== undefined) return findNamed(accounts, named, 'account').name
  const [only, ...others] = accounts
  if (only !== undefined && others.length === 0) return only.name
  const names = accounts.map(({ name }) => name).join(', ')
  throw new CommandError('mistake', `say whose key to use, with --account: there are ${names}`)
}
