/**
 * Makes messages of what was collected: whenever a collection's timer is due, its members are judged,
 * sealed and handed to delivery. Any replica may do any turn; a turn cut off by a crash is taken up
 * again under the same message id. It never sends anything.
 */
import type { Redis } from '../redis/connection.ts'
import type { Keys } from '../redis/keys.ts'
import { type Book, parseRef } from '../store/account-ledger.ts'
import { holdOrphan } from '../store/pending-items.ts'
import type { TurnOptions } from './flush-context.ts'
import { digestTurn } from './flush.ts'
import { freeMembers, messageIdOf } from './freeze.ts'
import { groupTurn } from './group-flush.ts'
import { type CollectingSink, digestIdOf } from './placement.ts'
import {
  claimTurn,
  countMembers,
  dueTimers,
  membersOf,
  postpone,
  type Turn,
  wakeHeld,
} from './timers.ts'

interface Flusher {
  /** One pass over the timers that are due. */
  flushOnce(): Promise<{ messages: number }>
}

/** Timers read at once. */
const pageLength = 200

/** Turns of one book in one pass; their leases last for all of them. */
const maxTurns = 2_000

/** Pages of one pass: a blocked sink's ten thousand groups are put off within it. */
const maxPages = 100

/** How long a blocked sink's turns are put off. */
const blockedMs = 15_000

/**
 * Messages of groups to one destination: so many at once, then one in so many ms, whatever comes. What
 * exceeds it leaves in one message together.
 */
const burst = 8
const refillMs = 10_000

export function createFlusher(options: TurnOptions): Flusher {
  let hasWoken = false
  return {
    async flushOnce() {
      if (!hasWoken && options.mayHold()) {
        // a mute of the configuration before may be over, or end at another time now
        for (const book of options.books) await wakeHeld(book, options.clock.now())
        hasWoken = true
      }
      let messages = 0
      for (const book of options.books) messages += await flushBook(options, book)
      return { messages }
    },
  }
}

async function flushBook(options: TurnOptions, book: Book): Promise<number> {
  const turns = await claimDue(options, book)
  for (const turn of turns) {
    if (options.sinks.get(turn.sink)?.isForPeople === false) await freeAll(options, turn)
  }
  let messages = 0
  for (const turn of turns.filter(({ kind }) => kind === 'digest')) {
    messages += await digestTurn(options, turn)
  }
  const byDestination = Map.groupBy(
    turns.filter(({ kind }) => kind !== 'digest'),
    ({ about }) => about.destination,
  )
  for (const [destination, due] of byDestination) {
    messages += await flushDestination(options, destination, due)
  }
  return messages
}

/** What was collected while the sink was for people goes on singly, now that it is a machine's. */
async function freeAll({ tell }: TurnOptions, turn: Turn): Promise<void> {
  const refs = await membersOf(turn)
  await freeMembers(turn, refs)
  await tell(turn.book.account, [{ sink: turn.sink }])
}

async function claimDue(options: TurnOptions, book: Book): Promise<Turn[]> {
  const { clock } = options
  const turns: Turn[] = []
  const isBlocked = onceForEach(options.isBlocked)
  let left = 0 // of sinks that only another configuration knows: they stay due
  for (let page = 0; page < maxPages && turns.length < maxTurns; page += 1) {
    const due = { nowMs: clock.now(), offset: left, count: pageLength }
    const timers = await dueTimers(book, due)
    for (const [sink, its] of Map.groupBy(timers, (timer) => parseRef(timer).sink)) {
      const isKnown = options.sinks.has(sink)
      if (!isKnown && !options.mayHold()) left += its.length
      else if (!isKnown) await holdRemoved(options, book, { sink, timers: its })
      else if (await isBlocked(sink)) await postpone(book, its, clock.now() + blockedMs)
      else turns.push(...(await claimAll(options, book, its)))
    }
    if (timers.length < pageLength) break
  }
  return turns
}

function onceForEach<T>(ask: (name: string) => Promise<T>): (name: string) => Promise<T> {
  const asked = new Map<string, Promise<T>>()
  return (name) => {
    const answer = asked.get(name) ?? ask(name)
    asked.set(name, answer)
    return answer
  }
}

async function claimAll({ clock }: TurnOptions, book: Book, timers: string[]): Promise<Turn[]> {
  const claimed = await Promise.all(timers.map((timer) => claimTurn(book, timer, clock.now())))
  return claimed.filter((turn) => turn !== undefined)
}

