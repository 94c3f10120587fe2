/**
 * What is wrong with a ledger, its feeds, sinks and accounts: late, refused, paused, given up or in
 * nobody's hands, each with its cause and remedy. `status`, `doctor` and lists show this one list.
 */
import type { Config } from '../config/config.ts'
import { reservedSearches } from '../feeds/types/polled-feed.ts'
import { pluralize } from '../lib/errors.ts'
import { formatDuration, formatUtcTime } from '../lib/time-zone.ts'
import { formatTrouble } from '../lib/trouble.ts'
import { redisNow } from '../redis/scripts.ts'
import { readCanary } from './alerts/canary.ts'
import { findRemedy } from './alerts/troubles.ts'
import { type AccountLedger, desertedAfterMs, readSilenceMs } from '../store/account-ledger.ts'
import { readAccounting, sumPending } from '../store/accounts.ts'
import { datedAheadMs, type FeedState } from '../store/feed-state.ts'
import { readSinkNames } from '../store/pending-items.ts'
import { readQuota } from '../upstream/rate-limits.ts'
import { type AccountReport, reportAccounts } from './reports/account-report.ts'
import { type FeedReport, reportFeeds } from './reports/feed-report.ts'
import type { OpenLedgers } from './open-ledgers.ts'
import { reportSinks, type SinkReport } from './reports/sink-report.ts'

/** What is looked at; the subject is the name of one. */
type Check = 'daemon' | 'account' | 'feed' | 'delivery' | 'accounting'

export interface Problem {
  check: Check
  /** Which account, feed or sink. */
  subject: string
  /** `problem`: somebody must act; `warning`: somebody may want to know. */
  status: 'problem' | 'warning'
  /** The cause, in words; outside text in it is not sanitized. */
  detail: string
  remedy: string
  /** ISO 8601, where it is known. */
  since?: string
  /** Nothing is read or sent by the subject meanwhile. */
  stops?: true
}

/** Of all accounts, or of some. */
export interface LedgerState {
  nowMs: number
  accounts: AccountReport[]
  feeds: FeedReport[]
  sinks: SinkReport[]
  problems: Problem[]
}

/** What lists show, each with its problems. */
export type ListedThing = 'feed' | 'sink' | 'account'

const checks: Record<ListedThing, readonly Check[]> = {
  account: ['account', 'accounting'],
  feed: ['feed'],
  sink: ['delivery'],
}

export function isAbout({ check, subject }: Problem, thing: ListedThing, name: string): boolean {
  return checks[thing].includes(check) && subject === name
}

interface LedgerParts extends Omit<LedgerState, 'problems'> {
  config: Config
  store: OpenLedgers
  /** Whether some replica has run within the last minute. */
  isRunning: boolean
  ledgers: readonly AccountLedger[]
}

/** Reads the state of all that the open ledgers have, and judges it. Asks nobody but Redis. */
export async function readLedgerState(
  store: OpenLedgers,
  config: Config,
  wanted?: readonly string[],
): Promise<LedgerState> {
  const isWanted = (name: string): boolean => wanted?.includes(name) ?? true
  const ledgers = store.ledgers.filter((ledger) => isWanted(ledger.account))
  const [silentMs, nowMs] = [await readSilenceMs(store.redis, store.keys), await redisNow(store)]
  const accounts = await reportAccounts(store, config)
  const feeds = await reportFeeds(store, config)
  const state = {
    nowMs,
    accounts: accounts.filter(({ name }) => isWanted(name)),
    feeds: feeds.filter(({ feed }) => isWanted(feed.account)),
    sinks: await reportSinks(store, config, ledgers),
  }
  const parts = { ...state, config, store, ledgers, isRunning: silentMs < desertedAfterMs }
  const problems: Problem[] = judgeDaemon(silentMs)
  for await (const problem of judgeAll(parts)) problems.push(problem)
  return { ...state, problems }
}

/**
 * What whoever may see some accounts alone may know of these: of a sink, which all share, that theirs
 * was not taken; nothing of its state, of others in front of it, or of the installation.
 */
export function withoutShared(state: LedgerState): LedgerState {
  const own = state.problems.filter(({ check }) => check !== 'delivery' && check !== 'daemon')
  return { ...state, problems: [...own, ...state.sinks.flatMap(judgeDeadLetters)] }
}

async function* judgeAll(parts: LedgerParts): AsyncGenerator<Problem> {
  for (const account of parts.accounts) yield* judgeAccount(account, parts.nowMs)
  yield* judgeFeeds(parts)
  yield* judgeSinks(parts)
  yield* judgeAccounting(parts)
}

