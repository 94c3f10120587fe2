/**
 * Digests: everything that a schedule collected for one destination, over all accounts, in one
 * message. A missed window ends late and the message says so; no item is lost or sent twice.
 */
import { localDay } from '../lib/time-zone.ts'
import { countSeverities, summarise, type DigestFacts, perDay } from '../messages/summary.ts'
import type { AccountLedger } from '../store/account-ledger.ts'
import { readSettledCounts } from '../store/accounts.ts'
import { readSinkNames } from '../store/pending-items.ts'
import type { Item } from '../store/records.ts'
import type { CoverageReading, FlushContext } from './flush-context.ts'
import type { MessageAbout } from './freeze.ts'
import { flushGroups } from './group-flush.ts'
import { readAtOnce, readItemsOf, readUndelivered } from './undelivered.ts'
import { digestGroupId, type Outlet, type SinkDigest } from './placement.ts'
import { type Flush, postponeTimers, readTimerMs } from './timers.ts'
import { endWindow, type LedgerSlice, selectMembers } from './window.ts'

/** What the digests of a pass share. */
export interface DigestReading {
  /** When it began, ms: windows end then, so that it covers each to its end. */
  nowMs: number
  readCoverage: () => Promise<CoverageReading>
  /** The lead, and the ledgers that have or had items for a sink. */
  ledgersFor: (sink: string) => readonly AccountLedger[]
  /** The one account of several whose items a sink has or had; undefined: there is no such one. */
  accountOf: (sink: string) => string | undefined
  /** There are several accounts, whatever the sink gets of them. */
  namesAccounts: boolean
}

export async function readForDigests(options: FlushContext): Promise<DigestReading> {
  const nowMs = options.clock.now()
  const ledgers = options.ledgers.filter(({ account }) => !options.standing.isForeign(account))
  const bySink = await readLedgersBySink(ledgers)
  const namesAccounts = options.ledgers.length > 1
  let coverage: Promise<CoverageReading> | undefined
  return {
    nowMs,
    ledgersFor: bySink.ledgersFor,
    accountOf: (sink) => (namesAccounts ? bySink.soleAccount(sink) : undefined),
    namesAccounts,
    readCoverage: () => (coverage ??= options.readCoverage()),
  }
}

/** All at once: one after the other, hundreds of accounts take a second. */
async function readLedgersBySink(
  given: readonly AccountLedger[],
): Promise<
  Pick<DigestReading, 'ledgersFor'> & { soleAccount: (sink: string) => string | undefined }
> {
  const ledgers = [...given] // those of accounts that left come and go
  const sinks = await Promise.all(
    ledgers.map(async (ledger) => new Set(await readSinkNames(ledger))),
  )
  return {
    ledgersFor: (sink) => ledgers.filter((_ledger, at) => at === 0 || sinks[at]?.has(sink)),
    soleAccount(sink) {
      const [sole, ...others] = ledgers.filter((_ledger, at) => sinks[at]?.has(sink))
      return others.length === 0 ? sole?.account : undefined
    },
  }
}

/**
 * Ends the window if it is due; `read` may be shared with other digests. Resolves with the number of
 * messages made.
 */
export async function flushDigest(
  options: FlushContext,
  flush: Flush,
  read = (): Promise<DigestReading> => readForDigests(options),
): Promise<number> {
  const sink = options.sinks.get(flush.sink)
  const digest = sink?.digest
  const nowMs = options.clock.now()
  const isConfigured = sink?.destinations.some(({ id }) => id === flush.about.destination) === true
  if (!sink || !digest || !isConfigured) {
    // the sink no longer has a digest for this destination, or only a newer configuration has it
    if (await options.standing.checkNewest()) return flushGroups(options, [flush])
    await postponeTimers(flush.ledger, [flush.timer], flush.dueAtMs)
    return 0
  }
  const fromMs = flush.fromMs ?? flush.openedAtMs
  const isAsked = (flush.askedMs ?? -Infinity) >= fromMs // since the last one ended
  const windowEndMs = isAsked ? nowMs : digest.schedule.next(fromMs)
  if (windowEndMs > nowMs || flush.ledger !== options.ledgers[0]) {
    // The schedule changed, or the flush belongs to another account's ledger: the first ledger's
    // flush covers it.
    await postponeTimers(flush.ledger, [flush.timer], digest.schedule.next(nowMs))
    return 0
  }
  return endDigest(options, { flush, sink, digest }, await read())
}

