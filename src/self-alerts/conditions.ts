/**
 * Derives the troubles that a snapshot shows, those included that have not lasted long enough yet:
 * each says how long it must last. Pure.
 */
import { formatTrouble, type Trouble } from '../lib/trouble.ts'
import { describeLoss, type LedgerLoss } from '../store/account-ledger.ts'
import { conditionId, type TroubleName, type TroubleKind } from './troubles.ts'

/** How Tocsin is doing at one moment, as far as an operator may have to act. */
export interface Snapshot {
  /** When its reading began, ms. */
  atMs: number
  feeds: FeedHealth[]
  /** `trouble`: why the key is refused; left out: it is not. */
  accounts: { name: string; trouble?: Trouble | undefined }[]
  /** Accounts that left the configuration, and how many of their items are not final. */
  left: { name: string; pending: number }[]
  sinks: SinkHealth[]
  redis: {
    /** Why Redis may lose events; empty if it may not, or if the operator accepted that. */
    problems: string[]
    /** Redis uses more than the share of its memory beyond which polling stops. */
    isFull: boolean
    /** Left out: none within a day. */
    loss?: LedgerLoss
  }
  /** What the accounting misses, e.g. `feed brand: 3`; empty: everything adds up. */
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
  /** Why it cannot be read; left out: the last poll did not fail. */
  trouble?: Trouble | undefined
  /** At least half of its last page with items could not be read; left out: it could. */
  unreadable?: { sinceMs: number; shown: number; unread: number; problem: string }
  /** Items quarantined within a day, and when the last one was; left out: none. */
  quarantined?: { fresh: number; newestMs: number }
  /** The feed's request is refused upstream; left out: it is not. */
  refused?: { reason: string; sinceMs: number }
  /** Searches that remain upstream, and how many the feed must leave; left out: no reserve. */
  quota?: { remaining: number; reserve: number }
}

export interface SinkHealth {
  name: string
  circuit: 'closed' | 'open' | 'half_open' | 'disabled'
  /** The answer that means that the sink is gone. */
  disabled: { reason: string; sinceMs: number } | undefined
  deadLetters: number
  /** By an operator. */
  paused: { reason: string; sinceMs: number } | undefined
  /** When the unsent digest is or was due; left out: no digest, or none waits. */
  digestDueMs?: number
  /** What is in the way since its last success; left out: nothing. */
  trouble?: Trouble | undefined
  /** Items that wait for it. */
  pending?: number
  /** Who gets what this one cannot be sent, in words; left out: it takes messages. */
  relief?: string | undefined
}

/** A trouble that exists now. */
export interface Condition extends TroubleName {
  /** Unique among all conditions; a sink or feed has at most one of a kind. */
  id: string
  /** When it began, ms; undefined: not recorded, so it counts from when it was first seen. */
  sinceMs: number | undefined
  /** How long it must last before it is alerted, ms. */
  waitMs: number
  /** How long it must have been seen, ms: after a stop or a pause it gets time to recover. */
  steadyMs: number
  cause: string | null
  /**
   * Conditions that explain this one: while one of them stands, the begin of this one is not
   * alerted.
   */
  coveredBy: string[]
}

interface AlertTiming {
  nowMs: number
  /** The configuration's `self_alerts.after`. */
  afterMs: number
}

/** How late a digest may be before it is alerted, ms. */
const digestPatienceMs = 15 * 60_000

/** After how long a pause counts as forgotten, ms. */
const pausePatienceMs = 24 * 3_600_000

/** How long a fresh start gets to recover by itself, ms. */
const freshStartMs = 60_000

