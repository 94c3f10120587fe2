/**
 * Makes messages of what was collected: whenever a collection's timer is due, its members are judged,
 * sealed and handed to delivery. Any replica may do any turn; a turn cut off by a crash is taken up
 * again under the same message id. It never sends anything.
 */
import type { Book } from '../ledger/book.ts'
import { holdOrphan } from '../ledger/collecting.ts'
import { parseRef } from '../ledger/refs.ts'
import { digestTurn } from './digest-turn.ts'
import { groupTurn } from './group-turn.ts'
import { claimTurn, dueTimers, postpone, type Turn } from './timers.ts'
import type { TurnOptions } from './turn-options.ts'

export interface Flusher {
  /** One pass over every timer that is due. */
  flushOnce(): Promise<{ messages: number }>
}

/** Timers looked at in one pass of one book. */
const pageLength = 200

/** How long a blocked sink's turns are put off. */
const blockedMs = 15_000

/**
 * Messages of groups to one destination: so many at once, then one in so many ms, whatever comes. What
 * exceeds it leaves in one message together.
 */
const burst = 8
const refillMs = 10_000

export function createFlusher(options: TurnOptions): Flusher {
  return {
    async flushOnce() {
      let messages = 0
      for (const book of options.books) messages += await flushBook(options, book)
      return { messages }
    },
  }
}

async function flushBook(options: TurnOptions, book: Book): Promise<number> {
  const timers = await dueTimers(book, options.clock.now(), pageLength)
  const turns = await claimKnown(options, book, timers)
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

async function claimKnown(options: TurnOptions, book: Book, timers: string[]): Promise<Turn[]> {
  const turns: Turn[] = []
  const blocked = new Map<string, boolean>()
  for (const timer of timers) {
    const { sink } = parseRef(timer)
    if (!options.sinks.has(sink)) {
      if (options.mayHold()) await holdRemoved(options, book, timer)
      continue
    }
    const isBlocked = blocked.get(sink) ?? (await options.isBlocked(sink))
    blocked.set(sink, isBlocked)
    if (isBlocked) {
      await postpone({ book }, timer, options.clock.now() + blockedMs)
      continue
    }
    const turn = await claimTurn(book, timer, options.clock.now())
    if (turn) turns.push(turn)
  }
  return turns
}

async function holdRemoved({ logger }: TurnOptions, book: Book, timer: string): Promise<void> {
  await holdOrphan(book, timer)
  logger.warn(
    { sinks: [parseRef(timer).sink] },
    'items held: their sink is not in the configuration',
  )
}

async function flushDestination(
  options: TurnOptions,
  destination: string,
  turns: Turn[],
): Promise<number> {
  const [lead] = turns
  if (!lead) return 0
  const { book } = lead
  const answer = await book.run('take-flush', destination, turns.length, burst, refillMs)
  const [granted, waitMs] = answer as [number, number]
  if (granted === 0) {
    const atMs = options.clock.now() + waitMs
    for (const { timer } of turns) await postpone({ book }, timer, atMs)
    return 0
  }
  if (granted < turns.length) return groupTurn(options, turns)
  let messages = 0
  for (const turn of turns) messages += await groupTurn(options, [turn])
  return messages
}
