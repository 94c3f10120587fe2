/**
 * Derives the troubles that a snapshot shows, those included that have not lasted long enough yet:
 * each says how long it must last. Pure.
 */
import { formatTrouble, type Trouble } from '../../lib/trouble.ts'
import { describeLoss, type LedgerLoss } from '../../store/account-ledger.ts'
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
  /** How long it must have been seen before it is alerted, ms: a fresh start gets time to recover. */
  waitMs: number
  cause: string | null
  /** While one of these conditions stands, it explains this one, whose begin is not alerted. */
  coveredBy: string[]
}

interface AlertTiming {
  nowMs: number
  /** The configuration's `self_alerts.after`. */
  afterMs: number
}

export function findConditions(snapshot: Snapshot, timing: AlertTiming): Condition[] {
  const { accounts, left, feeds, sinks } = snapshot
  return [
    ...accounts.flatMap((account) => accountRefused(account, timing)),
    ...left.flatMap((account) => accountLeft(account, timing)),
    ...feeds.flatMap((feed) => [...feedStalled(feed, timing), ...feedUnreadable(feed)]),
    ...sinks.flatMap((sink) => sinkConditions(sink, timing)),
    ...storeConditions(snapshot, timing),
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
  return [buildCondition({ kind: 'account-left', name }, { waitMs, cause: `${pending} by now` })]
}

/**
 * Seen from the lag objective on, alerted at three times the objective; over once the lag is within
 * it again.
 */
function feedStalled(feed: FeedHealth, { nowMs, afterMs }: AlertTiming): Condition[] {
  const { name, account, lagObjectiveMs, lastCaughtUpMs } = feed
  const isBehind = lastCaughtUpMs === undefined || nowMs - lastCaughtUpMs > lagObjectiveMs
  if (!isBehind || feed.isPaused) return []
  const covers = [
    { kind: 'account-refused', name: account },
    { kind: 'redis-full', name: null },
  ] as const
  const lasting = {
    sinceMs: lastCaughtUpMs,
    waitMs: Math.max(3 * lagObjectiveMs, afterMs) - lagObjectiveMs,
    cause: describeLag(feed, nowMs),
    coveredBy: covers.map(conditionId),
  }
  return [buildCondition({ kind: 'feed-stalled', name }, lasting)]
}

function describeLag(feed: FeedHealth, nowMs: number): string {
  const { trouble, quota, lastSuccessMs, lagObjectiveMs } = feed
  if (trouble !== undefined) return formatTrouble(trouble, nowMs)
  if (quota !== undefined && quota.remaining <= quota.reserve)
    return `${quota.remaining} searches remain, ${quota.reserve} are reserved`
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

function sinkConditions(sink: SinkHealth, { nowMs, afterMs: waitMs }: AlertTiming): Condition[] {
  const { name, circuit, disabled, trouble, deadLetters, pending = 0, relief } = sink
  const count = pending === 1 ? '1 item waits' : `${pending} items wait`
  const waiting = relief === undefined ? count : `${count}; ${relief}`
  const conditions: Condition[] = []
  if (disabled !== undefined) {
    // at once: it does not recover by itself
    const cause = `${disabled.reason || 'gone'}; until an operator acts, nothing is sent to it; ${waiting}`
    const lasting = { sinceMs: disabled.sinceMs, waitMs: 0, cause }
    conditions.push(buildCondition({ kind: 'sink-disabled', name }, lasting))
  }
  if (circuit !== 'closed') {
    // stands while the sink is disabled too: an alert about its circuit is not over then
    const coveredBy = [conditionId({ kind: 'sink-disabled', name })]
    const cause = trouble ? `${formatTrouble(trouble, nowMs)}; ${waiting}` : waiting
    conditions.push(buildCondition({ kind: 'circuit-open', name }, { waitMs, coveredBy, cause }))
  }
  if (deadLetters > 0) {
    const cause = `${deadLetters} by now`
    conditions.push(buildCondition({ kind: 'dead-letters', name }, { waitMs, cause }))
  }
  return conditions
}

/** Whether a message sent to the sink now would arrive, as far as is known. */
export function takesMessages(sinks: readonly SinkHealth[], sink: string): boolean {
  const health = sinks.find(({ name }) => name === sink)
  return health === undefined || (health.circuit === 'closed' && health.paused === undefined)
}

function storeConditions(
  { redis: { loss, isFull }, unaccounted }: Snapshot,
  { afterMs: waitMs }: AlertTiming,
): Condition[] {
  const conditions: Condition[] = []
  if (loss !== undefined) {
    // at once: what is gone does not come back by itself
    const lasting = { sinceMs: loss.atMs, waitMs: 0, cause: `it holds ${describeLoss(loss)}` }
    conditions.push(buildCondition({ kind: 'ledger-lost', name: null }, lasting))
  }
  if (isFull) conditions.push(buildCondition({ kind: 'redis-full', name: null }, { waitMs }))
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
  const defaults = { sinceMs: undefined, cause: null, coveredBy: [] }
  return { ...trouble, id: conditionId(trouble), ...defaults, ...more }
}

/** More than this at the same time have one cause, and get one alert. */
const mostOfAKind = 10

/**
 * Finds kinds of which many stand: one condition, from when that was first seen, explains all that
 * were not alerted yet. An outage would flood the operators otherwise.
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
