/**
 * The index of an account's records: a sorted set that the scripts update in the atomic step that
 * makes a record pending or settled. The score is when the record was settled, ms, or, negative,
 * since when it has been pending. So retention finds the oldest settled records, listings find what
 * ended lately, work on pending items reads those alone, and a scan resumes from a score. It takes
 * about 130 bytes for each record. Also the migration scan, which indexes the records of older
 * versions.
 */
import type { Logger } from '../lib/logger.ts'
import type { Redis } from '../redis/connection.ts'
import { type MasterId, readMasterIds, scanNode } from '../redis/health.ts'
import type { Keys } from '../redis/keys.ts'
import { holdLease, pairsOf, redisNow, releaseLease, runScript } from '../redis/scripts.ts'

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

/** Whether all records are in the index. Those of 0.4.0 are added by the migration scan below. */
export async function isIndexed({ redis, key }: AccountStore): Promise<boolean> {
  return (await redis.exists(key('indexed'))) === 1
}

/**
 * Tells whether the index of all given accounts is complete, which `dependent` waits for. Logs a
 * warning whenever the list of incomplete ones changes.
 */
export function createIndexWatch(
  logger: Logger,
  dependent: string,
): { isComplete(stores: readonly AccountStore[]): Promise<boolean> } {
  let lastReported = ''
  return {
    async isComplete(stores) {
      const indexed = await Promise.all(stores.map(isIndexed))
      const accounts = stores.filter((_store, at) => !indexed[at]).map(({ account }) => account)
      const isNews = accounts.join() !== lastReported
      lastReported = accounts.join()
      if (isNews && accounts.length > 0) {
        const remedy = 'the daemon looks for them by itself; if this lasts for hours, restart it'
        logger.warn(
          { accounts, remedy },
          `${dependent} waits for the index of records of an older version`,
        )
      }
      return accounts.length === 0
    },
  }
}

/** Scans pending records, the longest pending first; what becomes pending meanwhile comes last. */
export function scanPendingEntries(store: AccountStore): AsyncGenerator<IndexEntry[]> {
  return scanIndex(store, { from: '(0', isPending: true })
}

/**
 * Scans records settled at `sinceMs` or later, oldest first; what is settled meanwhile comes last.
 */
export function scanSettledEntries(
  store: AccountStore,
  sinceMs: number,
): AsyncGenerator<IndexEntry[]> {
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
}

/**
 * Scans from a score on; among entries of one score those already yielded are known by their ids.
 */
