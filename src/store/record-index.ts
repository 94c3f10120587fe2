/**
 * The index of an account's records: a sorted set that the scripts update in the atomic step that
 * makes a record pending or settled. The score is when the record was settled, ms, or, negative,
 * since when it has been pending. So retention finds the oldest settled records, listings find what
 * ended lately, work on pending items reads those alone, and a scan resumes from a score. It takes
 * about 130 bytes for each record.
 */
import type { Redis } from '../redis/client.ts'
import { pairsOf, redisNow } from '../redis/scripts.ts'

/** The part of an account ledger that its index needs. */
export interface AccountStore {
  readonly account: string
  readonly redis: Redis
  key: (...parts: string[]) => string
  run: (script: string, ...args: (string | number)[]) => Promise<unknown>
}

export interface IndexEntry {
  recordId: string
  score: number
}

/** Entries that one step reads. */
const pageLength = 200

/** Scans pending records, the longest pending first; what becomes pending meanwhile comes last. */
export function scanPendingEntries(store: AccountStore): AsyncGenerator<IndexEntry[]> {
  return scanIndex(store, { from: '(0', isPending: true })
}

/**
 * Scans records settled at `sinceMs` or later, oldest first; what is settled meanwhile comes last.
 */
function scanSettledEntries(store: AccountStore, sinceMs: number): AsyncGenerator<IndexEntry[]> {
  return scanIndex(store, { from: String(sinceMs), isPending: false })
}

/**
 * Scans records, newest first: pending ones from the latest pending on, then settled ones from the
 * latest settled on. Each of the two ends at the first entry before `leastMs(isPending)`, which may
 * rise meanwhile. Nothing of a record is newer than its score but what was sent of one that is
 * pending. A record that is made pending and settled again meanwhile may be left out.
 */
export async function* scanNewestEntries(
  store: AccountStore,
  leastMs: (isPending: boolean) => number,
): AsyncGenerator<IndexEntry[]> {
  const seen = new Set<string>()
  for (const isPending of [true, false]) {
    const from = isPending ? '-inf' : '+inf'
    for await (const entries of scanIndex(store, { from, isPending, isNewestFirst: true })) {
      const bound = leastMs(isPending) - clockErrorMs
      const needed = entries.filter(({ score }) => Math.abs(score) >= bound)
      const unseen = needed.filter(({ recordId }) => !seen.has(recordId))
      if (isPending) needed.forEach(({ recordId }) => seen.add(recordId))
      if (unseen.length > 0) yield unseen
      if (needed.length < entries.length) break
    }
  }
}

/** By how much Redis' clock may step back, or the nodes of a Cluster disagree about the time, ms. */
const clockErrorMs = 60_000

/**
 * Scans every pending record and those settled at `sinceMs` or later. A record that existed when
 * the scan began comes at least once, even if it becomes settled or pending meanwhile.
 */
export async function* scanEntries(store: AccountStore, sinceMs = 0): AsyncGenerator<IndexEntry[]> {
  const begunMs = await redisNow(store)
  const seen = new Set<string>()
  for await (const entries of scanPendingEntries(store)) {
    for (const { recordId } of entries) seen.add(recordId)
    yield entries
  }
  const replayed = { from: String(clockErrorMs - begunMs), isPending: true }
  for (const part of [scanSettledEntries(store, sinceMs), scanIndex(store, replayed)]) {
    for await (const entries of part) {
      const unseen = entries.filter(({ recordId }) => !seen.has(recordId))
      if (unseen.length > 0) yield unseen
    }
  }
}

interface IndexScan {
  from: string
  isPending: boolean
  isNewestFirst?: boolean
  /** Whoever looks into no more than these needs no longer steps. */
  atMost?: number | undefined
}

/**
 * Scans from a score on; among entries of one score those already yielded are known by their ids.
 */
async function* scanIndex(
  { redis, key }: AccountStore,
  { from, isPending, isNewestFirst = false, atMost = pageLength }: IndexScan,
): AsyncGenerator<IndexEntry[]> {
  const isAscending = isPending === isNewestFirst
  let bound = from
  let yieldedIds = new Set<string>()
  for (;;) {
    const count = Math.min(pageLength, atMost) + yieldedIds.size
    const page = ['WITHSCORES', 'LIMIT', 0, count] as const
    const answer = isAscending
      ? await redis.zrangebyscore(key('records'), bound, isPending ? '(0' : '+inf', ...page)
      : await redis.zrevrangebyscore(key('records'), bound, isPending ? '-inf' : '0', ...page)
    const entries = parseEntries(answer)
    const fresh = entries.filter(({ recordId }) => !yieldedIds.has(recordId))
    if (fresh.length > 0) yield fresh
    if (entries.length < count) return
    bound = answer.at(-1) ?? ''
    const last = entries.filter(({ score }) => score === Number(bound))
    yieldedIds = new Set(last.map(({ recordId }) => recordId))
  }
}

function parseEntries(answer: readonly string[]): IndexEntry[] {
  return pairsOf(answer).map(([recordId, score]) => ({ recordId, score: Number(score) }))
}

export type BackwardScan = Pick<IndexScan, 'isPending' | 'atMost'> & {
  beforeMs: number | undefined
}

/** Entries that wait, or that were settled, since `beforeMs` or before, newest first; undefined: the newest. */
export function scanEntriesBefore(
  store: AccountStore,
  { isPending, beforeMs = Infinity, atMost }: BackwardScan,
): AsyncGenerator<IndexEntry[]> {
  const bound = isPending ? -beforeMs : beforeMs
  const from = Number.isFinite(bound) ? String(bound) : `${isPending ? '-' : '+'}inf`
  return scanIndex(store, { from, isPending, isNewestFirst: true, atMost })
}