type More = Pick<Problem, 'since' | 'stops'>

/** Makes the problems of one subject. */
type Judge = Record<Problem['status'], (detail: string, remedy: string, more?: More) => Problem>

function about(check: Check, subject: string): Judge {
  const of =
    (status: Problem['status']): Judge['problem'] =>
    (detail, remedy, more) => ({ check, subject, status, detail, remedy, ...more })
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
    return [judge.problem('none has run for a minute: nothing is polled or sent', 'start it')]
  }
  if (silentMs < quietMs) return []
  const detail = `its last sign was ${formatDuration(silentMs)} ago`
  return [judge.warning(detail, 'start it, unless it is being restarted just now')]
}

function* judgeAccount(account: AccountReport, nowMs: number): Generator<Problem> {
  const { name, isConfigured, holdings, discarding, trouble } = account
  const judge = about('account', name)
  if (trouble) {
    const detail = `its key: ${formatTrouble(trouble, nowMs)}`
    yield judge.problem(detail, findRemedy('account-refused', name), stops(trouble.sinceMs))
  }
  if (discarding) {
    const detail = `being discarded since ${formatUtcTime(discarding.atMs)} by ${discarding.by}`
    yield judge.warning(detail, `end it: tocsin accounts discard ${name}`)
    return
  }
  const { pendingTotal = 0, deadLetters = 0 } = holdings ?? {}
  if (isConfigured || pendingTotal + deadLetters === 0) return
  const left = `${pluralize(pendingTotal, 'item')} and ${pluralize(deadLetters, 'dead letter')}`
  const detail = `not configured any more, and holds ${left}`
  yield judge.problem(detail, findRemedy('account-left', name))
}

async function* judgeFeeds(parts: LedgerParts): AsyncGenerator<Problem> {
  const refused = new Set(parts.accounts.flatMap(({ name, trouble }) => (trouble ? [name] : [])))
  for (const report of parts.feeds) {
    const { feed, state, quarantined } = report
    if (state === undefined) continue // no daemon has had it yet
    const judge = about('feed', feed.name)
    if (refused.has(feed.account)) {
      // the account tells why nothing is read; who paused a feed waits for something else
      const own = state.paused && judgeReading(report, judge, parts)
      if (own) yield own
    } else {
      const tail = judgeReading(report, judge, parts)
      const quota = await judgeQuota(report, judge, parts)
      if (tail) yield tail
      if (quota) yield quota
      const isReading = !tail && !quota && parts.isRunning
      const rescans = judgeRescans({ ...report, state, isReading }, judge)
      if (rescans) yield rescans
    }
    if (quarantined > 0) {
      const detail = `${pluralize(quarantined, 'item')} in the quarantine, which nobody was told of`
      yield judge.problem(detail, findRemedy('items-quarantined', feed.name))
    }
    const untilMs = datedAheadMs(state)
    if (untilMs === undefined) continue
    const detail = `shows events that are dated ahead of now, up to ${formatUtcTime(untilMs)}`
    yield judge.warning(detail, 'tell the service that a date is wrong')
  }
}

/** So long may the first rescan of all take, ms; as long as the alert waits. */
const firstRescanMs = 48 * 3_600_000

/** Whether its rescans fail, or do not end. `isReading`: nothing keeps them waiting. */
function judgeRescans(
  report: FeedReport & { state: FeedState; isReading: boolean },
  judge: Judge,
): Problem | undefined {
  const { state, bounds, isReading } = report
  const { nowMs, rescanTrouble, whole, rescans } = state
  const remedy = 'what comes late is not found meanwhile'
  if (rescanTrouble)
    return judge.warning(
      `its rescans: ${formatTrouble(rescanTrouble, nowMs)}`,
      remedy,
      since(rescanTrouble.sinceMs),
    )
  if (!bounds || !isReading) return undefined
  const { lastCompletedMs } = whole
  const longestMs = lastCompletedMs === undefined ? firstRescanMs : 3 * bounds.everyMs
  if (nowMs - (lastCompletedMs ?? rescans.firstPollMs ?? nowMs) <= longestMs) return undefined
  const ended =
    lastCompletedMs === undefined ? 'none' : `the last one ${formatUtcTime(lastCompletedMs)}`
  const detail = `its rescans do not end: ${ended}, due every ${formatDuration(bounds.everyMs)}`
  return judge.warning(detail, `${remedy}: shorten rescan.back, or lengthen rescan.every`)
}