export function findConditions(snapshot: Snapshot, facing: AlertTiming): Condition[] {
  return [
    ...snapshot.accounts.flatMap((account) => accountRefused(account, facing)),
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

/** Alerted at once: it does not recover by itself. */
function accountRefused(
  { name, trouble }: Snapshot['accounts'][number],
  { nowMs }: AlertTiming,
): Condition[] {
  if (trouble === undefined) return []
  const cause = formatTrouble(trouble, nowMs)
  return [buildCondition({ kind: 'account-refused', name }, { waitMs: 0, cause })]
}

/**
 * Items of an account that left are usually delivered at once; the rest waits for a digest or a
 * sink, or is held.
 */
function accountLeft(
  { name, pending }: Snapshot['left'][number],
  { afterMs: waitMs }: AlertTiming,
): Condition[] {
  if (pending === 0) return []
  const cause = `${pending} by now`
  return [buildCondition({ kind: 'account-left', name }, { waitMs, cause })]
}

/**
 * Seen from the lag objective on, alerted at three times the objective; over once the lag is within
 * it again.
 */
function feedStalled(feed: FeedHealth, { nowMs, afterMs }: AlertTiming): Condition[] {
  const { name, account, lagObjectiveMs, lastCaughtUpMs } = feed
  if (!isStalled(feed, nowMs)) return []
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

function isStalled(
  { isPaused, lastCaughtUpMs, lagObjectiveMs }: FeedHealth,
  nowMs: number,
): boolean {
  const isBehind = lastCaughtUpMs === undefined || nowMs - lastCaughtUpMs > lagObjectiveMs
  return isBehind && !isPaused
}

function describeLag({ trouble, lastSuccessMs, lagObjectiveMs }: FeedHealth, nowMs: number) {
  if (trouble !== undefined) return formatTrouble(trouble, nowMs)
  if (lastSuccessMs === undefined) return 'no poll has succeeded yet'
  if (nowMs - lastSuccessMs > lagObjectiveMs) return 'no poll succeeds'
  return 'pages come, yet not the last one: a long backlog, or too small a budget'
}

/**
 * An unreadable page is alerted at once, because its events are otherwise lost silently. Single
 * quarantined items are alerted once a day.
 */
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

/** Alerted at once: it does not recover by itself. */
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
  const waiting = [countWaiting(sink.pending), sink.relief].filter(Boolean).join('; ')
  const conditions = [...sinkDisabled(sink, waiting), ...circuitOpen(sink, waiting, facing)]
  if (deadLetters > 0) {
    const cause = `${deadLetters} by now`
    conditions.push(buildCondition({ kind: 'dead-letters', name }, { waitMs, cause }))
  }
  return [...conditions, ...pausedLong(sink, facing), ...digestOverdue(sink, facing)]
}

function countWaiting(pending = 0): string {
  return pending === 1 ? '1 item waits' : `${pending} items wait`
}

/** Whether a message sent to the sink now would arrive, as far as is known. */
export function takesMessages(sinks: readonly SinkHealth[], sink: string): boolean {
  const health = sinks.find(({ name }) => name === sink)
  return health === undefined || (health.circuit === 'closed' && health.paused === undefined)
}

/** Alerted at once: it does not recover by itself. */
function sinkDisabled({ name, disabled: mark }: SinkHealth, waiting: string): Condition[] {
  if (mark === undefined) return []
  const cause = `${mark.reason || 'gone'}; until an operator acts, nothing is sent to it; ${waiting}`
  return [
    buildCondition({ kind: 'sink-disabled', name }, { sinceMs: mark.sinceMs, waitMs: 0, cause }),
  ]
}

/** Stands while the sink is disabled too: an alert about its circuit is not over then. */
function circuitOpen(
  { name, circuit, trouble }: SinkHealth,
  waiting: string,
  { nowMs, afterMs: waitMs }: AlertTiming,
): Condition[] {
  if (circuit === 'closed') return []
  const coveredBy = [conditionId({ kind: 'sink-disabled', name })]
  const cause = trouble ? `${formatTrouble(trouble, nowMs)}; ${waiting}` : waiting
  return [buildCondition({ kind: 'circuit-open', name }, { waitMs, coveredBy, cause })]
}

function pausedLong({ name, paused, pending }: SinkHealth, { afterMs }: AlertTiming): Condition[] {
  if (paused === undefined) return []
  const waitMs = Math.max(pausePatienceMs, afterMs)
  const { sinceMs, reason } = paused
  const cause = `${reason}; ${countWaiting(pending)}`
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

/** Alerted at once: what is gone does not come back by itself. */
function ledgerLost({ loss }: Snapshot['redis']): Condition[] {
  if (loss === undefined) return []
  const cause = `it holds ${describeLoss(loss)}`
  const lasting = { sinceMs: loss.atMs, waitMs: 0, cause }
  return [buildCondition({ kind: 'ledger-lost', name: null }, lasting)]
}

function storeConditions(
  { redis, unaccounted }: Snapshot,
  { afterMs: waitMs }: AlertTiming,
): Condition[] {
  const conditions = ledgerLost(redis)
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
  trouble: TroubleName,
  more: Partial<Omit<Condition, keyof TroubleName | 'id'>> & { waitMs: number },
): Condition {
  const defaults = { sinceMs: undefined, steadyMs: more.waitMs, cause: null, coveredBy: [] }
  return { ...trouble, id: conditionId(trouble), ...defaults, ...more }
}

/** More than this at the same time have one cause, and get one alert. */
const mostOfAKind = 10

/**
 * Finds kinds of which many are to be alerted; each such condition stands for all of its kind. An
 * outage would flood the operators otherwise. It counts from when it was first seen: the begin of
 * the first of a kind may be that of an earlier alert, whose uid the ledger knows.
 */
export function findMany(due: readonly Condition[]): Condition[] {
  return [...Map.groupBy(due, ({ kind }) => kind)]
    .filter(([, alike]) => alike.length > mostOfAKind)
    .map(([kind, alike]) => {
      const [one, two, three] = alike.map(({ name }) => name)
      const cause = `${[one, two, three].join(', ')} and ${alike.length - 3} others by now`
      return buildCondition({ kind: 'many', name: kind }, { waitMs: 0, cause })
    })
}

/** The condition that stands for all of a kind. */
export function manyId(kind: TroubleKind): string {
  return conditionId({ kind: 'many', name: kind })
}
