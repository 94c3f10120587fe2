/**
 * What a digest says: everything that its window collected, judged and counted. Nothing here changes
 * anything, so that a preview and the message that is sent come from the same hands.
 */
import { readAccounting } from '../ledger/accounting.ts'
import type { Book } from '../ledger/book.ts'
import { readItems, type FoundItem } from '../ledger/records.ts'
import { renderMessage } from '../messages/message.ts'
import type { ServiceLink } from '../messages/message-subject.ts'
import { compareForDigest, createTally, perDay, type SummaryPart } from '../messages/summarise.ts'
import type { AlreadySent, DigestFacts, Summary } from '../messages/summary.ts'
import { localDay } from '../runtime/time-zone.ts'
import type { CollectingSink, SinkDigest } from './placement.ts'
import { readMembers, type Member } from './read-members.ts'
import { messageIdOf, sealedMembers } from './seal.ts'
import type { MessageAbout } from './sealed-message.ts'
import { membersOf, readFence, type Fence, type Turn } from './timers.ts'
import type { TurnOptions } from './turn-options.ts'

/** A digest that comes so long after its time says that it is late. */
const lateMs = 15 * 60_000

/** Immediate events that a digest lists as sent already. */
const maxTold = 50

/** Records in one reply of Redis: each may be some hundred kilobytes with its payload. */
const readAtOnce = 100

/** One window of one destination's digest, about to end at `nowMs`. */
export interface DigestWork {
  turn: Turn
  sink: CollectingSink
  digest: SinkDigest
  nowMs: number
}

/** What waits in one book. */
export interface Collected {
  book: Book
  /** The collection as it was before its members were read. */
  fence: Fence
  /** Of a turn that was cut off: in the message already, unjudged. */
  sealed: Member[]
  fresh: Member[]
}

export interface DigestDraft {
  about: MessageAbout
  /** What the message stands for, in its order. */
  going: Member[]
}

/** The message as it would be now. */
export async function draftDigest(options: TurnOptions, work: DigestWork): Promise<DigestDraft> {
  const collected = await collectDigest(options, work.turn)
  const suppressed = collected
    .flatMap(({ fresh }) => fresh)
    .filter(({ verdict }) => verdict.act === 'suppress').length
  const about = await composeDigest(options, work, collected, { uncounted: suppressed })
  return { about, going: goingOf(collected) }
}

export async function collectDigest(
  { books, gate }: TurnOptions,
  turn: Turn,
): Promise<Collected[]> {
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
export function goingOf(collected: readonly Collected[]): Member[] {
  return collected
    .flatMap(({ sealed, fresh }) => [
      ...sealed,
      ...fresh.filter(({ verdict }) => verdict.act === 'send'),
    ])
    .toSorted(compareForDigest)
}

/** `uncounted`: how many of the members are suppressed and not in the ledger's counters yet. */
export async function composeDigest(
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
  const recipients = Math.max(1, sink.destinations.length)
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

export interface Totals {
  suppressed: number
  dead: number
  diverted: number
}

/** What the ledger counts for a sink: noted at the end of a window, to know what the next one adds. */
export async function readTotals(
  { books }: Pick<TurnOptions, 'books'>,
  sink: string,
): Promise<Totals> {
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
