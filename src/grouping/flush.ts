/**
 * A digest: what a schedule collected for one destination, over all accounts, in one message. A window
 * that was missed comes late and says so; nothing of it is lost and nothing comes twice.
 */
import { localDay } from '../lib/time-zone.ts'
import { renderMessage, type ServiceLink } from '../messages/message.ts'
import {
  type AlreadySent,
  compareForDigest,
  createTally,
  type DigestFacts,
  perDay,
  type Summary,
  type SummaryPart,
} from '../messages/summary.ts'
import type { Book } from '../store/account-ledger.ts'
import { readAccounting } from '../store/accounts.ts'
import { type FoundItem, readItems } from '../store/records.ts'
import type { TurnOptions } from './flush-context.ts'
import {
  closeSeal,
  type MessageAbout,
  messageIdOf,
  rankOf,
  sealedMembers,
  sealMembers,
} from './freeze.ts'
import { groupTurn, type Member, readMembers, tellSuppressed } from './group-flush.ts'
import { type CollectingSink, digestIdOf, type SinkDigest } from './placement.ts'
import {
  claimTurn,
  type Fence,
  membersOf,
  peekTurn,
  postpone,
  readFence,
  timerOf,
  type Turn,
} from './timers.ts'

const maxTries = 3

/** Resolves with the number of messages made. */
export async function digestTurn(options: TurnOptions, turn: Turn): Promise<number> {
  const sink = options.sinks.get(turn.sink)
  const digest = sink?.digest
  const nowMs = options.clock.now()
  const isStill = sink?.destinations.some(({ id }) => id === turn.about.destination) === true
  if (!sink || !digest || !isStill) return groupTurn(options, [turn]) // it is no digest any more
  const windowEndMs = digest.schedule.next(turn.fromMs ?? turn.openedAtMs)
  if (windowEndMs > nowMs || turn.book !== options.books[0]) {
    // the schedule was changed, or the turn is another book's, which goes with the first
    await postpone(turn.book, [turn.timer], digest.schedule.next(nowMs))
    return 0
  }
  return endWindow(options, { turn, sink, digest, nowMs })
}

/** A sink that has a digest. */
export type DigestSink = CollectingSink & { digest: SinkDigest }

/**
 * Ends a destination's window now, whatever its schedule says; the next one begins here and ends at its
 * time. Resolves with the number of messages made, or undefined where a replica has just this turn.
 */
export async function endWindowNow(
  options: TurnOptions,
  sink: DigestSink,
  destination: string,
): Promise<number | undefined> {
  const [book] = options.books
  if (!book) return undefined
  const nowMs = options.clock.now()
  await ensureDigest(options, sink, { destination, nowMs })
  const id = digestIdOf(destination)
  const setMs = (await timerOf(book, id, sink.name)) ?? nowMs
  const turn = await claimTurn(book, `c:${id}:${sink.name}`, Math.max(nowMs, setMs))
  if (!turn) return undefined
  const dueAtMs = Math.min(turn.dueAtMs, nowMs)
  return endWindow(options, { turn: { ...turn, dueAtMs }, sink, digest: sink.digest, nowMs })
}

/** What a destination's digest would say if its window ended now; changes nothing. */
export async function previewWindow(
  options: TurnOptions,
  sink: DigestSink,
  destination: string,
): Promise<DigestDraft> {
  const [book] = options.books
  if (!book) throw new Error('a digest is previewed without a book')
  const nowMs = options.clock.now()
  const turn = await peekTurn(book, { id: digestIdOf(destination), sink: sink.name, nowMs })
  return draftDigest(options, { turn, sink, digest: sink.digest, nowMs })
}

async function endWindow(options: TurnOptions, work: DigestWork): Promise<number> {
  for (let tries = 0; tries < maxTries; tries += 1) {
    const made = await tryDigest(options, work)
    if (made !== 'again') return made
  }
  return 0
}

