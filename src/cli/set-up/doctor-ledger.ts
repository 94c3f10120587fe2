/** What `doctor` says of the ledger: what is late, refused, paused, given up or in nobody's hands. */
import { readAuditNotes } from '../../audit/audit-schedule.ts'
import { readLedgerCheckNote } from '../../audit/ledger-check-schedule.ts'
import type { Config } from '../../config/config.ts'
import { reservedSearches } from '../../feed-types/feed-type.ts'
import { formatTrouble } from '../../lib/trouble.ts'
import { createKeys } from '../../redis/keys.ts'
import type { Redis } from '../../redis/connection.ts'
import { redisNow } from '../../redis/scripts.ts'
import {
  type AccountLedger,
  desertedAfterMs,
  findLead,
  readSilenceMs,
} from '../../store/account-ledger.ts'
import { openLeftLedgers, readAccounting, sumPending } from '../../store/accounts.ts'
import { datedAheadMs, type FeedState } from '../../store/feed-state.ts'
import { readSinkNames } from '../../store/pending-items.ts'
import { type ItemState, scanPendingRecords } from '../../store/records.ts'
import { readCanary } from '../../self-alerts/canary.ts'
import { findRemedy } from '../../self-alerts/troubles.ts'
import { readQuota } from '../../upstream/rate-limits.ts'
import { type FeedReport, reportFeeds } from '../../daemon/for-commands/feed-report.ts'
import { type AccountReport, reportAccounts } from '../ledger/accounts.ts'
import type { OpenStore } from '../open/open-store.ts'
import { settleRemedy } from '../sinks/sinks-list.ts'
import { reportSinks, type SinkReport } from '../../daemon/for-commands/sink-report.ts'
import { formatDuration, formatUtcTime, pluralize } from '../terminal.ts'
import { about, type Finding, type Subject } from './probe.ts'

interface LedgerParts {
  config: Config
  store: OpenStore
  nowMs: number
  /** Whether some replica has run within the last minute. */
  isRunning: boolean
  /** Of those that are looked at, like all that follows. */
  accounts: AccountReport[]
  feeds: FeedReport[]
  ledgers: readonly AccountLedger[]
}

/** Nothing is read or sent meanwhile. */
const stopping = (finding: Finding): Finding => ({ ...finding, stops: true })

/**
 * Opens the ledgers that are there, and creates none; asks nobody else. `account`: looks at this one
 * alone.
 */
export async function checkLedger(
  { redis, config, account }: { redis: Redis; config: Config; account?: string | undefined },
  subject: Subject,
): Promise<Finding[]> {
  const keys = createKeys(config.redis.prefix)
  const ledgers = await openLeftLedgers({ redis, keys, config: config.ledger }, [])
  if (ledgers.length === 0) return [subject.good('nothing was taken in yet')]
  const silentMs = await readSilenceMs(redis, keys)
  const isRunning = silentMs < desertedAfterMs
  await findLead({ redis, keys }, ledgers)
  const store = { redis, keys, ledgers }
  const isWanted = (name: string): boolean => account === undefined || name === account
  const [accounts, feeds] = [await reportAccounts(store, config), await reportFeeds(store, config)]
  const parts = {
    config,
    store,
    isRunning,
    nowMs: await redisNow(store),
    accounts: accounts.filter(({ entry }) => isWanted(entry.name)),
    feeds: feeds.filter(({ feed }) => isWanted(feed.account)),
    ledgers: ledgers.filter((ledger) => isWanted(ledger.account)),
  }
  const found = [
    ...judgeDaemon(silentMs),
    ...judgeAccounts(parts),
    ...(await judgeFeeds(parts)),
    ...(await judgeSinks(parts)),
    ...(await judgeAudits(parts)),
    ...(await judgeAccounting(parts)),
  ]
  return found.length > 0 ? found : [subject.good(describeWell(config))]
}