async function* scanIndex(
  { redis, key }: AccountStore,
  { from, isPending, isNewestFirst = false }: IndexScan,
): AsyncGenerator<IndexEntry[]> {
  const isAscending = isPending === isNewestFirst
  let bound = from
  let yieldedIds = new Set<string>()
  for (;;) {
    const count = pageLength + yieldedIds.size
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

interface Store {
  redis: Redis
  keys: Keys
}

/** After so long without renewal another process may take over the scan. */
const leaseMs = 60_000

/** Keys per step, and the pause after it: others use this Redis, too. */
const keysPerStep = 1_000
export const migrationPauseMs = 20

/**
 * The migration scan: a single scan of all keys for what older versions left, namely accounts that
 * are not registered and records that no index has. It goes on where it was broken off, unless that
 * node was restarted meanwhile. Resolves with whether it is done; false if another process has the
 * lease, or `mayGoOn` said no.
 */
export async function runMigrationScan(
  store: Store,
  { holder, mayGoOn }: { holder: string; mayGoOn: () => Promise<boolean> },
): Promise<boolean> {
  const { redis, keys } = store
  if (await isMigrationScanDone(store)) return true
  const lease = keys.shared('accounts-looking')
  const hold = (): Promise<boolean> => holdLease(redis, lease, { holder, ms: leaseMs })
  if (!(await hold())) return false
  try {
    const hasEnded = (await redis.hexists(keys.shared('look'), 'done')) === 1
    if (hasEnded) await redis.del(keys.shared('look')) // an older version added an account
    for (const node of await readMasterIds(redis)) {
      if (!(await scanMasterKeys(store, node, async () => (await mayGoOn()) && hold())))
        return false
    }
    for (const account of await readAccountNames(store)) {
      await runScript(redis, 'write-note', [keys.account(account, 'indexed')], ['1'])
    }
    await runScript(
      redis,
      'note-fields',
      [keys.shared('look')],
      ['done', await redisNow({ redis })],
    )
    return true
  } finally {
    await releaseLease(redis, lease, holder)
  }
}

/**
 * Whether the scan is done and every account has an index; one that an older version adds has none.
 */
export async function isMigrationScanDone(store: Store): Promise<boolean> {
  const { redis, keys } = store
  if ((await redis.hexists(keys.shared('look'), 'done')) === 0) return false
  const accounts = await readAccountNames(store)
  for (let at = 0; at < accounts.length; at += accountsAtOnce) {
    const batch = accounts.slice(at, at + accountsAtOnce)
    const indexed = batch.map((account) => redis.exists(keys.account(account, 'indexed')))
    if ((await Promise.all(indexed)).includes(0)) return false
  }
  return true
}

/**
 * Discards the result of the migration scan, because an older version has worked on the store and
 * keeps no index. Until the scan is done again, nothing relies on the index of these accounts.
 */
export async function resetMigrationScan(
  { redis, keys }: Store,
  accounts: readonly string[],
): Promise<void> {
  for (const account of accounts) {
    // at one instant: another replica may have begun to take in and count records
    await redis
      .multi()
      .unlink(keys.account(account, 'indexed'), keys.account(account, 'records'))
      .hdel(keys.account(account, 'counters'), 'records')
      .exec()
  }
  await redis.unlink(keys.shared('look'))
}

async function readAccountNames({ redis, keys }: Store): Promise<string[]> {
  const fields = await redis.hkeys(keys.shared('accounts'))
  return [...new Set(fields.map((field) => field.split('|')[0] ?? ''))]
}

/** Accounts per round of requests. */
const accountsAtOnce = 50

async function scanMasterKeys(
  store: Store,
  { name, run, node }: MasterId,
  mayGoOn: () => Promise<boolean>,
): Promise<boolean> {
  const { redis, keys } = store
  const look = keys.shared('look')
  const [savedRun, savedCursor] = ((await redis.hget(look, name)) ?? '').split(' ')
  let cursor = savedRun === run ? (savedCursor ?? '0') : '0' // a restart voids cursors
  while (cursor !== 'end') {
    const step = await scanNode(node, keys.account('*', '*'), { cursor, count: keysPerStep })
    await registerKeys(store, step.names)
    cursor = step.cursor === '0' ? 'end' : step.cursor
    await runScript(redis, 'note-fields', [look], [name, `${run} ${cursor}`])
    if (cursor !== 'end' && !(await mayGoOn())) return false
  }
  return true
}

/** Registers accounts and indexes records by their keys; skips keys that belong to no account. */
async function registerKeys({ redis, keys }: Store, names: readonly string[]): Promise<void> {
  const records = new Map<string, string[]>()
  for (const name of names) {
    const [, account = '', recordId] =
      /:([a-z][a-z0-9_-]{0,39})\}:(?:mark-key|rec:([0-9a-f]{24}))/.exec(name) ?? []
    const isRecord = recordId !== undefined && name === keys.account(account, 'rec', recordId)
    if (isRecord) records.set(account, [...(records.get(account) ?? []), recordId])
    if (name !== keys.account(account, 'mark-key')) continue
    const [accounts, since] = [keys.shared('accounts'), `${account}|since`]
    if ((await redis.hexists(accounts, since)) === 1) continue
    await runScript(redis, 'note-fields', [accounts], [since, await redisNow({ redis })])
  }
  for (const [account, ids] of records) {
    for (let at = 0; at < ids.length; at += pageLength) {
      const page = ids.slice(at, at + pageLength)
      const base = [keys.account(account), keys.account(account, 'moved')] // see openExistingLedger
      await runScript(redis, 'index-records', base, page)
    }
  }
}
