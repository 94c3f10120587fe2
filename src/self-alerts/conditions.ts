/** Which troubles a snapshot shows; pure. What has not lasted yet is among them, and says how long it must. */
import { conditionId, type Trouble } from './troubles.ts'

/** How Tocsin is doing at one moment, as far as an operator may have to act; handed in by the app. */
export interface Snapshot {
  feeds: FeedHealth[]
  accounts: { name: string; isRefused: boolean }[]
  /** Accounts that left the configuration, and how many of their items are not final. */
  left: { name: string; pending: number }[]
  sinks: SinkHealth[]
  redis: {
    /** Why it may lose events; empty where it may not, or where the operator accepted that. */
    problems: string[]
    /** Beyond the share of its memory from which on nothing more is polled. */
    isFull: boolean
  }
  /** What the conservation laws miss, e.g. `feed brand: 3`; empty: all adds up. */
  unaccounted: string[]
}

interface FeedHealth {
  name: string
  account: string
  lagObjectiveMs: number
  /** By an operator. */
  isPaused: boolean
  /** undefined: never. */
  lastSuccessMs: number | undefined
  lastCaughtUpMs: number | undefined
  /** Why the last poll failed, a word of the service's reasons; left out: it did not, or nobody knows. */
  lastFailure?: string
  /** Half or more of its last page with items could not be read; left out: it could. */
  unreadable?: { sinceMs: number; shown: number; unread: number; problem: string }
  /** Items set aside within a day, and when the last one was; left out: none. */
  quarantined?: { fresh: number; newestMs: number }
  /** What the service answers to what it asks for; left out: it does not refuse that. */
  refused?: { reason: string; sinceMs: number }
  /** Searches that the service still grants, and how many the feed must leave; left out: no reserve. */
  quota?: { remaining: number; reserve: number }
}

export interface SinkHealth {
  name: string
  circuit: 'closed' | 'open' | 'half_open' | 'disabled'
  /** What it answered that means that it is gone. */
  disabled: { reason: string; sinceMs: number } | undefined
  deadLetters: number
  /** By an operator. */
  paused: { reason: string; sinceMs: number } | undefined
  /** When the digest that has not left yet is or was due; left out: no digest, or none waits. */
  digestDueMs?: number
}

/** One trouble that stands. */
export interface Condition extends Trouble {
  /** Names it among all; a sink or feed has at most one of a kind. */
  id: string
  /** When it began, ms; undefined: nobody noted it, so it counts from when it was first seen. */
  sinceMs: number | undefined
  /** How long after that it is said, ms. */
  waitMs: number
  /** How long it must have been seen, ms: what a stop or a pause leaves behind gets time to mend. */
  steadyMs: number
  cause: string | null
  /** Troubles that explain this one: while one of them stands, this one does not begin to be said. */
  coveredBy: string[]
}

interface AlertTiming {
  nowMs: number
  /** `notices.after`. */
  afterMs: number
}

/** A digest may be late by this before anybody is told, ms. */
const digestPatienceMs = 15 * 60_000

/** What a forgotten pause is told after, ms. */
const pausePatienceMs = 24 * 3_600_000

/** The shortest time in which a fresh start shows whether it mends by itself, ms. */
const freshStartMs = 60_000

export function findConditions(snapshot: Snapshot, facing: AlertTiming): Condition[] {
  return [
    ...snapshot.accounts.flatMap(({ name, isRefused }) =>
      isRefused ? [buildCondition({ kind: 'account-refused', name }, { waitMs: 0 })] : [],
    ),
    ...snapshot.left.flatMap((account) => accountLeft(account, facing)),
    ...snapshot.feeds.flatMap((feed) => [
      ...feedStalled(feed, facing),
      ...feedRefused(feed),
      ...quotaAtReserve(feed, facing),
      ...feedUnreadable(feed),
    ]),
    ...snapshot.sinks.flatMap((sink) => sinkConditions(sink, facing)),
    ...storeConditions(snapshot, facing),
  ]
}

/** What left usually goes its way at once; what stays waits for a digest or a sink, or is held. */
function accountLeft(
  { name, pending }: Snapshot['left'][number],
  { afterMs: waitMs }: AlertTiming,
): Condition[] {
  if (pending === 0) return []
  const cause = `${pending} by now`
  return [buildCondition({ kind: 'account-left', name }, { waitMs, cause })]
}

/** Seen from the objective on, said at three times the objective; over once it is within again. */
function feedStalled(feed: FeedHealth, { nowMs, afterMs }: AlertTiming): Condition[] {
  const { name, account, lagObjectiveMs, lastCaughtUpMs } = feed
  const isBehind = lastCaughtUpMs === undefined || nowMs - lastCaughtUpMs > lagObjectiveMs
  if (feed.isPaused || !isBehind) return []
  const waitMs = Math.max(3 * lagObjectiveMs, afterMs)
  const covers = [
    { kind: 'account-refused', name: account },
    { kind: 'feed-refused', name },
    { kind: 'quota-reserve', name },
    { kind: 'redis-full', name: null },
  ] as const
  return [
    buildCondition(
      { kind: 'feed-stalled', name },
      {
        sinceMs: lastCaughtUpMs,
        waitMs,
        steadyMs: waitMs - lagObjectiveMs,
        cause: describeLag(feed, nowMs),
        coveredBy: covers.map(conditionId),
      },
    ),
  ]
}