export type DigestSink = Outlet & { digest: SinkDigest }

/**
 * Makes a destination's digest due now, whatever its schedule says; the next window begins with it
 * and ends on schedule.
 */
export async function endWindowNow(
  ledgers: readonly AccountLedger[],
  sink: DigestSink,
  { destination, nowMs }: { destination: string; nowMs: number },
): Promise<void> {
  const [lead] = ledgers
  await ensureDigest({ ledgers }, sink, { destination, nowMs })
  const id = digestGroupId(destination)
  await lead?.redis.hset(lead.key('group', id), 'asked', Math.floor(nowMs))
  await lead?.redis.zadd(lead.key('timers'), 'LT', nowMs, `c:${id}:${sink.name}`)
}

async function endDigest(
  options: FlushContext,
  given: Pick<DigestWindow, 'flush' | 'sink' | 'digest'>,
  reading: DigestReading,
): Promise<number> {
  const { flush, sink, digest } = given
  const { nowMs } = reading
  const ledgers = reading.ledgersFor(sink.name)
  const account = reading.accountOf(sink.name)
  const namesAccounts = reading.namesAccounts && account === undefined
  const window: DigestWindow = { ...given, ...reading, account, namesAccounts }
  return endWindow(options, {
    flushes: [flush],
    ledgers,
    keepsHeld: true,
    async compose(slices) {
      const totals = await readTotals({ ledgers }, sink.name)
      const about = await composeDigest({ ...options, ledgers }, window, { slices, totals })
      const isSent = about.summary.total > 0 || digest.sendsEmpty
      return {
        about: isSent ? about : undefined,
        window: { toMs: nowMs, note: JSON.stringify(totals) },
      }
    },
    nextMs: () => digest.schedule.next(nowMs),
  })
}

/** Sets the timer of every configured digest that has none, so that an empty digest is sent too. */
export async function ensureDigests(
  { ledgers, sinks }: Pick<FlushContext, 'ledgers' | 'sinks'>,
  nowMs: number,
): Promise<void> {
  let ledgersBySink: ReturnType<typeof readLedgersBySink> | undefined
  for (const sink of [...sinks.values()].filter(hasDigest)) {
    for (const { id: destination } of sink.destinations) {
      await ensureDigest({ ledgers }, sink, { destination, nowMs }, async () => {
        const { ledgersFor } = await (ledgersBySink ??= readLedgersBySink(ledgers))
        return ledgersFor(sink.name)
      })
    }
  }
}

export function hasDigest(sink: Outlet): sink is DigestSink {
  return sink.digest !== undefined
}

async function ensureDigest(
  { ledgers }: Pick<FlushContext, 'ledgers'>,
  { name, digest }: DigestSink,
  { destination, nowMs }: { destination: string; nowMs: number },
  findLedgers = (): Promise<readonly AccountLedger[]> => Promise.resolve(ledgers),
): Promise<void> {
  const [ledger] = ledgers
  if (!ledger) return
  const id = digestGroupId(destination)
  const [from, setMs] = await Promise.all([
    ledger.redis.hget(ledger.key('group', id), 'from'),
    readTimerMs(ledger, id, name),
  ])
  const nextMs = digest.schedule.next(nowMs)
  // A timer that is set stays, unless the schedule changed and now has an earlier time. A window
  // that begins after now is of a clock that was set back.
  const hasBegun = from !== null && Number(from) <= nowMs
  if (hasBegun && setMs !== undefined && setMs <= nextMs) return
  const missedMs = hasBegun ? digest.schedule.next(Number(from)) : nextMs
  const atMs = setMs === undefined ? missedMs : nextMs
  const about = JSON.stringify({ destination, route: null, labels: {}, feed: null })
  const note = JSON.stringify(await readTotals({ ledgers: await findLedgers() }, name))
  await ledger.run('ensure-digest', id, name, atMs, about, nowMs, note)
}

/** A digest sent later than this after its due time says that it is late. */
const lateAfterMs = 15 * 60_000