function describeWell({ accounts, feeds, sinks }: Config): string {
  const all = [
    pluralize(accounts.length, 'account'),
    pluralize(feeds.length, 'feed'),
    pluralize(sinks.length, 'sink'),
  ]
  return `${all.join(', ')}: nothing is late, refused, paused or given up`
}

/** A daemon gives a sign every two seconds, unless its machine is very busy. */
const quietMs = 15_000

export function judgeDaemon(silentMs: number): Finding[] {
  const subject = about('daemon', 'tocsin run')
  if (silentMs >= desertedAfterMs) {
    const detail = 'none has run for a minute: nothing is polled or sent'
    return [subject.bad('problem', detail, 'start it')]
  }
  if (silentMs < quietMs) return []
  const detail = `its last sign was ${formatDuration(silentMs)} ago`
  return [subject.bad('warning', detail, 'start it, unless it is being restarted just now')]
}

function judgeAccounts({ accounts, nowMs }: LedgerParts): Finding[] {
  return accounts.flatMap(({ entry, isConfigured, holdings, trouble }) => {
    const subject = about('account', entry.name)
    const found: Finding[] = []
    if (trouble) {
      const detail = `its key: ${formatTrouble(trouble, nowMs)}`
      found.push(
        stopping(subject.bad('problem', detail, findRemedy('account-refused', entry.name))),
      )
    }
    if (isConfigured) return found
    const { pendingTotal = 0, deadLetters = 0 } = holdings ?? {}
    if (pendingTotal + deadLetters === 0) return found
    const left = `${pluralize(pendingTotal, 'item')} and ${pluralize(deadLetters, 'dead letter')}`
    const detail = `not configured any more, and holds ${left}`
    return [...found, subject.bad('problem', detail, findRemedy('account-left', entry.name))]
  })
}

async function judgeFeeds(parts: LedgerParts): Promise<Finding[]> {
  const found: Finding[] = []
  const refused = new Set(
    parts.accounts.flatMap(({ entry, trouble }) => (trouble ? [entry.name] : [])),
  )
  for (const report of parts.feeds) {
    const { feed, state, quarantined } = report
    if (state === undefined) continue // no daemon has had it yet
    const subject = about('feed', feed.name)
    if (!refused.has(feed.account)) {
      const reading = judgeReading(report, subject, parts)
      const quota = await judgeQuota(report, subject, parts)
      const isReading = reading.length + quota.length === 0 && parts.isRunning
      found.push(...reading, ...quota, ...judgeRescans({ ...report, state, isReading }, subject))
    }
    if (quarantined > 0) {
      const detail = `${pluralize(quarantined, 'item')} in the quarantine, which nobody was told of`
      found.push(subject.bad('problem', detail, findRemedy('items-quarantined', feed.name)))
    }
    const untilMs = datedAheadMs(state)
    if (untilMs === undefined) continue
    const detail = `shows events that are dated ahead of now, up to ${formatUtcTime(untilMs)}`
    const remedy = '"feeds list" states how soon these come: tell the service that a date is wrong'
    found.push(about('dates', feed.name).bad('warning', detail, remedy))
  }
  return found
}

/** So long may the first rescan of all take, ms; as long as the alert waits. */
const firstRescanMs = 48 * 3_600_000

/** Whether its rescans fail, or do not end. `isReading`: nothing keeps them waiting. */
function judgeRescans(
  report: FeedReport & { state: FeedState; isReading: boolean },
  subject: Subject,
): Finding[] {
  const { state, bounds, isReading } = report
  const { nowMs, rescanTrouble, whole, rescans } = state
  const remedy = 'what comes late is not found meanwhile'
  if (rescanTrouble)
    return [subject.bad('warning', `its rescans: ${formatTrouble(rescanTrouble, nowMs)}`, remedy)]
  if (!bounds || !isReading) return []
  const { lastCompletedMs } = whole
  const longestMs = lastCompletedMs === undefined ? firstRescanMs : 3 * bounds.everyMs
  if (nowMs - (lastCompletedMs ?? rescans.firstPollMs ?? nowMs) <= longestMs) return []
  const ended =
    lastCompletedMs === undefined ? 'none' : `the last one ${formatUtcTime(lastCompletedMs)}`
  const detail = `its rescans do not end: ${ended}, due every ${formatDuration(bounds.everyMs)}`
  return [
    subject.bad('warning', detail, `${remedy}: shorten rescan.back, or lengthen rescan.every`),
  ]
}