function describeLag({ lastFailure, lastSuccessMs, lagObjectiveMs }: FeedHealth, nowMs: number) {
  if (lastFailure !== undefined) return `the last poll failed: ${lastFailure}`
  if (lastSuccessMs === undefined) return 'no poll has succeeded yet'
  if (nowMs - lastSuccessMs > lagObjectiveMs) return 'no poll succeeds'
  return 'pages come, yet not the last one: a long backlog, or too small a budget'
}

/** At once: what is lost to sight by then is lost in silence. What is set aside now and then is said once a day. */
function feedUnreadable({ name, unreadable: page, quarantined }: FeedHealth): Condition[] {
  const conditions: Condition[] = []
  if (page !== undefined) {
    const { sinceMs, shown, unread, problem } = page
    const cause = `${unread} of ${shown} items of a page, ${problem}`
    conditions.push(
      buildCondition({ kind: 'feed-unreadable', name }, { sinceMs, waitMs: 0, cause }),
    )
  }
  if (quarantined !== undefined) {
    const cause = `${quarantined.fresh} within a day`
    const coveredBy = [conditionId({ kind: 'feed-unreadable', name })]
    conditions.push(
      buildCondition({ kind: 'items-quarantined', name }, { waitMs: 0, cause, coveredBy }),
    )
  }
  return conditions
}

/** At once: it does not mend by itself. */
function feedRefused({ name, refused }: FeedHealth): Condition[] {
  if (refused === undefined) return []
  const { sinceMs, reason: cause } = refused
  return [buildCondition({ kind: 'feed-refused', name }, { sinceMs, waitMs: 0, cause })]
}

function quotaAtReserve({ name, quota: left }: FeedHealth, { afterMs }: AlertTiming): Condition[] {
  if (left === undefined || left.remaining > left.reserve) return []
  const cause = `${left.remaining} searches remain, ${left.reserve} are reserved`
  return [buildCondition({ kind: 'quota-reserve', name }, { waitMs: afterMs, cause })]
}

function sinkConditions(sink: SinkHealth, facing: AlertTiming): Condition[] {
  const { name, deadLetters } = sink
  const { afterMs: waitMs } = facing
  const conditions = [...sinkDisabled(sink), ...circuitOpen(sink, facing)]
  if (deadLetters > 0) {
    const cause = `${deadLetters} by now`
    conditions.push(buildCondition({ kind: 'dead-letters', name }, { waitMs, cause }))
  }
  return [...conditions, ...pausedLong(sink, facing), ...digestOverdue(sink, facing)]
}

/** At once: it does not mend by itself. */
function sinkDisabled({ name, disabled: mark }: SinkHealth): Condition[] {
  if (mark === undefined) return []
  const cause = `${mark.reason || 'gone'}; until an operator acts, nothing is sent to it`
  return [
    buildCondition({ kind: 'sink-disabled', name }, { sinceMs: mark.sinceMs, waitMs: 0, cause }),
  ]
}

/** Stands while the sink is disabled, too: what was said of it is not over then. */
function circuitOpen({ name, circuit }: SinkHealth, { afterMs: waitMs }: AlertTiming): Condition[] {
  if (circuit === 'closed') return []
  const coveredBy = [conditionId({ kind: 'sink-disabled', name })]
  return [buildCondition({ kind: 'circuit-open', name }, { waitMs, coveredBy })]
}

function pausedLong({ name, paused }: SinkHealth, { afterMs }: AlertTiming): Condition[] {
  if (paused === undefined) return []
  const waitMs = Math.max(pausePatienceMs, afterMs)
  const { sinceMs, reason: cause } = paused
  return [buildCondition({ kind: 'sink-paused', name }, { sinceMs, waitMs, steadyMs: 0, cause })]
}

function digestOverdue(
  { name, digestDueMs }: SinkHealth,
  { nowMs, afterMs }: AlertTiming,
): Condition[] {
  if (digestDueMs === undefined || digestDueMs >= nowMs) return []
  const covers = [
    { kind: 'sink-paused', name },
    { kind: 'circuit-open', name },
    { kind: 'sink-disabled', name },
  ] as const
  return [
    buildCondition(
      { kind: 'digest-overdue', name },
      {
        sinceMs: digestDueMs,
        waitMs: Math.max(digestPatienceMs, afterMs),
        steadyMs: freshStartMs,
        coveredBy: covers.map(conditionId),
      },
    ),
  ]
}

function storeConditions(
  { redis, unaccounted }: Snapshot,
  { afterMs: waitMs }: AlertTiming,
): Condition[] {
  const conditions: Condition[] = []
  if (redis.problems.length > 0) {
    const cause = redis.problems.join('; ')
    conditions.push(buildCondition({ kind: 'redis-unsafe', name: null }, { waitMs, cause }))
  }
  if (redis.isFull) conditions.push(buildCondition({ kind: 'redis-full', name: null }, { waitMs }))
  if (unaccounted.length > 0) {
    const cause = unaccounted.join(', ')
    conditions.push(buildCondition({ kind: 'unaccounted', name: null }, { waitMs, cause }))
  }
  return conditions
}

function buildCondition(
  trouble: Trouble,
  more: Partial<Omit<Condition, keyof Trouble | 'id'>> & { waitMs: number },
): Condition {
  const defaults = { sinceMs: undefined, steadyMs: more.waitMs, cause: null, coveredBy: [] }
  return { ...trouble, id: conditionId(trouble), ...defaults, ...more }
}
