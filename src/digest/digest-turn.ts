/**
 * A digest: what a schedule collected for one destination, over all accounts, in one message. A window
 * that was missed comes late and says so; nothing of it is lost and nothing comes twice.
 */
import {
  collectDigest,
  composeDigest,
  draftDigest,
  goingOf,
  readTotals,
  type Collected,
  type DigestDraft,
  type DigestWork,
} from './digest-draft.ts'
import { groupTurn, tellSuppressed } from './group-turn.ts'
import { digestIdOf, type CollectingSink, type SinkDigest } from './placement.ts'
import { closeSeal, messageIdOf, rankOf, sealMembers } from './seal.ts'
import { claimTurn, peekTurn, postpone, timerOf, type Turn } from './timers.ts'
import type { TurnOptions } from './turn-options.ts'

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