/** Whether its tail gets on; the worst reason alone. */
function judgeReading(
  { feed, state, lagMs = 0, lagObjectiveMs }: FeedReport,
  subject: Subject,
  { nowMs, isRunning }: LedgerParts,
): Finding[] {
  const { paused, refused, unreadable, trouble, isBackfilling } = state ?? {}
  if (unreadable) {
    const { unread, shown, problem } = unreadable
    const detail = `${unread} of ${shown} items of its last page cannot be read: ${problem}`
    return [subject.bad('problem', detail, findRemedy('feed-unreadable', feed.name))]
  }
  if (paused) {
    const detail = `paused since ${formatUtcTime(paused.sinceMs)}: ${paused.reason}`
    return [stopping(subject.bad('problem', detail, `tocsin feeds resume ${feed.name}`))]
  }
  const why = trouble && formatTrouble(trouble, nowMs)
  if (refused) {
    const detail = [`stopped: ${refused.reason}`, ...(why === undefined ? [] : [why])].join('; ')
    return [stopping(subject.bad('problem', detail, findRemedy('feed-refused', feed.name)))]
  }
  const isLate = lagMs > lagObjectiveMs && isRunning // else it follows from the daemon
  if (!isLate && why === undefined) return []
  const lag = `lag ${formatDuration(lagMs)}, objective ${formatDuration(lagObjectiveMs)}`
  if (why !== undefined) {
    const remedy = 'see whether key and service are well above; tocsin feeds list'
    return [subject.bad(isLate ? 'problem' : 'warning', `${lag}; ${why}`, remedy)]
  }
  const remedy = `tocsin feeds list ${feed.name}`
  return isBackfilling
    ? [subject.bad('warning', `${lag}: works off a backlog`, remedy)]
    : [subject.bad('problem', lag, remedy)]
}

async function judgeQuota(
  { feed, state }: FeedReport,
  subject: Subject,
  { store }: LedgerParts,
): Promise<Finding[]> {
  const reserve = reservedSearches(feed, state?.scan)
  const quota = reserve > 0 ? await readQuota(store.redis, store.keys, feed.account) : undefined
  if (quota === undefined || quota.remaining > reserve) return []
  const detail = `stands still: ${quota.remaining} searches remain, ${reserve} are reserved`
  return [stopping(subject.bad('problem', detail, findRemedy('quota-reserve', feed.name)))]
}

async function judgeSinks(parts: LedgerParts): Promise<Finding[]> {
  const reports = await reportSinks(parts.store, parts.config, parts.ledgers)
  const longWaits = await readLongWaits(parts, reports)
  const canaries = await readCanary(parts.store, parts.config.canary?.sinks ?? [])
  return reports.flatMap((report) => {
    const { name, type, pending, deadLetters } = report
    const subject = about('delivery', name)
    const found: Finding[] = []
    const waiting = sumPending({ pending })
    if (type === undefined && waiting > 0) {
      const detail = `not configured any more, ${countItems(waiting)}`
      found.push(subject.bad('problem', detail, settleRemedy(name)))
    }
    const waits = longWaits.get(name)
    if (type !== undefined) found.push(...judgeSending({ ...report, ...waits }, subject, parts))
    for (const { label, circuit } of report.recipients) {
      const why = circuit.trouble ? formatTrouble(circuit.trouble, parts.nowMs) : 'takes nothing'
      if (circuit.state === 'half_open' && waiting === 0) {
        found.push(subject.bad('warning', `${label} alone: ${nextTests}; ${why}`, testIt(name)))
        continue
      }
      const remedy = `correct ${label} at the mail server or in the file; tocsin sinks resume ${name}`
      found.push(subject.bad('problem', `${label} alone: ${why}`, remedy))
    }
    if (deadLetters > 0) {
      const detail = `${pluralize(deadLetters, 'dead letter')}, which nobody was told of`
      found.push(subject.bad('problem', detail, findRemedy('dead-letters', name)))
    }
    return found.length > 0 ? found : judgeCanary(name, canaries[name], parts)
  })
}

