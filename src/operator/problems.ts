/**
 * What is wrong with a ledger, its feeds, sinks and accounts: late, refused, paused, given up or in
 * nobody's hands, each with its cause and remedy. Pure. `status`, `doctor`, lists and self-alerts go by
 * this one list.
 */
import type { Config } from '../config/config.ts'
import { reservedSearches } from '../feeds/types/polled-feed.ts'
import { pluralize } from '../lib/errors.ts'
import { formatDuration, formatUtcTime } from '../lib/time-zone.ts'
import { formatTrouble, type Trouble } from '../lib/trouble.ts'
import { desertedAfterMs } from '../store/account-ledger.ts'
import { type AccountEntry, sumPending } from '../store/accounts.ts'
import { datedAheadMs, type FeedState } from '../store/feed-state.ts'
import { type Check, findRemedy, type Problem, type ProblemKind } from './alerts/troubles.ts'
import type { AccountState, FleetState } from './fleet-state.ts'
import type { FeedReport } from './reports/feed-report.ts'
import type { SinkReport } from './reports/sink-report.ts'

/** What is judged. */
export interface LedgerView {
  config: Config
  fleet: FleetState
  /** Of the registry; left out: nobody discards an account. */
  entries?: readonly AccountEntry[]
  feeds: readonly FeedReport[]
  sinks: readonly SinkReport[]
  /** When each sink of the canary last took one, ms. */
  canaries: Readonly<Record<string, number>>
  /** Whether some replica has run within the last minute. */
  isRunning: boolean
}

/** Of all but the daemon, and without what a refused key explains. */
export function findProblems(view: LedgerView): Problem[] {
  return findAllProblems(view).filter(({ behindAccount }) => behindAccount === undefined)
}

/** Self-alerts need all: what another one explains is not over. */
export function findAllProblems(view: LedgerView): Problem[] {
  return [
    ...judgeAccounts(view),
    ...judgeFeeds(view),
    ...judgeSinks(view),
    ...judgeAccounting(view),
  ]
}

/**
 * What whoever may see some accounts alone may know of these: of a sink, which all share, that
 * theirs was not taken. Nothing of its state, of others in front of it, or of the installation.
 */
export function withoutShared<State extends { problems: Problem[]; sinks: SinkReport[] }>(
  state: State,
): State {
  const own = state.problems.filter(({ check }) => check !== 'delivery' && check !== 'daemon')
  return { ...state, problems: [...own, ...state.sinks.flatMap(judgeDeadLetters)] }
}

type More = Pick<Problem, 'since' | 'stops'>

/** Makes the problems of one subject, with the remedy of their kind. */
type Judge = Record<Problem['status'], (kind: ProblemKind, detail: string, more?: More) => Problem>

function about(check: Check, subject: string): Judge {
  const of =
    (status: Problem['status']): Judge['problem'] =>
    (kind, detail, more) => {
      const remedy = findRemedy(kind, subject)
      return { kind, check, subject, status, detail, remedy, ...more }
    }
  return { problem: of('problem'), warning: of('warning') }
}

function since(sinceMs: number | undefined): More {
  return sinceMs === undefined ? {} : { since: new Date(sinceMs).toISOString() }
}

/** Nothing is read or sent meanwhile. */
function stops(sinceMs: number | undefined): More {
  return { ...since(sinceMs), stops: true }
}

/** A daemon gives a sign every two seconds, unless its machine is very busy. */
const quietMs = 15_000

export function judgeDaemon(silentMs: number): Problem[] {
  const judge = about('daemon', 'tocsin run')
  if (silentMs >= desertedAfterMs) {
    return [judge.problem('daemon-down', 'none has run for a minute: nothing is polled or sent')]
  }
  if (silentMs < quietMs) return []
  return [judge.warning('daemon-quiet', `its last sign was ${formatDuration(silentMs)} ago`)]
}

function* judgeAccounts({ fleet, entries = [] }: LedgerView): Generator<Problem> {
  for (const { name, isConfigured, pending, trouble } of fleet.accounts) {
    const judge = about('account', name)
    if (trouble) {
      const detail = `its key: ${formatTrouble(trouble, fleet.atMs)}`
      yield judge.problem('account-refused', detail, stops(trouble.sinceMs))
    }
    if (isConfigured || pending === 0) continue
    yield judge.problem('account-left', `not configured any more, and ${countItems(pending)}`)
  }
  for (const { name, discarding } of entries) {
    if (!discarding) continue
    const detail = `being discarded since ${formatUtcTime(discarding.atMs)} by ${discarding.by}`
    yield about('account', name).warning('account-discarding', detail)
  }
}