async function tryDigest(options: TurnOptions, work: DigestWork): Promise<number | 'again'> {
  const { turn, digest, nowMs } = work
  const collected = await sealAll(options, turn, await collectDigest(options, turn))
  if (!collected) return 0
  const about = await composeDigest(options, work, collected)
  const note = JSON.stringify(await readTotals(options, turn.sink))
  const isSent = about.summary.total > 0 || digest.sendsEmpty
  // the other books first: once the first book has the message, nothing joins it anywhere
  for (const { book, fence, sealed, fresh } of collected.toReversed()) {
    const isLead = book === turn.book
    const closed = await closeSeal(book, {
      messageId: messageIdOf(turn),
      members: sealed.length + fresh.filter(({ verdict }) => verdict.act === 'send').length,
      turns: [{ turn: { ...turn, book, fence }, nextMs: digest.schedule.next(nowMs) }],
      window: { toMs: nowMs, note },
      ...(isLead &&
        isSent && { message: { sink: turn.sink, destination: turn.about.destination, about } }),
    })
    if (closed.status === 'again') return 'again'
    if (isLead && closed.ref !== '') {
      await options.tell(book.account, [{ sink: turn.sink, rank: rankOf(about) }])
    }
  }
  return isSent ? 1 : 0
}

/**
 * What the message holds in the end; undefined where another replica has ended the turn. A book that a
 * try that was cut off had closed already takes nothing more: what came since waits for the next one.
 */
async function sealAll(
  options: TurnOptions,
  turn: Turn,
  collected: readonly Collected[],
): Promise<Collected[] | undefined> {
  const messageId = messageIdOf(turn)
  const order = new Map(goingOf(collected).map(({ account, ref }, at) => [`${account} ${ref}`, at]))
  const all: Collected[] = []
  for (const { book, fence, sealed, fresh } of collected) {
    const sorted = fresh
      .filter(({ verdict }) => verdict.act !== 'hold') // it waits for the next one
      .map((member) => ({ ...member, order: order.get(`${member.account} ${member.ref}`) ?? 0 }))
    const isOpen = await sealMembers(book, { messageId, leadId: turn.id, fence }, sorted)
    if (!isOpen && book === turn.book) return undefined
    if (isOpen) tellSuppressed(options, turn.sink, fresh)
    all.push({ book, fence, sealed, fresh: isOpen ? fresh : [] })
  }
  return all
}

/** Gives every configured digest its timer, so that an empty one comes too; a set one stays. */
export async function ensureDigests(
  { books, sinks }: Pick<TurnOptions, 'books' | 'sinks'>,
  nowMs: number,
): Promise<void> {
  for (const sink of sinks.values()) {
    if (!hasDigest(sink)) continue
    for (const { id: destination } of sink.destinations) {
      await ensureDigest({ books }, sink, { destination, nowMs })
    }
  }
}

export function hasDigest(sink: CollectingSink): sink is DigestSink {
  return sink.digest !== undefined
}

async function ensureDigest(
  { books }: Pick<TurnOptions, 'books'>,
  { name, digest }: DigestSink,
  { destination, nowMs }: { destination: string; nowMs: number },
): Promise<void> {
  const [book] = books
  if (!book) return
  const id = digestIdOf(destination)
  const from = await book.redis.hget(book.key('gather', id), 'from')
  const setMs = await timerOf(book, id, name)
  const nextMs = digest.schedule.next(nowMs)
  // one that is set stays, unless the schedule was changed and has an earlier time to come
  if (from !== null && setMs !== undefined && setMs <= nextMs) return
  const missedMs = from === null ? nextMs : digest.schedule.next(Number(from))
  const atMs = setMs === undefined ? missedMs : nextMs
  const about = JSON.stringify({ destination, route: null, labels: {}, feed: null })
  const note = JSON.stringify(await readTotals({ books }, name))
  await book.run('ensure-digest', id, name, atMs, about, nowMs, note)
}