async function holdRemoved(
  { books, clock, logger }: TurnOptions,
  book: Book,
  { sink, timers }: { sink: string; timers: string[] },
): Promise<void> {
  for (const timer of timers) {
    const turn = await claimTurn(book, timer, clock.now())
    // a message that a crash cut off has members already, a digest's in other books too
    const sealed = turn && `b:${messageIdOf(turn)}:${sink}`
    if (sealed) for (const each of books) await holdOrphan(each, sealed)
    await holdOrphan(book, timer)
  }
  logger.warn({ sinks: [sink] }, 'items held: their sink is not in the configuration')
}

async function flushDestination(
  options: TurnOptions,
  destination: string,
  turns: Turn[],
): Promise<number> {
  const { cutOff, idle, ...found } = await sortOut(turns)
  let messages = 0
  // what was cut off has its place in the flow already, and what is idle says nothing
  for (const turn of [...cutOff, ...idle]) messages += await groupTurn(options, [turn])
  // what one sink could not take is told apart from all else: it is one message an interval
  const [diverted, full] = partition(found.full)
  for (const turn of diverted) messages += await groupTurn(options, [turn])
  const [lead] = full
  if (!lead) return messages
  const { book } = lead
  const answer = await book.run('take-flush', destination, full.length, burst, refillMs)
  const [granted, waitMs] = answer as [number, number]
  if (granted === 0) {
    const timers = full.map(({ timer }) => timer)
    await postpone(book, timers, options.clock.now() + waitMs)
    return messages
  }
  if (granted < full.length) return messages + (await groupTurn(options, full))
  for (const turn of full) messages += await groupTurn(options, [turn])
  return messages
}

function partition(turns: Turn[]): [diverted: Turn[], others: Turn[]] {
  const isDiverted = ({ about }: Turn): boolean => about.divertedFrom !== undefined
  return [turns.filter(isDiverted), turns.filter((turn) => !isDiverted(turn))]
}

interface SortedOut {
  /** By a crash, after some members were sealed: the message may hold those of other groups too. */
  cutOff: Turn[]
  /** Nothing came since their last message. */
  idle: Turn[]
  full: Turn[]
}

async function sortOut(turns: Turn[]): Promise<SortedOut> {
  const sorted: SortedOut = { cutOff: [], idle: [], full: [] }
  const places = turns.map(async (turn) => {
    const { book, id } = turn
    const sealed = await book.redis.exists(book.key('sealed', messageIdOf(turn)))
    if (sealed === 1) return 'cutOff'
    return (await book.redis.exists(book.key('collect', id))) === 1 ? 'full' : 'idle'
  })
  for (const [at, place] of (await Promise.all(places)).entries()) {
    const turn = turns[at]
    if (turn) sorted[place].push(turn)
  }
  return sorted
}

export interface DigestState {
  /** Items that wait, over all recipients and accounts. */
  items: number
  /** When the sink last accepted a digest, ms. */
  lastSentMs: number | undefined
  /** When the next one is due, ms: in the past while it is overdue. */
  nextDueMs: number
}

/** undefined for a sink without a digest. */
export async function readDigestState(
  { books, redis, keys }: { books: readonly Book[]; redis: Redis; keys: Keys },
  sink: CollectingSink,
  nowMs: number,
): Promise<DigestState | undefined> {
  const [lead] = books
  const times = lead && (await readDigestTimes({ lead, redis, keys }, sink, nowMs))
  if (!times) return undefined
  let items = 0
  for (const { id: destination } of sink.destinations) {
    for (const book of books) items += await countMembers(book, digestIdOf(destination))
  }
  return { items, ...times }
}

/** The same without the items, from what the leading book holds. */
export async function readDigestTimes(
  { lead, redis, keys }: { lead: Book; redis: Redis; keys: Keys },
  { name, digest, destinations }: CollectingSink,
  nowMs: number,
): Promise<Pick<DigestState, 'lastSentMs' | 'nextDueMs'> | undefined> {
  if (!digest) return undefined
  const due: number[] = []
  for (const { id: destination } of destinations) {
    const from = await lead.redis.hget(lead.key('gather', digestIdOf(destination)), 'from')
    due.push(digest.schedule.next(from === null ? nowMs : Number(from)))
  }
  const sent = await redis.hget(keys.shared('digests-sent'), name)
  return { lastSentMs: sent === null ? undefined : Number(sent), nextDueMs: Math.min(...due) }
}

export async function noteDigestSent(
  redis: Redis,
  keys: Keys,
  { sink, atMs }: { sink: string; atMs: number },
): Promise<void> {
  await redis.hset(keys.shared('digests-sent'), sink, Math.floor(atMs))
}