/** Whether its tail gets on; the worst reason alone. */
function judgeReading(
  { feed: { name }, state, lagMs = 0, lagObjectiveMs }: FeedReport,
  judge: Judge,
  { nowMs, isRunning }: LedgerParts,
): Problem | undefined {
  const { paused, unreadable, trouble, isBackfilling } = state ?? {}
  if (unreadable) {
    const { unread, shown, problem } = unreadable
    const detail = `${unread} of ${shown} items of its last page cannot be read: ${problem}`
    return judge.problem(detail, findRemedy('feed-unreadable', name), since(unreadable.sinceMs))
  }
  if (paused) {
    const detail = `paused since ${formatUtcTime(paused.sinceMs)}: ${paused.reason}`
    return judge.problem(detail, `tocsin feeds resume ${name}`, stops(paused.sinceMs))
  }
  const why = trouble && formatTrouble(trouble, nowMs)
  const isLate = lagMs > lagObjectiveMs && isRunning // else it follows from the daemon
  if (!isLate && why === undefined) return undefined
  const lag = `lag ${formatDuration(lagMs)}, objective ${formatDuration(lagObjectiveMs)}`
  const remedy = `tocsin feeds list ${name}`
  if (why !== undefined) {
    const status = isLate ? 'problem' : 'warning'
    return judge[status](`${lag}; ${why}`, remedy, since(trouble?.sinceMs))
  }
  return isBackfilling
    ? judge.warning(`${lag}: works off a backlog`, remedy)
    : judge.problem(lag, remedy)
}

async function judgeQuota(
  { feed }: FeedReport,
  judge: Judge,
  { store }: LedgerParts,
): Promise<Problem | undefined> {
  const reserve = reservedSearches(feed)
  const quota = reserve > 0 ? await readQuota(store.redis, store.keys, feed.account) : undefined
  if (quota === undefined || quota.remaining > reserve) return undefined
  const detail = `stands still: ${quota.remaining} searches remain, ${reserve} are reserved`
  return judge.problem(detail, findRemedy('quota-reserve', feed.name), stops(quota.atMs))
}

async function* judgeSinks(parts: LedgerParts): AsyncGenerator<Problem> {
  const owed = await readLongOwed(parts)
  const canaries = await readCanary(parts.store, parts.config.canary?.sinks ?? [])
  for (const report of parts.sinks) {
    const found = [...judgeSink({ ...report, criticals: owed.get(report.name) ?? 0 }, parts)]
    const canary = judgeCanary(report.name, canaries[report.name], parts)
    yield* found
    if (canary && found.length === 0) yield canary
  }
}

function* judgeSink(report: OwingSink, parts: LedgerParts): Generator<Problem> {
  const { name, type } = report
  const judge = about('delivery', name)
  const waiting = sumPending(report)
  const sending = type && judgeSending(report, judge, parts)
  if (sending) yield sending
  if (type === undefined && waiting > 0) {
    const remedy = `tocsin items move --sink ${name} --to <sink>, or tocsin items discard --sink ${name}`
    yield judge.problem(`not configured any more, ${countItems(waiting)}`, remedy)
  }
  for (const { label, circuit } of report.recipients) {
    const { trouble } = circuit
    const why = trouble ? formatTrouble(trouble, parts.nowMs) : 'takes nothing'
    if (circuit.state === 'half_open' && waiting === 0) {
      yield judge.warning(`${label} alone: ${nextTests}; ${why}`, testIt(name))
      continue
    }
    const remedy = `correct ${label} at the mail server or in the file; tocsin sinks resume ${name}`
    yield judge.problem(`${label} alone: ${why}`, remedy, since(trouble?.sinceMs))
  }
  yield* judgeDeadLetters(report)
}

function judgeDeadLetters({ name, deadLetters }: SinkReport): Problem[] {
  if (deadLetters === 0) return []
  const detail = `${pluralize(deadLetters, 'dead letter')}, which ${name} did not take`
  return [about('delivery', name).problem(detail, findRemedy('dead-letters', name))]
}

/** Whether test events arrive; as the alert judges. */
function judgeCanary(
  name: string,
  lastMs: number | undefined,
  { config: { canary }, nowMs, isRunning }: LedgerParts,
): Problem | undefined {
  if (!isRunning || !canary?.sinks.includes(name)) return undefined
  if (lastMs !== undefined && nowMs - lastMs <= 3 * canary.everyMs) return undefined
  const last =
    lastMs === undefined ? 'none has arrived yet' : `the last one ${formatUtcTime(lastMs)}`
  const detail = `its canary is late: ${last}, due every ${formatDuration(canary.everyMs)}`
  const status = lastMs === undefined ? 'warning' : 'problem' // it may have been configured just now
  return about('delivery', name)[status](detail, testIt(name))
}

