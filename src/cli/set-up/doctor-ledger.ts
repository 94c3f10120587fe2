/** What `doctor` says of the ledger: what is late, refused, paused, given up or in nobody's hands. */
import { readAuditNotes } from '../../audit/audit-schedule.ts'
import { readLedgerCheckNote } from '../../audit/ledger-check-schedule.ts'
import type { Config } from '../../config/config.ts'
import { reservedSearches } from '../../feed-types/feed-type.ts'
import { formatTrouble } from '../../lib/trouble.ts'
import { createKeys } from '../../redis/keys.ts'
import type { Redis } from '../../redis/connection.ts'
import { redisNow } from '../../redis/scripts.ts'
import { findLead, hasReplicas } from '../../store/account-ledger.ts'
import { openLeftLedgers, readAccounting, sumPending } from '../../store/accounts.ts'
import { type ItemState, scanPendingRecords } from '../../store/records.ts'
import { readQuota } from '../../upstream/rate-limits.ts'
import { type FeedReport, reportFeeds } from '../feeds/feed-report.ts'
import { formatRename } from '../../daemon/accounts.ts'
import { reportAccounts } from '../ledger/accounts.ts'
import type { OpenStore } from '../open/open-store.ts'
import { reportSinks, type SinkReport } from '../sinks/sinks-list.ts'
import { formatDuration, formatUtcTime, pluralize } from '../terminal.ts'
import { about, type DoctorFinding, makeCheck, type Subject } from './doctor-finding.ts'

const timeoutMs = 60_000

interface LedgerParts {
  config: Config
  store: OpenStore
  nowMs: number
  /** Whether some replica has run within the last minute. */
  isRunning: boolean
}

/** Says what is not well of one kind of thing; empty: all is. Changes nothing and asks nobody else. */
type Probe = (parts: LedgerParts) => Promise<DoctorFinding[]>

const probes: readonly Probe[] = [
  probeDaemon,
  probeAccounts,
  probeFeeds,
  probeSinks,
  probeAudits,
  probeAccounting,
]

/** Opens the ledgers that are there, and creates none. */
export async function checkLedger(
  redis: Redis,
  config: Config,
  stop: AbortSignal,
): Promise<DoctorFinding[]> {
  const subject = about('ledger', config.redis.prefix)
  return makeCheck(subject, { timeoutMs, stop }, async () => {
    const keys = createKeys(config.redis.prefix)
    const ledgers = await openLeftLedgers({ redis, keys, config: config.ledger }, [])
    if (ledgers.length === 0) return [subject.good('nothing was taken in yet')]
    await findLead({ redis, keys }, ledgers)
    const store = { redis, keys, ledgers }
    const [nowMs, isRunning] = [await redisNow(store), await hasReplicas(redis, keys)]
    const found: DoctorFinding[] = []
    for (const probe of probes) found.push(...(await probe({ config, store, nowMs, isRunning })))
    return found.length > 0 ? found : [subject.good(describeWell(config))]
  })
}

function describeWell({ accounts, feeds, sinks }: Config): string {
  const all = [
    pluralize(accounts.length, 'account'),
    pluralize(feeds.length, 'feed'),
    pluralize(sinks.length, 'sink'),
  ]
  return `${all.join(', ')}: nothing is late, refused, paused or given up`
}

async function probeDaemon({ store, isRunning }: LedgerParts): Promise<DoctorFinding[]> {
  if (isRunning) return []
  const detail = 'none has run for a minute: nothing is polled or sent'
  return [about('daemon', store.keys.shared()).bad('problem', detail, 'start it: tocsin run')]
}

async function probeAccounts({ config, store, nowMs }: LedgerParts): Promise<DoctorFinding[]> {
  const reports = await reportAccounts(store, config)
  return reports.flatMap(({ entry, isConfigured, holdings, trouble, renames }) => {
    const subject = about('account', entry.name)
    const found = renames.map((rename) => {
      const { said, remedy } = formatRename(rename)
      return subject.bad('warning', said, remedy)
    })
    if (trouble) {
      const remedy = 'give it a valid key, then: tocsin token test'
      found.push(subject.bad('problem', `its key: ${formatTrouble(trouble, nowMs)}`, remedy))
    }
    if (isConfigured) return found
    const { pendingTotal = 0, deadLetters = 0 } = holdings ?? {}
    if (pendingTotal + deadLetters === 0) return found
    const left = `${pluralize(pendingTotal, 'item')} and ${pluralize(deadLetters, 'dead letter')}`
    const remedy = `bring it back under its name, or: tocsin accounts discard ${entry.name}`
    return [...found, subject.bad('problem', `not configured any more, and holds ${left}`, remedy)]
  })
}

