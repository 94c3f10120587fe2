/** Whether all is well: in one sentence, then what is not, worst first, and the sums of a day. */
import type { Config } from '../config/config.ts'
import { formatList, pluralize } from '../lib/errors.ts'
import type { Redis } from '../redis/client.ts'
import type { StoreError } from '../redis/health.ts'
import { createKeys } from '../redis/keys.ts'
import { redisNow } from '../redis/scripts.ts'
import { readSilenceMs } from '../store/account-ledger.ts'
import { openLeftLedgers, readAccounting } from '../store/accounts.ts'
import type { DatedCount } from '../store/history/dated-counts.ts'
import { createReport, type ReportSum } from '../store/history/report.ts'
import { type Finding, isProblem, runProbes } from './probes/probe.ts'
import { judgeDaemon } from './problems.ts'
import {
  layoutProbe,
  ledgerProbe,
  lossProbe,
  redisMemoryProbe,
  safetyProbe,
  serverProbe,
  unreachableFinding,
} from './probes/redis-probes.ts'
import { formatIsoTime } from './reports/columns.ts'
import { addCounts, isForPeopleIn, sumJson } from './reports/report.ts'

export type Level = 'well' | 'degraded' | 'broken'

export interface Status {
  level: Level
  sentence: string
  /** Problems and warnings, the worst first. */
  findings: Finding[]
  /** undefined: Redis is not reached, or holds the ledger of another version. */
  lastDay: LastDay | undefined
}

/** The last 24 hours of the clock, of which the running one is the last. */
export interface LastDay {
  sum: ReportSum
  /** undefined: there was none. */
  criticals: ReportSum | undefined
  /** Items that the counters of all time cannot account for. */
  lost: number
  /** Each of them: events seen, by severity. */
  hours: { atMs: number; seen: Map<string, number> }[]
}

interface StatusQuery {
  /** Of these alone; left out: all. */
  accounts?: readonly string[] | undefined
  /** Nothing of what all accounts share, Redis and the state of sinks among it. */
  isRestricted?: boolean
  stop: AbortSignal
}

/** Reads all from Redis and asks nobody else. Throws StoreError. */
export async function readStatus(
  redis: Redis,
  config: Config,
  { accounts, isRestricted = false, stop }: StatusQuery,
): Promise<Status> {
  const needs = { redis, config, accounts, isRestricted }
  const found = await runProbes(isRestricted ? [ledgerProbe] : probes, needs, stop)
  const keys = createKeys(config.redis.prefix)
  const isJudged = isRestricted || found.some(({ check }) => check === 'daemon')
  const daemon = isJudged ? [] : judgeDaemon(await readSilenceMs(redis, keys))
  const isForeign = found.some((one) => one.check === layoutProbe.name && isProblem(one))
  const lastDay = isForeign ? undefined : await readLastDay(redis, config, accounts)
  return summarize(config, { findings: [...found, ...daemon], lastDay }, accounts)
}

const probes = [serverProbe, safetyProbe, redisMemoryProbe, lossProbe, layoutProbe, ledgerProbe]

/** The status where Redis is not reached. */
export function unreachableStatus(error: StoreError, config: Config): Status {
  const seen = { findings: [unreachableFinding(error, config)], lastDay: undefined }
  return summarize(config, seen, undefined)
}

function summarize(
  config: Config,
  { findings, lastDay }: Pick<Status, 'findings' | 'lastDay'>,
  accounts: readonly string[] | undefined,
): Status {
  const bad = findings.filter(({ status }) => status !== 'ok')
  const sorted = bad.toSorted((one, other) => rankOf(one) - rankOf(other))
  const level = judge(config, sorted, accounts)
  return { level, sentence: sentence(config, sorted, accounts), findings: sorted, lastDay }
}

async function readLastDay(
  redis: Redis,
  config: Config,
  accounts: readonly string[] | undefined,
): Promise<LastDay> {
  const keys = createKeys(config.redis.prefix)
  const all = await openLeftLedgers({ redis, keys, config: config.ledger }, [])
  const ledgers = all.filter((one) => accounts?.includes(one.account) ?? true)
  const toMs = await redisNow({ redis })
  const isForPeople = isForPeopleIn(config)
  const report = createReport({ by: 'severity', isForPeople })
  const hours = createHours(toMs)
  const add = (counts: readonly DatedCount[]): void => {
    report.add(counts)
    hours.add(counts)
  }
  await addCounts({ add }, ledgers, { by: 'hour', fromMs: toMs - 23 * hourMs, toMs })
  const accountings = await Promise.all(ledgers.map((one) => readAccounting(one)))
  const parts = accountings.flatMap(({ feeds, sinks }) => [
    ...Object.values(feeds),
    ...Object.values(sinks),
  ])
  return {
    sum: report.total(),
    criticals: report.rows().find(({ name }) => name === 'critical'),
    lost: parts.reduce((lost, { unaccounted }) => lost + Math.abs(unaccounted), 0),
    hours: hours.list,
  }
}