interface DigestWindow extends Pick<DigestReading, 'nowMs' | 'readCoverage'> {
  flush: Flush
  /** The digest is of this account alone, of several. */
  account: string | undefined
  /** Its events may be of several accounts. */
  namesAccounts: boolean
  sink: Outlet
  digest: SinkDigest
}

interface DigestContents {
  slices: readonly LedgerSlice[]
  totals: Totals
}

async function composeDigest(
  options: FlushContext,
  window: DigestWindow,
  { slices, totals }: DigestContents,
): Promise<MessageAbout> {
  const { flush, sink, digest, nowMs, account, readCoverage } = window
  const members = selectMembers(slices)
  const fromMs = Math.min(flush.fromMs ?? flush.openedAtMs, nowMs)
  // The timer is postponed while nothing can be sent, the window is not.
  const dueAtMs = Math.min(flush.dueAtMs, digest.schedule.next(fromMs))
  const since = totalsSince(totals, flush.note)
  const coverage = await readCoverage()
  const recipients = sink.destinations.length
  const { destination } = flush.about
  const dead = await readUndelivered(
    options.ledgers,
    { ...window, sink: sink.name, destination, fromMs, toMs: nowMs },
    options.pageAddress,
  )
  const held = slices.flatMap(({ fresh }) => fresh).filter(({ verdict }) => verdict.act === 'hold')
  const facts: DigestFacts = {
    ...(account !== undefined && { account }),
    fromMs,
    toMs: nowMs,
    dueAtMs,
    isLate: nowMs - dueAtMs > lateAfterMs,
    timeZone: digest.timeZone,
    perDay: perDay(members, (atMs) => localDay(atMs, digest.timeZone), { fromMs, toMs: nowMs }),
    feeds: coverage(sink.name),
    held: held.length,
    suppressed: Math.ceil(since.suppressed / recipients),
    dead: dead.total,
    undelivered: dead.worst,
    diverted: Math.ceil(since.diverted / recipients),
    alreadySent: countSeverities(await readAlreadySent(options, window)),
  }
  return {
    summary: summarise(members, { kind: 'digest', labels: {}, route: null, digest: facts }),
    shown: members.slice(0, digest.maxItems).map(({ account, ref }) => ({ account, ref })),
    accounts: [...new Set(members.map(({ account }) => account))],
    repeatRisks: Math.max(0, ...members.map(({ repeatRisks }) => repeatRisks)),
  }
}

/**
 * Reads what was sent to the destination at once within the window; suppressed and dead items are
 * left out.
 */
async function readAlreadySent(
  { ledgers }: FlushContext,
  { flush, nowMs }: DigestWindow,
): Promise<Pick<Item, 'severity'>[]> {
  const sent: Pick<Item, 'severity'>[] = []
  for (const ledger of ledgers) {
    const refs = await ledger.redis.zrangebyscore(ledger.key('listed', flush.id), '-inf', nowMs)
    // of a hundred thousand records no more than these at once
    for (let from = 0; from < refs.length; from += readAtOnce) {
      const some = refs.slice(from, from + readAtOnce)
      const items = await readItemsOf(ledger, some, flush.about.destination)
      const delivered = items.filter(({ item }) => item.state === 'delivered')
      sent.push(...delivered.map(({ item: { severity } }) => ({ severity })))
    }
  }
  return sent
}

interface Totals {
  suppressed: number
  diverted: number
}

/**
 * Reads the ledgers' counters of a sink. They are noted when a window ends, so that the next digest
 * can say what was added since.
 */
async function readTotals(
  { ledgers }: Pick<FlushContext, 'ledgers'>,
  sink: string,
): Promise<Totals> {
  const counts = await Promise.all(ledgers.map((ledger) => readSettledCounts(ledger, sink)))
  const sum = (name: keyof Totals): number =>
    counts.reduce((total, count) => total + count[name], 0)
  return { suppressed: sum('suppressed'), diverted: sum('diverted') }
}

function totalsSince(now: Totals, note: string | undefined): Totals {
  const none = { suppressed: 0, diverted: 0 }
  const before = note === undefined ? none : (JSON.parse(note) as Totals)
  // The note also counts what is gone with the ledger of an account that was discarded since.
  return {
    suppressed: Math.max(0, now.suppressed - before.suppressed),
    diverted: Math.max(0, now.diverted - before.diverted),
  }
}