async function probeFeeds(parts: LedgerParts): Promise<DoctorFinding[]> {
  const found: DoctorFinding[] = []
  for (const report of await reportFeeds(parts.store, parts.config)) {
    const { feed, state, quarantined } = report
    if (state === undefined) continue // no daemon has had it yet
    const subject = about('feed', feed.name)
    found.push(
      ...judgeReading(report, subject, parts),
      ...(await judgeQuota(report, subject, parts)),
    )
    if (state.rescanTrouble) {
      const detail = `its rescans: ${formatTrouble(state.rescanTrouble, parts.nowMs)}`
      found.push(subject.bad('warning', detail, 'what comes late is not found meanwhile'))
    }
    if (quarantined > 0) {
      const detail = `${pluralize(quarantined, 'item')} in the quarantine, which nobody was told of`
      found.push(subject.bad('problem', detail, `tocsin quarantine list --feed ${feed.name}`))
    }
  }
  return found
}

/** Whether its tail gets on; the worst reason alone. */
function judgeReading(
  { feed, state, lagMs = 0, lagObjectiveMs }: FeedReport,
  subject: Subject,
  { nowMs, isRunning }: LedgerParts,
): DoctorFinding[] {
  const { paused, refused, unreadable, trouble, isBackfilling } = state ?? {}
  if (unreadable) {
    const { unread, shown, problem } = unreadable
    const detail = `${unread} of ${shown} items of its last page cannot be read: ${problem}`
    return [subject.bad('problem', detail, `tocsin quarantine list --feed ${feed.name}`)]
  }
  if (paused) {
    const detail = `paused since ${formatUtcTime(paused.sinceMs)}: ${paused.reason}`
    return [subject.bad('problem', detail, `tocsin feeds resume ${feed.name}`)]
  }
  const why = trouble && formatTrouble(trouble, nowMs)
  if (refused) {
    const detail = [`stopped: ${refused.reason}`, ...(why === undefined ? [] : [why])].join('; ')
    return [subject.bad('problem', detail, "give the key's user access, or use another type")]
  }
  const isLate = lagMs > lagObjectiveMs && isRunning // else it follows from the daemon
  if (!isLate && why === undefined) return []
  const lag = `lag ${formatDuration(lagMs)}, objective ${formatDuration(lagObjectiveMs)}`
  if (why !== undefined) {
    const remedy = 'see whether key and service are well above; tocsin feeds list'
    return [subject.bad(isLate ? 'problem' : 'warning', `${lag}; ${why}`, remedy)]
  }
  const remedy = 'tocsin feeds list --why'
  return isBackfilling
    ? [subject.bad('warning', `${lag}: works off a backlog`, remedy)]
    : [subject.bad('problem', lag, remedy)]
}

async function judgeQuota(
  { feed, state }: FeedReport,
  subject: Subject,
  { store }: LedgerParts,
): Promise<DoctorFinding[]> {
  const reserve = reservedSearches(feed, state?.scan)
  const quota = reserve > 0 ? await readQuota(store.redis, store.keys, feed.account) : undefined
  if (quota === undefined || quota.remaining > reserve) return []
  const detail = `stands still: ${quota.remaining} searches remain, ${reserve} are reserved`
  return [subject.bad('problem', detail, 'wait for the next month, or lower quota_reserve')]
}

async function probeSinks(parts: LedgerParts): Promise<DoctorFinding[]> {
  const reports = await reportSinks(parts.store, parts.config)
  const longWaits = await readLongWaits(parts, reports)
  return reports.flatMap((report) => {
    const { name, type, pending, deadLetters } = report
    const subject = about('delivery', name)
    const found: DoctorFinding[] = []
    const waiting = sumPending({ pending })
    if (type === undefined && waiting > 0) {
      const remedy = `tocsin sinks move ${name} --to <sink>, or tocsin sinks discard ${name}`
      found.push(subject.bad('problem', `not configured any more, ${countItems(waiting)}`, remedy))
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
      found.push(subject.bad('problem', detail, `tocsin dead-letters list --sink ${name}`))
    }
    return found
  })
}

/** How late work or a digest may be before it is said, ms; as long as the alerts wait. */
const patienceMs = 15 * 60_000

/** So many failures in a row are more than a hiccup. */
const failuresOfTrouble = 3

const nextTests = 'the next message is the test'
const testIt = (name: string): string => `tocsin sinks test ${name}`

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
  { store: { ledgers }, nowMs }: LedgerParts,
  sinks: readonly SinkReport[],
): Promise<Map<string, Required<LongWaits>>> {
  const waits = new Map(sinks.map(({ name }) => [name, { criticals: 0, tried: 0 }]))
  const beforeMs = nowMs - longWaitMs
  for (const ledger of ledgers) {
    for (const [sink, wait] of waits) {
      wait.criticals += await ledger.redis.zcount(ledger.key('owed', sink), '-inf', beforeMs)
    }
    for await (const { firstSeenMs, items } of scanPendingRecords(ledger)) {
      if (firstSeenMs > beforeMs) break // the longest pending come first
      const late = items.filter((one) => triedStates.has(one.state) && one.createdAtMs <= beforeMs)
      for (const [name, wait] of waits)
        wait.tried += late.filter(({ sink }) => sink === name).length
    }
  }
  return waits
}

