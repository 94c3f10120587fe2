/** `status`: whether all is well, in one sentence, and then only what is not, the worst first. */
import { Command } from 'commander'
import type { Config } from '../../config/config.ts'
import { StoreError } from '../../redis/health.ts'
import { createKeys } from '../../redis/keys.ts'
import { redisNow } from '../../redis/scripts.ts'
import { readSilenceMs } from '../../store/account-ledger.ts'
import { openLeftLedgers, readAccounting } from '../../store/accounts.ts'
import { createReport, type ReportSum } from '../../store/report.ts'
import type { Redis } from '../../redis/connection.ts'
import {
  addCommonOptions,
  type CommonOptions,
  type Context,
  loadConfigFile,
  print,
} from '../context.ts'
import { addAccountOption } from '../list.ts'
import { withRedis } from '../open/open-store.ts'
import { addWideOption, type WideOption } from '../options.ts'
import { judgeDaemon } from '../../daemon/for-commands/problems.ts'
import { type Finding, findingLine, isProblem, runProbes } from '../set-up/probe.ts'
import { probes } from '../set-up/probes.ts'
import { layoutProbe, unreachableFinding } from '../set-up/redis-probes.ts'
import { formatList } from '../../lib/errors.ts'
import { findNamed, pluralize } from '../terminal.ts'
import { addCounts, boundsOf, isForPeopleIn, sumJson, sumText } from './report.ts'

interface StatusOptions extends CommonOptions, WideOption {
  account?: string
}

export function statusCommand(context: Context): Command {
  return addAccountOption(addWideOption(addCommonOptions(new Command('status'))))
    .addHelpText('after', help)
    .action((options: StatusOptions) => status(context, options))
}

const help = `
Exits 0 where all is well, also with warnings; 1 where something has a problem;
2 where nothing is polled or sent, or the ledger does not add up. A mistake in
the command exits 2 as well.`

type Level = 'well' | 'degraded' | 'broken'

const exitCodes: Record<Level, number> = { well: 0, degraded: 1, broken: 2 }

/** The last 24 hours; undefined: Redis is not reached. */
interface LastDay {
  sum: ReportSum
  /** Undefined: there was none. */
  criticals: ReportSum | undefined
  /** Items that the counters of all time cannot account for. */
  lost: number
}

async function status(context: Context, options: StatusOptions): Promise<void> {
  const { config } = loadConfigFile(context, options.config)
  const { account } = options
  if (account !== undefined) findNamed(config.accounts, account, 'account')
  const { findings, lastDay } = await look(config, account, context.stop)
  const bad = findings.filter(({ status: one }) => one === 'problem' || one === 'warning')
  const sorted = bad.toSorted((one, other) => rankOf(one) - rankOf(other))
  const level = judge(config, sorted, account)
  print(context, options, {
    json: {
      status: level,
      last_24h: lastDay && { ...sumJson(lastDay.sum), lost: lastDay.lost },
      findings: sorted,
    },
    lines: () => [
      context.terminal.paint(styles[level], level) + `: ${sentence(config, sorted, account)}`,
      ...(lastDay ? [dayLine(lastDay)] : []),
      ...listed(context, sorted, options.wide === true),
    ],
  })
  context.exitCode = exitCodes[level]
}

const styles = { well: 'green', degraded: 'yellow', broken: 'red' } as const

interface Seen {
  findings: Finding[]
  lastDay: LastDay | undefined
}

async function look(config: Config, account: string | undefined, stop: AbortSignal): Promise<Seen> {
  try {
    return await withRedis(config.redis, async (redis) => {
      const needs = { redis, config, account }
      const found = await runProbes([...probes.redisServer, ...probes.redis], needs, stop)
      const keys = createKeys(config.redis.prefix)
      const isJudged = found.some(({ check }) => check === 'daemon')
      const daemon = isJudged ? [] : judgeDaemon(await readSilenceMs(redis, keys))
      const isForeign = found.some((one) => one.check === layoutProbe.name && isProblem(one))
      return {
        findings: [...found, ...daemon],
        lastDay: isForeign ? undefined : await readLastDay(redis, config, account),
      }
    })
  } catch (error) {
    if (!(error instanceof StoreError)) throw error
    return { findings: [unreachableFinding(error, config)], lastDay: undefined }
  }
}

