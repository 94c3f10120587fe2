/** `status`: whether all is well, in one sentence, and then only what is not, the worst first. */
import { Command } from 'commander'
import type { Config } from '../../config/config.ts'
import { StoreError } from '../../redis/health.ts'
import { boundsOf, sumText } from '../../operator/reports/report.ts'
import {
  type LastDay,
  type Level,
  readStatus,
  statusJson,
  type Status,
  unreachableStatus,
} from '../../operator/status.ts'
import {
  addCommonOptions,
  type CommonOptions,
  type Context,
  loadConfigFile,
  print,
} from '../context.ts'
import { findingLine } from '../finding-line.ts'
import { addAccountOption } from '../list.ts'
import { withRedis } from '../open/open-store.ts'
import { findNamed } from '../terminal.ts'

interface StatusOptions extends CommonOptions {
  account?: string
}

export function statusCommand(context: Context): Command {
  return addAccountOption(addCommonOptions(new Command('status')))
    .addHelpText('after', help)
    .action((options: StatusOptions) => status(context, options))
}

const help = `
Exits 0 where all is well, also with warnings. Exits 1 where something has a
problem. Exits 2 where nothing is polled or sent, the ledger does not add up,
or the command has a mistake.`

const exitCodes: Record<Level, number> = { well: 0, degraded: 1, broken: 2 }

async function status(context: Context, options: StatusOptions): Promise<void> {
  const { config } = loadConfigFile(context, options.config)
  const { account } = options
  if (account !== undefined) findNamed(config.accounts, account, 'account')
  const accounts = account === undefined ? undefined : [account]
  const found = await look(config, accounts, context.stop)
  const { level, sentence, findings, lastDay } = found
  print(context, options, {
    json: statusJson(found),
    lines: () => [
      context.terminal.paint(styles[level], level) + `: ${sentence}`,
      ...(lastDay ? [dayLine(lastDay)] : []),
      ...findings.map((one) => findingLine(context.terminal, one)),
    ],
  })
  context.exitCode = exitCodes[level]
}

const styles = { well: 'green', degraded: 'yellow', broken: 'red' } as const

async function look(
  config: Config,
  accounts: readonly string[] | undefined,
  stop: AbortSignal,
): Promise<Status> {
  try {
    return await withRedis(config.redis, (redis) => readStatus(redis, config, { accounts, stop }))
  } catch (error) {
    if (error instanceof StoreError) return unreachableStatus(error, config)
    throw error
  }
}

function dayLine({ sum, criticals, lost }: LastDay): string {
  const slowest = criticals?.toPeople && boundsOf(criticals.toPeople).at(-1)
  const told = slowest === undefined ? '' : `; slowest critical to people ${slowest}`
  return `last 24 h: ${sumText(sum)}, ${lost} lost${told}`
}
