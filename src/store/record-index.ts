/**
 * The index of an account's records: one sorted set beside them, written by the scripts that make records
 * pending or settled, in the same atomic step. The score is when the record was settled, ms; negative since
 * when something of it is pending. So retention finds the oldest settled first, listings what ended lately,
 * whoever moves pending items those alone, and a walk over all of it goes on from a score. About 130 bytes
 * for each record.
 */
import type { Logger } from '../runtime/logger.ts'
import type { Redis } from '../redis/connection.ts'

/** Where an account's keys are, and its scripts. */
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

/** Whether all records are in the index. Those that 0.4.0 left get there by `first-look.ts`. */
export async function isIndexed({ redis, key }: AccountStore): Promise<boolean> {
  return (await redis.exists(key('indexed'))) === 1
}

/** Says of which accounts the index is not complete yet, once for each change of them: whoever needs it waits. */
export function createIndexWatch(
  logger: Logger,
  what: string,
): { isComplete(stores: readonly AccountStore[]): Promise<boolean> } {
  let told = ''
  return {
    async isComplete(stores) {
      const indexed = await Promise.all(stores.map(isIndexed))
      const accounts = stores.filter((_store, at) => !indexed[at]).map(({ account }) => account)
      const isNews = accounts.join() !== told
      told = accounts.join()
      if (isNews && accounts.length > 0) {
        const remedy = 'the daemon looks for them by itself; if this lasts for hours, restart it'
        logger.warn(
          { accounts, remedy },
          `${what} waits for the index of records of an older version`,
        )
      }
      return accounts.length === 0
    },
  }
}

/** Records with items that are not final, the longest pending first; what becomes pending meanwhile comes last. */
export function walkPending(store: AccountStore): AsyncGenerator<IndexEntry[]> {
  return walk(store, { from: '(0', isPending: true })
}

/** Records settled at `sinceMs` or later, the first settled first; what is settled meanwhile comes last. */
export function walkSettled(store: AccountStore, sinceMs = 0): AsyncGenerator<IndexEntry[]> {
  return walk(store, { from: String(sinceMs), isPending: false })
}

/**
 * Every pending record and those settled at `sinceMs` or later, each that was there when the walk began at
 * least once, though it moves from one part to the other meanwhile.
 */
export async function* walkRecords(store: AccountStore, sinceMs = 0): AsyncGenerator<IndexEntry[]> {
  const [seconds] = await store.redis.time()
  const seen = new Set<string>()
  for await (const entries of walkPending(store)) {
    for (const { recordId } of entries) seen.add(recordId)
    yield entries
  }
  const replayed = { from: String(-Number(seconds) * 1000), isPending: true }
  for (const part of [walkSettled(store, sinceMs), walk(store, replayed)]) {
    for await (const entries of part) {
      const others = entries.filter(({ recordId }) => !seen.has(recordId))
      if (others.length > 0) yield others
    }
  }
}

/** From a score on; entries of one score are told apart by their ids. */
async function* walk(
  { redis, key }: AccountStore,
  { from, isPending }: { from: string; isPending: boolean },
): AsyncGenerator<IndexEntry[]> {
  let bound = from
  let given = new Set<string>()
  for (;;) {
    const count = pageLength + given.size
    const page = ['LIMIT', 0, count] as const
    const answer = isPending
      ? await redis.zrevrangebyscore(key('records'), bound, '-inf', 'WITHSCORES', ...page)
      : await redis.zrangebyscore(key('records'), bound, '+inf', 'WITHSCORES', ...page)
    const entries = entriesIn(answer)
    const fresh = entries.filter(({ recordId }) => !given.has(recordId))
    if (fresh.length > 0) yield fresh
    if (entries.length < count) return
    bound = answer.at(-1) ?? ''
    const last = entries.filter(({ score }) => score === Number(bound))
    given = new Set(last.map(({ recordId }) => recordId))
  }
}

function entriesIn(answer: readonly string[]): IndexEntry[] {
  return answer.flatMap((recordId, i) =>
    i % 2 === 0 ? [{ recordId, score: Number(answer[i + 1]) }] : [],
  )
}