async function readLastDay(
  redis: Redis,
  config: Config,
  account: string | undefined,
): Promise<LastDay> {
  const keys = createKeys(config.redis.prefix)
  const all = await openLeftLedgers({ redis, keys, config: config.ledger }, [])
  const ledgers = all.filter((one) => account === undefined || one.account === account)
  const toMs = await redisNow({ redis })
  const isForPeople = isForPeopleIn(config)
  const report = createReport({ by: 'severity', isForPeople })
  await addCounts(report, ledgers, { by: 'hour', fromMs: toMs - 24 * 3_600_000, toMs })
  const accountings = await Promise.all(ledgers.map((one) => readAccounting(one)))
  const parts = accountings.flatMap(({ feeds, sinks }) => [
    ...Object.values(feeds),
    ...Object.values(sinks),
  ])
  return {
    sum: report.total(),
    criticals: report.rows().find(({ name }) => name === 'critical'),
    lost: parts.reduce((lost, { unaccounted }) => lost + Math.abs(unaccounted), 0),
  }
}

/** What stops everything, or puts the account of everything in doubt, the worst first. */
const breaking = ['redis', 'redis layout', 'redis safety', 'redis ledger', 'redis memory', 'daemon']
const doubting = ['accounting', 'audit', 'ledger']

/** Problems before warnings; among them in this order. */
const order = [...breaking, ...doubting, 'account', 'delivery', 'feed']

function rankOf(finding: Finding): number {
  const at = order.indexOf(finding.check)
  return (isProblem(finding) ? 0 : order.length + 1) + (at === -1 ? order.length : at)
}

function judge(config: Config, bad: readonly Finding[], account: string | undefined): Level {
  const problems = bad.filter(isProblem)
  if (problems.length === 0) return 'well'
  if (problems.some(({ check }) => [...breaking, ...doubting].includes(check))) return 'broken'
  const stopped = (check: string): Set<string> =>
    new Set(
      problems.filter((one) => one.check === check && one.stops).map(({ subject }) => subject),
    )
  const [accounts, feeds, sinks] = [stopped('account'), stopped('feed'), stopped('delivery')]
  const own = config.feeds.filter((feed) => account === undefined || feed.account === account)
  const isRead = own.some((feed) => !accounts.has(feed.account) && !feeds.has(feed.name))
  const isSent = config.sinks.some(({ name }) => !sinks.has(name))
  return isRead && isSent ? 'degraded' : 'broken'
}

const nouns: Readonly<Record<string, string>> = {
  account: 'account',
  feed: 'feed',
  delivery: 'sink',
  audit: 'audit',
}

/** `problems with 1 account, 2 sinks, and 3 warnings`. */
function sentence(config: Config, bad: readonly Finding[], account: string | undefined): string {
  const problems = Map.groupBy(bad.filter(isProblem), ({ check }) => check)
  const warnings = bad.filter((one) => !isProblem(one)).length
  const minor = warnings === 0 ? '' : `, and ${pluralize(warnings, 'warning')}`
  if (problems.size > 0) {
    const others = [...problems].filter(([check]) => check !== 'daemon')
    const named = others.map(([check, some]) => {
      const noun = nouns[check]
      const subjects = new Set(some.map(({ subject }) => subject)).size
      return noun === undefined ? check : pluralize(subjects, noun)
    })
    const parts = [
      ...(problems.has('daemon') ? ['no daemon runs'] : []),
      ...(named.length === 0 ? [] : [`problems with ${formatList(named)}`]),
    ]
    return `${parts.join('; ')}${minor}`
  }
  const own = <Thing extends { account: string }>(things: readonly Thing[]): Thing[] =>
    things.filter((thing) => account === undefined || thing.account === account)
  const all = [
    account ?? pluralize(config.accounts.length, 'account'),
    pluralize(own(config.feeds).length, 'feed'),
    ...(account === undefined ? [pluralize(config.sinks.length, 'sink')] : []),
  ]
  const well = minor === '' ? 'nothing is late, refused, paused or given up' : 'no problem'
  return `${all.join(', ')}: ${well}${minor}`
}

function dayLine({ sum, criticals, lost }: LastDay): string {
  const slowest = criticals?.toPeople && boundsOf(criticals.toPeople).at(-1)
  const told = slowest === undefined ? '' : `; slowest critical to people ${slowest}`
  return `last 24 h: ${sumText(sum)}, ${lost} lost${told}`
}

/** So many are listed where they are more than a screen. */
const listedAtMost = 20

function listed({ terminal }: Context, bad: readonly Finding[], isWide: boolean): string[] {
  const shown = isWide ? bad : bad.slice(0, listedAtMost)
  const rest = bad.length - shown.length
  const lines = shown.map((one) => findingLine(terminal, one))
  return rest === 0 ? lines : [...lines, `and ${rest} more: --wide lists them`]
}