/**
 * What a digest says: everything that its window collected, judged and counted. Nothing here changes
 * anything, so that a preview and the message that is sent come from the same hands.
 */

/** A digest that comes so long after its time says that it is late. */
const lateMs = 15 * 60_000

/** Immediate events that a digest lists as sent already. */
const maxTold = 50

/** Records in one reply of Redis: each may be some hundred kilobytes with its payload. */
const readAtOnce = 100

/** One window of one destination's digest, about to end at `nowMs`. */
interface DigestWork {
  turn: Turn
  sink: CollectingSink
  digest: SinkDigest
  nowMs: number
}

/** What waits in one book. */
interface Collected {
  book: Book
  /** The collection as it was before its members were read. */
  fence: Fence
  /** Of a turn that was cut off: in the message already, unjudged. */
  sealed: Member[]
  fresh: Member[]
}

interface DigestDraft {
  about: MessageAbout
  /** What the message stands for, in its order. */
  going: Member[]
}

/** The message as it would be now. */
async function draftDigest(options: TurnOptions, work: DigestWork): Promise<DigestDraft> {
  const collected = await collectDigest(options, work.turn)
  const suppressed = collected
    .flatMap(({ fresh }) => fresh)
    .filter(({ verdict }) => verdict.act === 'suppress').length
  const about = await composeDigest(options, work, collected, { uncounted: suppressed })
  return { about, going: goingOf(collected) }
}

async function collectDigest({ books, gate }: TurnOptions, turn: Turn): Promise<Collected[]> {
  const messageId = messageIdOf(turn)
  const collected: Collected[] = []
  for (const book of books) {
    collected.push({
      book,
      fence: book === turn.book ? turn.fence : await readFence(book, turn.id),
      sealed: await readMembers(book, await sealedMembers(book, messageId)),
      fresh: await readMembers(book, await membersOf({ book, id: turn.id }), gate),
    })
  }
  return collected
}

/** What goes into the message, in its order. */
function goingOf(collected: readonly Collected[]): Member[] {
  return collected
    .flatMap(({ sealed, fresh }) => [
      ...sealed,
      ...fresh.filter(({ verdict }) => verdict.act === 'send'),
    ])
    .toSorted(compareForDigest)
}

/** `uncounted`: how many of the members are suppressed and not in the ledger's counters yet. */
async function composeDigest(
  options: TurnOptions,
  { turn, sink, digest, nowMs }: DigestWork,
  collected: readonly Collected[],
  { uncounted = 0 } = {},
): Promise<MessageAbout> {
  const going = goingOf(collected)
  const tally = createTally()
  for (const member of going) tally.add(member)
  const fromMs = turn.fromMs ?? turn.openedAtMs
  // its timer is put off while nothing can be sent, its window is not
  const dueAtMs = Math.min(turn.dueAtMs, digest.schedule.next(fromMs))
  const told = await alreadySent(options, turn, nowMs)
  const since = totalsSince(await readTotals(options, turn.sink), turn.note)
  const recipients = sink.destinations.length
  const held = collected
    .flatMap(({ fresh }) => fresh)
    .filter(({ verdict }) => verdict.act === 'hold')
  const facts: DigestFacts = {
    fromMs,
    toMs: nowMs,
    dueAtMs,
    isLate: nowMs - dueAtMs > lateMs,
    timeZone: digest.timeZone,
    perDay: perDay(going, (atMs) => localDay(atMs, digest.timeZone), { fromMs, toMs: nowMs }),
    feeds: await options.coverage(fromMs),
    held: held.length,
    suppressed: Math.ceil((since.suppressed + uncounted) / recipients),
    dead: Math.ceil(since.dead / recipients),
    diverted: Math.ceil(since.diverted / recipients),
    alreadySent: told.listed,
    alreadySentTotal: told.total,
    alreadySentBySeverity: told.bySeverity,
  }
  return {
    summary: tally.finish({ kind: 'digest', labels: {}, route: null, digest: facts }),
    shown: going.slice(0, digest.maxItems).map(({ account, ref }) => ({ account, ref })),
    accounts: [...new Set(going.map(({ account }) => account))],
    repeatRisks: Math.max(0, ...going.map(({ repeatRisks }) => repeatRisks)),
  }
}

