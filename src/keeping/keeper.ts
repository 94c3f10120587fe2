/**
 * Keeps records, payloads and the quarantine within `retention.max_bytes`: of the accounts above their
 * fair share the oldest settled ones go first, each with all that is kept of it; what is not settled never
 * goes. One replica at a time, in small steps.
 */
import { randomUUID } from 'node:crypto'
import type { Book } from '../ledger/book.ts'
import { infoOfMasters } from '../redis/nodes.ts'
import type { Keys } from '../redis/keys.ts'
import type { Redis } from '../redis/connection.ts'
import type { Clock } from '../runtime/clock.ts'
import type { Logger } from '../runtime/logger.ts'
import {
  cutoffOf,
  fairShareOf,
  isWalkDue,
  noWeights,
  pauseOf,
  totalOf,
  type Weights,
} from './cutoff.ts'
import { holdWalk, readKeepingNote, releaseWalk, writeKeepingNote } from './keeping-log.ts'
import { trimBook, weighBook, type Trimmed } from './walks.ts'

export interface KeeperOptions {
  books: readonly Book[]
  maxBytes: number
  redis: Redis
  keys: Keys
  clock: Clock
  logger: Logger
  /** Only the active configuration says how much may be kept. */
  isActive: () => boolean
  onTrimmed: (trimmed: Trimmed) => void
}

export interface Keeper {
  /** Weighs all that is kept, if it is time to, and drops what is too much. Throws what Redis throws. */
  keepOnce(signal: AbortSignal, alive: () => void): Promise<void>
}

/** Between two steps of some hundred records, ms. */
const pauseMs = 5

export function createKeeper(options: KeeperOptions): Keeper {
  const { redis, keys, clock, isActive } = options
  const holder = randomUUID()
  let hasWarned = false

  return {
    async keepOnce(signal, alive) {
      if (!hasWarned) await warnOfMemory(options)
      hasWarned = true
      if (!isActive() || !(await isDue(options)) || !(await holdWalk(redis, keys, holder))) return
      const mayGoOn = async (): Promise<boolean> => {
        alive()
        await clock.sleep(pauseMs, signal)
        return !signal.aborted && isActive() && holdWalk(redis, keys, holder)
      }
      try {
        await keep(options, mayGoOn)
      } finally {
        await releaseWalk(redis, keys, holder)
      }
    },
  }
}

async function isDue({ redis, keys, clock, maxBytes }: KeeperOptions): Promise<boolean> {
  const note = await readKeepingNote(redis, keys)
  const usedBytes = await usedBytesOf(redis)
  return !note || isWalkDue(note, { nowMs: clock.now(), maxBytes, usedBytes })
}

async function keep(options: KeeperOptions, mayGoOn: () => Promise<boolean>): Promise<void> {
  const { books, maxBytes, redis, keys, clock } = options
  const before = await readKeepingNote(redis, keys)
  const usedBefore = await usedBytesOf(redis)
  const weighed: Weighed[] = []
  for (const book of books) {
    const weights = noWeights()
    weighed.push({ book, weights })
    for await (const _page of weighBook(book, weights)) {
      if (!(await mayGoOn())) return
    }
  }
  const weighedBytes = sumOf(weighed)
  const bytes = weighedBytes > maxBytes ? await trim(options, weighed, mayGoOn) : weighedBytes
  if (bytes === undefined) return
  const nowMs = Math.floor(clock.now())
  const grown = before && { bytes: weighedBytes - before.bytes, inMs: nowMs - before.endedAtMs }
  const dueAtMs = Math.floor(nowMs + pauseOf(bytes, maxBytes, grown))
  const usedBytes = usedBefore - (weighedBytes - bytes)
  await writeKeepingNote(redis, keys, { endedAtMs: nowMs, bytes, maxBytes, usedBytes, dueAtMs })
}

interface Weighed {
  book: Book
  weights: Weights
}

function sumOf(weighed: readonly Weighed[]): number {
  return weighed.reduce((sum, { weights }) => sum + totalOf(weights), 0)
}

/** Resolves with what is left of all accounts; undefined: broken off. */
async function trim(
  options: KeeperOptions,
  weighed: readonly Weighed[],
  mayGoOn: () => Promise<boolean>,
): Promise<number | undefined> {
  const { maxBytes, logger } = options
  const shareBytes = fairShareOf(
    weighed.map(({ weights }) => weights),
    maxBytes,
  )
  let bytes = 0
  for (const account of weighed) {
    const left = await trimAccount(options, account, { shareBytes, mayGoOn })
    if (left === undefined) return undefined
    bytes += left
  }
  if (bytes > maxBytes) {
    const said = 'more than retention.max_bytes is not settled: nothing else can go'
    logger.warn({ bytes, maxBytes }, said)
  }
  return bytes
}

async function trimAccount(
  { onTrimmed, logger }: KeeperOptions,
  { book, weights }: Weighed,
  { shareBytes, mayGoOn }: { shareBytes: number; mayGoOn: () => Promise<boolean> },
): Promise<number | undefined> {
  const cutoff = cutoffOf(weights, shareBytes)
  if (!cutoff) return totalOf(weights)
  const sum = { stories: 0, payloads: 0, quarantined: 0 }
  for await (const trimmed of trimBook(book, cutoff.beforeMs)) {
    onTrimmed(trimmed)
    sum.stories += trimmed.stories
    sum.payloads += trimmed.payloads
    sum.quarantined += trimmed.quarantined
    if (!(await mayGoOn())) return undefined
  }
  const { beforeMs, leftBytes: bytes } = cutoff
  const settledBefore = new Date(beforeMs).toISOString()
  logger.info(
    { account: book.account, ...sum, settledBefore, bytes, shareBytes: Math.floor(shareBytes) },
    'the oldest settled events were dropped',
  )
  return bytes
}

async function usedBytesOf(redis: Redis): Promise<number> {
  const nodes = await infoOfMasters(redis)
  return nodes.reduce((sum, node) => sum + Number(node.field('used_memory') ?? 0), 0)
}

/** Beyond 70 % of its memory nothing is polled: half of it leaves room for marks, jobs and what waits. */
async function warnOfMemory({ redis, maxBytes, logger }: KeeperOptions): Promise<void> {
  const nodes = await infoOfMasters(redis)
  const limits = nodes.map((node) => Number(node.field('maxmemory') ?? 0))
  const leastBytes = Math.min(...limits.filter((limit) => limit > 0))
  if (maxBytes <= leastBytes / 2) return
  logger.warn(
    { maxBytes, maxmemory: leastBytes },
    'retention.max_bytes is more than half of what Redis may use (maxmemory): lower it, or give Redis more',
  )
}