/** How late work or a digest may be before it is said, ms; as long as the alerts wait. */
const patienceMs = 15 * 60_000

/** So many failures in a row are more than a hiccup. */
const failuresOfTrouble = 3

const nextTests = 'the next message is the test'
const testIt = (name: string): string => `tocsin sinks test ${name}`

/** What takes others meanwhile may keep some waiting so long, ms; as long as the alert waits. */
const longWaitMs = 3_600_000

interface OwingSink extends SinkReport {
  /** Critical events not told for so long. */
  criticals: number
}

/** Critical events that each sink has owed for so long. */
async function readLongOwed({ ledgers, nowMs }: LedgerParts): Promise<ReadonlyMap<string, number>> {
  const owed = new Map<string, number>()
  const read = ledgers.map(async (ledger) => {
    for (const sink of await readSinkNames(ledger)) {
      const key = ledger.key('owed', sink)
      const count = await ledger.redis.zcount(key, '-inf', nowMs - longWaitMs)
      owed.set(sink, (owed.get(sink) ?? 0) + count)
    }
  })
  await Promise.all(read)
  return owed
}

/** Whether it takes what waits for it; the worst reason alone. */
function judgeSending(
  report: OwingSink,
  judge: Judge,
  { nowMs, isRunning }: LedgerParts,
): Problem | undefined {
  const { name, circuit, pending, diverted, relief, digest, criticals } = report
  const { group = 0, digest: gathered = 0, ...moving } = pending
  const waiting = sumPending({ pending: moving })
  const wait = countItems(waiting + group + gathered)
  const sent = diverted > 0 ? `, ${pluralize(diverted, 'item')} went to a fallback so far` : ''
  const stood = `${wait}${sent}${relief === undefined ? '' : `; ${relief}`}`
  const { state, paused, disabled, trouble, lastSuccessMs } = circuit
  if (paused) {
    const detail = `paused since ${formatUtcTime(paused.sinceMs)}: ${paused.reason}; ${wait}`
    return judge.problem(detail, findRemedy('sink-paused', name), stops(paused.sinceMs))
  }
  if (disabled) {
    const gone = `gone since ${formatUtcTime(disabled.sinceMs)}: ${disabled.reason}; ${stood}`
    return judge.problem(gone, findRemedy('sink-disabled', name), stops(disabled.sinceMs))
  }
  const why = trouble && formatTrouble(trouble, nowMs)
  const never = lastSuccessMs === undefined ? 'it has never taken anything' : undefined
  const all = [why, never, stood].filter((part) => part !== undefined).join('; ')
  if (state === 'half_open' && waiting === 0) {
    return judge.warning(`circuit half_open, ${nextTests}; ${all}`, testIt(name))
  }
  const remedy = findRemedy('circuit-open', name)
  if (state !== 'closed') {
    return judge.problem(`circuit ${state}; ${all}`, remedy, stops(circuit.openedAtMs))
  }
  if (isRunning) {
    const isOver = (dueMs = nowMs): boolean => nowMs - dueMs > patienceMs
    const pendingOnes = `tocsin items list --sink ${name} --state pending`
    if (isOver(report.firstDueMs)) return judge.problem(`work is overdue; ${all}`, remedy)
    if (digest && isOver(digest.nextDueMs)) {
      const detail = `its digest has been due since ${formatUtcTime(digest.nextDueMs)}`
      return judge.problem(detail, findRemedy('digest-overdue', name))
    }
    if (criticals > 0) {
      const owed = `${pluralize(criticals, 'critical event')} not told for over ${formatDuration(longWaitMs)}`
      return judge.problem(`${owed}; ${all}`, pendingOnes)
    }
  }
  if (why === undefined) return undefined
  const isTrouble = never !== undefined || (trouble?.count ?? 0) >= failuresOfTrouble
  const status = isTrouble && waiting > 0 ? 'problem' : 'warning'
  return judge[status](all, remedy, since(trouble?.sinceMs))
}

function countItems(count: number): string {
  return count === 1 ? '1 item waits' : `${count} items wait`
}

/** What the ledger's own counters say. */
async function* judgeAccounting({ ledgers }: LedgerParts): AsyncGenerator<Problem> {
  for (const ledger of ledgers) {
    const { account } = ledger
    const { feeds, sinks } = await readAccounting(ledger)
    for (const [name, { unaccounted }] of [...Object.entries(feeds), ...Object.entries(sinks)]) {
      if (unaccounted === 0) continue
      const detail = `${name}: ${unaccounted} unaccounted for`
      yield about('accounting', account).problem(detail, findRemedy('unaccounted', account))
    }
  }
}