interface Told {
  book: Book
  ref: string
  part: SummaryPart
  entry: AlreadySent
}

/** What went to the destination at once within the window; what was kept from it or died did not. */
async function alreadySent(
  { books, serviceLink }: TurnOptions,
  { id }: Turn,
  untilMs: number,
): Promise<{ listed: AlreadySent[]; total: number; bySeverity: Summary['bySeverity'] }> {
  const told: Told[] = []
  for (const book of books) {
    const refs = await book.redis.zrangebyscore(book.key('told', id), '-inf', untilMs)
    for (let from = 0; from < refs.length; from += readAtOnce) {
      const items = await readItems(book, refs.slice(from, from + readAtOnce))
      const delivered = items.filter(({ item }) => item.state === 'delivered')
      told.push(...delivered.map((found) => toldOf(book, found)))
    }
  }
  const tally = createTally()
  for (const { part } of told) tally.add(part)
  const { bySeverity } = tally.finish({ kind: 'digest', labels: {}, route: null })
  const worst = told.toSorted((a, b) => compareForDigest(a.part, b.part)).slice(0, maxTold)
  return { listed: await titled(worst, serviceLink), total: told.length, bySeverity }
}

/** Without its payload: there may be a hundred thousand. */
function toldOf(book: Book, { ref, record, item }: FoundItem): Told {
  const sentAtMs = item.endedAtMs ?? item.createdAtMs
  const { severity } = item
  const entry = { severity, type: record.type, uid: record.uid, sentAtMs }
  const part = {
    severity,
    type: record.type,
    feed: '',
    identifiers: [],
    fetchedAtMs: sentAtMs,
    createdAtMs: sentAtMs,
  }
  return { book, ref, part, entry }
}

async function titled(worst: readonly Told[], serviceLink: ServiceLink): Promise<AlreadySent[]> {
  const listed: AlreadySent[] = []
  for (const { book, ref, entry } of worst) {
    const [found] = await readItems(book, [ref])
    if (!found?.payload) {
      listed.push(entry)
      continue
    }
    const { record, item, payload } = found
    const feed = record.sightings[item.sighting]?.feed ?? ''
    const { account } = record
    const url = serviceLink(account, payload.event.url)
    const subject = { account, feed, routes: item.routes, ...payload, link: url }
    const { title, link } = renderMessage(subject, { attempt: 1, mayBeRepeat: false })
    listed.push({ ...entry, title, serviceLink: link })
  }
  return listed
}

interface Totals {
  suppressed: number
  dead: number
  diverted: number
}

/** What the ledger counts for a sink: noted at the end of a window, to know what the next one adds. */
async function readTotals({ books }: Pick<TurnOptions, 'books'>, sink: string): Promise<Totals> {
  const totals = { suppressed: 0, dead: 0, diverted: 0 }
  for (const book of books) {
    const account = (await readAccounting(book)).sinks[sink]
    totals.suppressed += account?.suppressed ?? 0
    totals.dead += account?.dead ?? 0
    totals.diverted += account?.diverted ?? 0
  }
  return totals
}

function totalsSince(now: Totals, note: string | undefined): Totals {
  const none = { suppressed: 0, dead: 0, diverted: note === undefined ? 0 : now.diverted } // not noted before
  const then = { ...none, ...(JSON.parse(note ?? '{}') as Partial<Totals>) }
  return {
    suppressed: now.suppressed - then.suppressed,
    dead: now.dead - then.dead,
    diverted: now.diverted - then.diverted,
  }
}