/** Whether test events arrive; as the alert judges. */
function judgeCanary(
  name: string,
  lastMs: number | undefined,
  { config: { canary }, nowMs, isRunning }: LedgerParts,
): Finding[] {
  if (!isRunning || !canary?.sinks.includes(name)) return []
  if (lastMs !== undefined && nowMs - lastMs <= 3 * canary.everyMs) return []
  const last =
    lastMs === undefined ? 'none has arrived yet' : `the last one ${formatUtcTime(lastMs)}`
  const detail = `its canary is late: ${last}, due every ${formatDuration(canary.everyMs)}`
  const status = lastMs === undefined ? 'warning' : 'problem' // it may have been configured just now
  return [about('delivery', name).bad(status, detail, testIt(name))]
}

/** How late work or a digest may be before it is said, ms; as long as the alerts wait. */
const patienceMs = 15 * 60_000

/** So many failures in a row are more than a hiccup. */
const failuresOfTrouble = 3

const nextTests = 'the next message is the test'
const testIt = (name: string): string => `tocsin sinks test ${name}`
const listPending = (name: string): string => `tocsin items list --sink ${name} --state pending`

/** What takes others meanwhile may keep some waiting so long, ms; as long as the alert waits. */
const longWaitMs = 3_600_000
const forLong = `for over ${formatDuration(longWaitMs)}`

interface LongWaits {
  /** Critical events owed for so long. */
  criticals?: number
  /** Items on their way for so long. */
  tried?: number
}

const triedStates: ReadonlySet<ItemState> = new Set(['batch', 'sending', 'retrying'])

async function readLongWaits(
  { ledgers, nowMs }: LedgerParts,
  sinks: readonly SinkReport[],
): Promise<Map<string, Required<LongWaits>>> {
  const waits = new Map(sinks.map(({ name }) => [name, { criticals: 0, tried: 0 }]))
  const beforeMs = nowMs - longWaitMs
  const read = ledgers.map(async (ledger) => {
    for (const sink of await readSinkNames(ledger)) {
      const owed = await ledger.redis.zcount(ledger.key('owed', sink), '-inf', beforeMs)
      const wait = waits.get(sink)
      if (wait) wait.criticals += owed
    }
    for await (const { firstSeenMs, items } of scanPendingRecords(ledger)) {
      if (firstSeenMs > beforeMs) break // the longest pending come first
      for (const { sink, state, createdAtMs } of items) {
        const wait = waits.get(sink)
        if (wait && triedStates.has(state) && createdAtMs <= beforeMs) wait.tried += 1
      }
    }
  })
  await Promise.all(read)
  return waits
}

type WaitingSink = SinkReport & LongWaits