function* judgeFeeds(view: LedgerView): Generator<Problem> {
  const accounts = new Map(view.fleet.accounts.map((account) => [account.name, account]))
  const pauses = findTierPauses(view, accounts)
  for (const report of view.feeds) {
    const { feed, state, quarantined } = report
    const account = accounts.get(feed.account)
    if (state === undefined) continue // no daemon has had it yet
    const judge = about('feed', feed.name)
    if (account?.trouble) {
      // the account tells why nothing is read; who paused a feed waits for something else
      const own = judgeReading(report, judge, view)
      if (own) yield state.paused ? own : { ...own, behindAccount: feed.account }
    } else {
      const wait = findWait(report, pauses.get(tierOf(feed)), view)
      const tail = judgeReading(report, judge, view, wait)
      const quota = judgeQuota(report, judge, account)
      if (tail) yield tail
      if (quota) yield quota
      const isReading = !tail && !quota && !wait && view.isRunning
      const rescans = judgeRescans({ feed, state, isReading }, judge)
      if (rescans) yield rescans
    }
    if (quarantined > 0) {
      const detail = `${pluralize(quarantined, 'item')} in the quarantine, which nobody was told of`
      yield judge.problem('items-quarantined', detail)
    }
    const untilMs = datedAheadMs(state)
    if (untilMs === undefined) continue
    const detail = `shows events that are dated ahead of now, up to ${formatUtcTime(untilMs)}`
    yield judge.warning('feed-dated-ahead', detail)
  }
}

/** Whether its rescans fail, or those of a stated interval do not end. `isReading`: nothing keeps them waiting. */
function judgeRescans(
  { feed, state, isReading }: Pick<FeedReport, 'feed'> & { state: FeedState; isReading: boolean },
  judge: Judge,
): Problem | undefined {
  const { nowMs, rescanTrouble, whole, rescans } = state
  if (rescanTrouble) {
    const detail = `its rescans: ${formatTrouble(rescanTrouble, nowMs)}`
    return judge.warning('rescans-failing', detail, since(rescanTrouble.sinceMs))
  }
  const { everyMs } = feed.rescan ?? {}
  if (everyMs === undefined || !isReading) return undefined
  const lastMs = whole.lastCompletedMs ?? rescans.firstPollMs ?? nowMs
  if (nowMs - lastMs <= 3 * everyMs) return undefined
  const ended =
    whole.lastCompletedMs === undefined ? 'none' : `the last one ${formatUtcTime(lastMs)}`
  const detail = `its rescans do not end: ${ended}, due every ${formatDuration(everyMs)}`
  return judge.warning('rescans-overdue', detail)
}

const tierOf = ({ account, tier }: FeedReport['feed']): string => `${account} ${tier}`

/** A 429 that a feed met: it pauses the tier for all feeds of the account. */
interface TierPause {
  feed: string
  trouble: Trouble
}

/** By account and tier. */
function findTierPauses(
  { config, fleet }: LedgerView,
  accounts: ReadonlyMap<string, AccountState>,
): ReadonlyMap<string, TierPause> {
  const pauses = new Map<string, TierPause>()
  for (const feed of config.feeds) {
    const { trouble, rescanTrouble } = accounts.get(feed.account)?.feeds.get(feed.name) ?? {}
    const met = [trouble, rescanTrouble].find(
      (one) => one?.reason === 'rate_limited' && (one.nextTryMs ?? 0) > fleet.atMs,
    )
    if (met) pauses.set(tierOf(feed), { feed: feed.name, trouble: met })
  }
  return pauses
}

/** What another feed of the tier met, unless this one has got on since then. */
function findWait(
  { feed, state }: FeedReport,
  pause: TierPause | undefined,
  { fleet }: LedgerView,
): string | undefined {
  if (!pause || pause.feed === feed.name) return undefined
  if ((state?.lastSuccessMs ?? -Infinity) > pause.trouble.lastMs) return undefined
  return `waits with feed ${pause.feed}: ${formatTrouble(pause.trouble, fleet.atMs)}`
}