type WaitingSink = SinkReport & LongWaits

function judgeSending(
  { name, circuit, pending, diverted, relief, firstDueMs, digest, ...long }: WaitingSink,
  subject: Subject,
  { nowMs, isRunning }: LedgerParts,
): DoctorFinding[] {
  const { group = 0, digest: gathered = 0, ...moving } = pending
  const waiting = sumPending({ pending: moving })
  const wait = countItems(waiting + group + gathered)
  const sent = diverted > 0 ? `, ${pluralize(diverted, 'item')} went to a fallback so far` : ''
  const stood = `${wait}${sent}${relief === undefined ? '' : `; ${relief}`}`
  const { state, paused, disabled, trouble, lastSuccessMs } = circuit
  if (paused) {
    const detail = `paused since ${formatUtcTime(paused.sinceMs)}: ${paused.reason}; ${wait}`
    return [subject.bad('problem', detail, `tocsin sinks resume ${name}`)]
  }
  const why = trouble && formatTrouble(trouble, nowMs)
  if (disabled) {
    const gone = `gone since ${formatUtcTime(disabled.sinceMs)}: ${disabled.reason}; ${stood}`
    const remedy = `correct its address; if it is right: tocsin sinks resume ${name}`
    return [subject.bad('problem', gone, remedy)]
  }
  const never = lastSuccessMs === undefined ? 'it has never taken anything' : undefined
  const about = [why, never, stood].filter((part) => part !== undefined).join('; ')
  if (state === 'half_open' && waiting === 0) {
    return [subject.bad('warning', `circuit half_open, ${nextTests}; ${about}`, testIt(name))]
  }
  const remedy = `${testIt(name)}; once it is mended: tocsin sinks resume ${name}`
  if (state !== 'closed') return [subject.bad('problem', `circuit ${state}; ${about}`, remedy)]
  const isFailing = never !== undefined || (trouble?.count ?? 0) >= failuresOfTrouble
  if (isRunning && isOver(firstDueMs, nowMs)) {
    return [subject.bad('problem', `work is overdue; ${about}`, remedy)]
  }
  if (isRunning && isOver(digest?.nextDueMs, nowMs)) {
    const detail = `its digest has been due since ${formatUtcTime(digest?.nextDueMs ?? 0)}`
    return [subject.bad('problem', detail, 'look at the log of every replica')]
  }
  const { criticals = 0, tried = 0 } = isRunning ? long : {}
  const listThem = `tocsin deliveries list --sink ${name} --state pending`
  if (criticals > 0) {
    const owed = `${pluralize(criticals, 'critical event')} not told ${forLong}`
    return [subject.bad('problem', `${owed}; ${about}`, listThem)]
  }
  if (why !== undefined && isFailing && waiting > 0) return [subject.bad('problem', about, remedy)]
  if (tried > 0) {
    const late = `${pluralize(tried, 'item')} on the way ${forLong}`
    return [subject.bad('warning', `${late}; ${about}`, listThem)]
  }
  return why === undefined ? [] : [subject.bad('warning', about, remedy)]
}

function isOver(dueMs: number | undefined, nowMs: number): boolean {
  return dueMs !== undefined && nowMs - dueMs > patienceMs
}

function countItems(count: number): string {
  return count === 1 ? '1 item waits' : `${count} items wait`
}

async function probeAudits({ config, store }: LedgerParts): Promise<DoctorFinding[]> {
  const notes = await readAuditNotes(store.redis, store.keys)
  return config.feeds.flatMap(({ name }) => {
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
async function probeAccounting({ store }: LedgerParts): Promise<DoctorFinding[]> {
  const { redis, keys, ledgers } = store
  const found: DoctorFinding[] = []
  const add = (account: string, detail: string): void => {
    found.push(about('accounting', account).bad('problem', detail, 'tocsin audit --ledger'))
  }
  for (const ledger of ledgers) {
    const { feeds, sinks } = await readAccounting(ledger)
    for (const [name, { unaccounted }] of [feeds, sinks].flatMap(Object.entries<Unaccounted>)) {
      if (unaccounted !== 0) add(ledger.account, `${name}: ${unaccounted} unaccounted for`)
    }
  }
  const { discrepancies = {}, endedAtMs = 0 } = (await readLedgerCheckNote(redis, keys)) ?? {}
  for (const [sink, count] of Object.entries(discrepancies)) {
    if (count === 0) continue
    add(sink || 'index', `${count} discrepancies by the check of ${formatUtcTime(endedAtMs)}`)
  }
  return found
}