function judgeSending(
  { name, circuit, pending, diverted, relief, firstDueMs, digest, ...long }: WaitingSink,
  subject: Subject,
  { nowMs, isRunning }: LedgerParts,
): Finding[] {
  const { group = 0, digest: gathered = 0, ...moving } = pending
  const waiting = sumPending({ pending: moving })
  const wait = countItems(waiting + group + gathered)
  const sent = diverted > 0 ? `, ${pluralize(diverted, 'item')} went to a fallback so far` : ''
  const stood = `${wait}${sent}${relief === undefined ? '' : `; ${relief}`}`
  const { state, paused, disabled, trouble, lastSuccessMs } = circuit
  if (paused) {
    const detail = `paused since ${formatUtcTime(paused.sinceMs)}: ${paused.reason}; ${wait}`
    return [stopping(subject.bad('problem', detail, findRemedy('sink-paused', name)))]
  }
  const why = trouble && formatTrouble(trouble, nowMs)
  if (disabled) {
    const gone = `gone since ${formatUtcTime(disabled.sinceMs)}: ${disabled.reason}; ${stood}`
    return [stopping(subject.bad('problem', gone, findRemedy('sink-disabled', name)))]
  }
  const never = lastSuccessMs === undefined ? 'it has never taken anything' : undefined
  const about = [why, never, stood].filter((part) => part !== undefined).join('; ')
  if (state === 'half_open' && waiting === 0) {
    return [subject.bad('warning', `circuit half_open, ${nextTests}; ${about}`, testIt(name))]
  }
  const remedy = findRemedy('circuit-open', name)
  if (state !== 'closed')
    return [stopping(subject.bad('problem', `circuit ${state}; ${about}`, remedy))]
  const isFailing = never !== undefined || (trouble?.count ?? 0) >= failuresOfTrouble
  if (isRunning && isOver(firstDueMs, nowMs)) {
    return [subject.bad('problem', `work is overdue; ${about}`, remedy)]
  }
  if (isRunning && isOver(digest?.nextDueMs, nowMs)) {
    const detail = `its digest has been due since ${formatUtcTime(digest?.nextDueMs ?? 0)}`
    return [subject.bad('problem', detail, findRemedy('digest-overdue', name))]
  }
  const { criticals = 0, tried = 0 } = isRunning ? long : {}
  if (criticals > 0) {
    const owed = `${pluralize(criticals, 'critical event')} not told ${forLong}`
    return [subject.bad('problem', `${owed}; ${about}`, listPending(name))]
  }
  if (why !== undefined && isFailing && waiting > 0) return [subject.bad('problem', about, remedy)]
  if (tried > 0) {
    const late = `${pluralize(tried, 'item')} on the way ${forLong}`
    return [subject.bad('warning', `${late}; ${about}`, listPending(name))]
  }
  return why === undefined ? [] : [subject.bad('warning', about, remedy)]
}

function isOver(dueMs: number | undefined, nowMs: number): boolean {
  return dueMs !== undefined && nowMs - dueMs > patienceMs
}

function countItems(count: number): string {
  return count === 1 ? '1 item waits' : `${count} items wait`
}

async function judgeAudits({ feeds, store }: LedgerParts): Promise<Finding[]> {
  const notes = await readAuditNotes(store.redis, store.keys)
  return feeds.flatMap(({ feed: { name } }) => {
    const { missing = 0, endedAtMs = 0 } = notes[name] ?? {}
    if (missing === 0) return []
    const detail = `${pluralize(missing, 'event')} missing by the audit of ${formatUtcTime(endedAtMs)}`
    return [about('audit', name).bad('problem', detail, `tocsin audit --feed ${name} --repair`)]
  })
}

interface Unaccounted {
  unaccounted: number
}

/** What the ledger's own counters and its last check say. */
async function judgeAccounting({ store, ledgers }: LedgerParts): Promise<Finding[]> {
  const { redis, keys } = store
  const found: Finding[] = []
  const add = (account: string, detail: string): void => {
    const remedy = findRemedy('unaccounted', account)
    found.push(about('accounting', account).bad('problem', detail, remedy))
  }
  const read = ledgers.map(async (ledger) => ({ ledger, ...(await readAccounting(ledger)) }))
  for (const { ledger, feeds, sinks } of await Promise.all(read)) {
    for (const [name, { unaccounted }] of [feeds, sinks].flatMap(Object.entries<Unaccounted>)) {
      if (unaccounted !== 0) add(ledger.account, `${name}: ${unaccounted} unaccounted for`)
    }
  }
  if (ledgers.length < store.ledgers.length) return found // the check names no account
  const { discrepancies = {}, endedAtMs = 0 } = (await readLedgerCheckNote(redis, keys)) ?? {}
  for (const [sink, count] of Object.entries(discrepancies)) {
    if (count === 0) continue
    add(sink || 'index', `${count} discrepancies by the check of ${formatUtcTime(endedAtMs)}`)
  }
  return found
}