const hourMs = 3_600_000

function createHours(nowMs: number): {
  list: LastDay['hours']
  add(counts: readonly DatedCount[]): void
} {
  const lastMs = Math.floor(nowMs / hourMs) * hourMs
  const list = Array.from({ length: 24 }, (_one, at) => ({
    atMs: lastMs - (23 - at) * hourMs,
    seen: new Map<string, number>(),
  }))
  const byTime = new Map(list.map((hour) => [hour.atMs, hour.seen]))
  return {
    list,
    add(counts) {
      for (const one of counts) {
        const seen = one.kind === 'event' ? byTime.get(one.atMs) : undefined
        if (seen && one.kind === 'event')
          seen.set(one.severity, (seen.get(one.severity) ?? 0) + one.count)
      }
    },
  }
}

/** What stops everything, or puts the account of everything in doubt, the worst first. */
const breaking = ['redis', 'redis layout', 'redis safety', 'redis ledger', 'redis memory', 'daemon']
const doubting = ['accounting', 'ledger']

/** Problems before warnings; among them in this order. */
const order = [...breaking, ...doubting, 'account', 'delivery', 'feed']

function rankOf(finding: Finding): number {
  const at = order.indexOf(finding.check)
  return (isProblem(finding) ? 0 : order.length + 1) + (at === -1 ? order.length : at)
}

function judge(
  config: Config,
  bad: readonly Finding[],
  accounts: readonly string[] | undefined,
): Level {
  const problems = bad.filter(isProblem)
  if (problems.length === 0) return 'well'
  if (problems.some(({ check }) => [...breaking, ...doubting].includes(check))) return 'broken'
  const stopped = (check: string): Set<string> =>
    new Set(
      problems.filter((one) => one.check === check && one.stops).map(({ subject }) => subject),
    )
  const [refused, feeds, sinks] = [stopped('account'), stopped('feed'), stopped('delivery')]
  const own = config.feeds.filter((feed) => accounts?.includes(feed.account) ?? true)
  const isRead = own.some((feed) => !refused.has(feed.account) && !feeds.has(feed.name))
  const isSent = config.sinks.some(({ name }) => !sinks.has(name))
  return isRead && isSent ? 'degraded' : 'broken'
}

const nouns: Readonly<Record<string, string>> = {
  account: 'account',
  feed: 'feed',
  delivery: 'sink',
}

/** `problems with 1 account, 2 sinks, and 3 warnings`. */
function sentence(
  config: Config,
  bad: readonly Finding[],
  accounts: readonly string[] | undefined,
): string {
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
    things.filter((thing) => accounts?.includes(thing.account) ?? true)
  const all = [
    accounts?.length === 1
      ? (accounts[0] ?? '')
      : pluralize((accounts ?? config.accounts).length, 'account'),
    pluralize(own(config.feeds).length, 'feed'),
    ...(accounts === undefined ? [pluralize(config.sinks.length, 'sink')] : []),
  ]
  // what a sink gave up is of all accounts
  const given =
    accounts === undefined
      ? 'nothing is late, refused, paused or given up'
      : 'nothing is late or refused'
  const well = minor === '' ? given : 'no problem'
  return `${all.join(', ')}: ${well}${minor}`
}

/** Severities as counts and plots name them, the worst first. */
export const countedSeverities = ['critical', 'high', 'medium', 'low', 'info', 'unknown'] as const

export type SeverityCounts = Record<(typeof countedSeverities)[number], number>

export function severityCounts(counts: ReadonlyMap<string, number>): SeverityCounts {
  return Object.fromEntries(
    countedSeverities.map((word) => [word, counts.get(word) ?? 0]),
  ) as SeverityCounts
}

/** null: nobody was told, or only after more than a day. */
function secondsOf(bound: number | undefined): number | null {
  return bound === undefined || bound === Infinity ? null : bound
}

/** The answer of `status --output json`, of the API and of the page. */
export interface StatusJson {
  status: Level
  sentence: string
  /** null: Redis is not reached. */
  last_24h: Record<string, unknown> | null
  hours: ({ at: string | null } & SeverityCounts)[]
  findings: Finding[]
}

export function statusJson({ level, sentence: said, findings, lastDay }: Status): StatusJson {
  return {
    status: level,
    sentence: said,
    last_24h: lastDay
      ? {
          ...sumJson(lastDay.sum),
          lost: lastDay.lost,
          criticals_told: lastDay.criticals?.toPeople?.events ?? 0,
          slowest_critical_s: secondsOf(lastDay.criticals?.toPeople?.worstS),
        }
      : null,
    hours: (lastDay?.hours ?? []).map(({ atMs, seen }) => ({
      at: formatIsoTime(atMs),
      ...severityCounts(seen),
    })),
    findings,
  }
}