/** Whether its tail gets on; the worst reason alone. `wait`: for what it waits with another feed. */
function judgeReading(
  { state, lagMs = 0, lagObjectiveMs }: FeedReport,
  judge: Judge,
  { fleet, isRunning }: LedgerView,
  wait?: string,
): Problem | undefined {
  const { paused, unreadable, trouble, isBackfilling, lastCaughtUpMs } = state ?? {}
  if (unreadable) {
    const { unread, shown, problem } = unreadable
    const detail = `${unread} of ${shown} items of its last page cannot be read: ${problem}`
    return judge.problem('feed-unreadable', detail, since(unreadable.sinceMs))
  }
  if (paused) {
    const detail = `paused since ${formatUtcTime(paused.sinceMs)}: ${paused.reason}`
    return judge.problem('feed-paused', detail, stops(paused.sinceMs))
  }
  const why = trouble && formatTrouble(trouble, fleet.atMs)
  const lag = `lag ${formatDuration(lagMs)}, objective ${formatDuration(lagObjectiveMs)}`
  if (lagMs > lagObjectiveMs && isRunning) {
    // of a daemon that does not run, the lag follows from that
    const isWorkedOff = why === undefined && wait === undefined && isBackfilling
    const cause = why ?? wait ?? (isWorkedOff ? 'works off a backlog' : undefined)
    const detail = cause === undefined ? lag : `${lag}; ${cause}`
    return judge[isWorkedOff ? 'warning' : 'problem']('feed-stalled', detail, since(lastCaughtUpMs))
  }
  if (why === undefined) return undefined
  return judge.warning('feed-failing', `${lag}; ${why}`, since(trouble?.sinceMs))
}

function judgeQuota(
  { feed }: FeedReport,
  judge: Judge,
  account: AccountState | undefined,
): Problem | undefined {
  const reserve = reservedSearches(feed)
  const remaining = account?.searchesRemaining ?? Infinity
  if (reserve === 0 || remaining > reserve) return undefined
  const detail = `stands still: ${remaining} searches remain, ${reserve} are reserved`
  return judge.problem('quota-reserve', detail, { stops: true })
}

function* judgeSinks(view: LedgerView): Generator<Problem> {
  for (const report of view.sinks) {
    const found = [...judgeSink(report, view)]
    yield* found
    const canary = found.length === 0 ? judgeCanary(report.name, view) : undefined
    if (canary) yield canary
  }
}

function* judgeSink(report: SinkReport, view: LedgerView): Generator<Problem> {
  const { name, type } = report
  const judge = about('delivery', name)
  const waiting = sumPending(report)
  const sending = type && judgeSending(report, judge, view)
  if (sending) yield sending
  if (type === undefined && waiting > 0) {
    yield judge.problem('sink-left', `not configured any more, ${countItems(waiting)}`)
  }
  for (const { label, circuit } of report.recipients) {
    const { trouble } = circuit
    const why = trouble ? formatTrouble(trouble, view.fleet.atMs) : 'takes nothing'
    const isTest = circuit.state === 'half_open' && waiting === (report.pending['held'] ?? 0)
    const detail = `${label} alone: ${isTest ? `${nextTests}; ` : ''}${why}`
    const status = isTest ? 'warning' : 'problem'
    yield judge[status]('recipient-failing', detail, since(trouble?.sinceMs))
  }
  yield* judgeDeadLetters(report)
}

function judgeDeadLetters({ name, deadLetters }: SinkReport): Problem[] {
  if (deadLetters === 0) return []
  const detail = `${pluralize(deadLetters, 'dead letter')}, which ${name} did not take`
  return [about('delivery', name).problem('dead-letters', detail)]
}

/** Whether test events arrive; as the alert judges. */
function judgeCanary(
  name: string,
  { config: { canary }, canaries, fleet, isRunning }: LedgerView,
): Problem | undefined {
  if (!isRunning || !canary?.sinks.includes(name)) return undefined
  const lastMs = canaries[name]
  if (lastMs !== undefined && fleet.atMs - lastMs <= 3 * canary.everyMs) return undefined
  const last =
    lastMs === undefined ? 'none has arrived yet' : `the last one ${formatUtcTime(lastMs)}`
  const detail = `its canary is late: ${last}, due every ${formatDuration(canary.everyMs)}`
  const status = lastMs === undefined ? 'warning' : 'problem' // it may have been configured just now
  return about('delivery', name)[status]('canary-late', detail)
}

