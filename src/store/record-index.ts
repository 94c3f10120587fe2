/**
 * The index of an account's records: a sorted set that the scripts update in the atomic step that
 * makes a record pending or settled. The score is when the record was settled, ms, or, negative,
 * since when it has been pending. So retention finds the oldest settled records, and listings find
 * what ended lately. Work on pending items reads those alone, and a scan resumes from a score. It
 * takes about 130 bytes for each record.
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

/** By how much Redis' clock may step back, or the nodes of a Cluster disagree about the time, ms. */
const clockErrorMs = 60_000

/**
 * Scans every pending record, then those settled at `leastMs()` or later, of each the newest first. What
 * becomes pending or settled meanwhile is scanned again, so none that existed when the scan began is
 * missed. `leastMs` may rise meanwhile; Infinity: only what is pending.
 */
export async function* scanEntries(
  store: AccountStore,
  leastMs: () => number = () => 0,
): AsyncGenerator<IndexEntry[]> {
  const begunMs = await redisNow(store)
  const parts: [isPending: boolean, leastMs: () => number][] = [
    [true, () => 0],
    [false, leastMs],
    [true, () => begunMs],
    [false, () => Math.max(begunMs, leastMs())],
  ]
  const seen = new Set<string>()
  for (const [isPending, boundMs] of parts) {
    for await (const entries of scanUntil(store, isPending, boundMs)) {
      const unseen = entries.filter(({ recordId }) => !seen.has(recordId))
      const mayReturn = unseen.filter(({ score }) => score < 0 || score >= begunMs - clockErrorMs)
      for (const { recordId } of mayReturn) seen.add(recordId)
      if (unseen.length > 0) yield unseen
    }
  }
}

async function* scanUntil(
  store: AccountStore,
  isPending: boolean,
  leastMs: () => number,
): AsyncGenerator<IndexEntry[]> {
  if (leastMs() === Infinity) return
  for await (const entries of scanIndex(store, { isPending })) {
    const bound = leastMs() - clockErrorMs
    const needed = entries.filter(({ score }) => Math.abs(score) >= bound)
    if (needed.length > 0) yield needed
    if (needed.length < entries.length) return
  }
}

export interface IndexScan {
  isPending: boolean
  /** undefined: from the newest on. */
  beforeMs?: number | undefined
  /** Whoever looks into no more than these needs no longer steps. */
  atMost?: number | undefined
}

/**
 * Scans entries that wait, or that were settled, since `beforeMs` or before, newest first. Among
 * entries of one score those already yielded are known by their ids.
 */
export async function* scanIndex(
  { redis, key }: AccountStore,
  { isPending, beforeMs = Infinity, atMost = pageLength }: IndexScan,
): AsyncGenerator<IndexEntry[]> {
  let bound = String(isPending ? -beforeMs : beforeMs).replace('Infinity', 'inf')
  let yieldedIds = new Set<string>()
  for (;;) {
    const count = Math.min(pageLength, atMost) + yieldedIds.size
    const page = ['WITHSCORES', 'LIMIT', 0, count] as const
    const answer = isPending
      ? await redis.zrangebyscore(key('records'), bound, '(0', ...page)
      : await redis.zrevrangebyscore(key('records'), bound, '0', ...page)
    const entries = pairsOf(answer).map(([recordId, score]) => ({ recordId, score: Number(score) }))
    const fresh = entries.filter(({ recordId }) => !yieldedIds.has(recordId))
    if (fresh.length > 0) yield fresh
    if (entries.length < count) return
    bound = answer.at(-1) ?? ''
    const last = entries.filter(({ score }) => score === Number(bound))
    yieldedIds = new Set(last.map(({ recordId }) => recordId))
  }
}