/** How late work or a digest may be before it is said, ms; as long as the alerts wait. */
const patienceMs = 15 * 60_000

/** So many failures in a row are more than a hiccup. */
const failuresOfTrouble = 3

const nextTests = 'the next message is the test'

/** What takes others meanwhile may keep some waiting so long, ms; as long as the alert waits. */
const longWaitMs = 3_600_000

/** Whether it takes what waits for it; the worst reason alone. */
function judgeSending(
  report: SinkReport,
  judge: Judge,
  { fleet: { atMs: nowMs }, isRunning }: LedgerView,
): Problem | undefined {
  const { circuit, pending, diverted, relief, digest, criticalSinceMs = nowMs } = report
  // what is held waits for a mute or a full event, whatever the sink takes
  const { group = 0, digest: gathered = 0, held = 0, ...moving } = pending
  const waiting = sumPending({ pending: moving })
  const wait = `${countItems(waiting + group + gathered)}${held > 0 ? `, ${held} held` : ''}`
  const sent = diverted > 0 ? `, ${pluralize(diverted, 'item')} went to a fallback so far` : ''
  const stood = `${wait}${sent}${relief === undefined ? '' : `; ${relief}`}`
  const { state, paused, disabled, trouble, lastSuccessMs } = circuit
  if (paused) {
    const detail = `paused since ${formatUtcTime(paused.sinceMs)}: ${paused.reason}; ${wait}`
    return judge.problem('sink-paused', detail, stops(paused.sinceMs))
  }
  if (disabled) {
    const gone = `gone since ${formatUtcTime(disabled.sinceMs)}: ${disabled.reason}; ${stood}`
    return judge.problem('sink-disabled', gone, stops(disabled.sinceMs))
  }
  const why = trouble && formatTrouble(trouble, nowMs)
  const never = lastSuccessMs === undefined ? 'it has never taken anything' : undefined
  const all = [why, never, stood].filter((part) => part !== undefined).join('; ')
  if (state === 'half_open' && waiting === 0) {
    return judge.warning('circuit-open', `circuit half_open, ${nextTests}; ${all}`)
  }
  if (state !== 'closed') {
    return judge.problem('circuit-open', `circuit ${state}; ${all}`, stops(circuit.openedAtMs))
  }
  if (isRunning) {
    const isOver = (dueMs = nowMs): boolean => nowMs - dueMs > patienceMs
    if (isOver(report.firstDueMs)) return judge.problem('sink-overdue', `work is overdue; ${all}`)
    if (digest && isOver(digest.nextDueMs)) {
      const detail = `its digest has been due since ${formatUtcTime(digest.nextDueMs)}`
      return judge.problem('digest-overdue', detail)
    }
    if (nowMs - criticalSinceMs > longWaitMs) {
      const owed = `a critical event has waited for ${formatDuration(nowMs - criticalSinceMs)}`
      return judge.problem('criticals-owed', `${owed}; ${all}`)
    }
  }
  if (why === undefined) return undefined
  const isTrouble = never !== undefined || (trouble?.count ?? 0) >= failuresOfTrouble
  const status = isTrouble && waiting > 0 ? 'problem' : 'warning'
  return judge[status]('sink-failing', all, since(trouble?.sinceMs))
}

function countItems(count: number): string {
  return count === 1 ? '1 item waits' : `${count} items wait`
}

/** What the ledgers' own counters say. */
function* judgeAccounting({ fleet }: LedgerView): Generator<Problem> {
  for (const { name: account, accounting } of fleet.accounts) {
    const { feeds, sinks } = accounting
    const wrong = [...Object.entries(feeds), ...Object.entries(sinks)]
      .filter(([, { unaccounted }]) => unaccounted !== 0)
      .map(([name, { unaccounted }]) => `${name}: ${unaccounted} unaccounted for`)
    if (wrong.length > 0)
      yield about('accounting', account).problem('unaccounted', wrong.join(', '))
  }
}
