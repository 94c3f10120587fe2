/** A ledger on a real Redis, and pages to take in, for tests of the ledger and its neighbours. */
import { isDeepStrictEqual } from 'node:util'
import { afterAll, beforeAll } from 'vitest'
import { type LedgerCheck, checkLedgers } from '../../src/operator/audit/ledger-check.ts'
import { ownFeed, severityRank, type ThreatEvent } from '../../src/event.ts'
import { createLogger } from '../../src/lib/logger.ts'
import { secretFromText } from '../../src/lib/config/secret.ts'
import { titleOf } from '../../src/messages/message.ts'
import type { Redis } from '../../src/redis/client.ts'
import { connectRedis } from '../../src/redis/connection.ts'
import { createKeys, type Keys } from '../../src/redis/keys.ts'
import { type AccountLedger, openLedger, type Standing } from '../../src/store/account-ledger.ts'
import { type Accounting, readAccounting, type SinkCounts } from '../../src/store/accounts.ts'
import {
  type Ending,
  type PageOptions,
  readEntries,
  type Stream,
  toEnding,
} from '../../src/store/history/endings.ts'
import { openFeed } from '../../src/store/feed-state.ts'
import {
  type AcceptResult,
  acceptPage,
  type Page,
  type RoutedEvent,
} from '../../src/store/intake.ts'
import {
  type Item,
  type LedgerRecord,
  pendingStates,
  scanPendingRecords,
  scanRecords,
} from '../../src/store/records.ts'
import { aThreatEvent } from './events.ts'
import { startRedis, type TestRedis } from './redis.ts'

export const silent = createLogger({ level: 'silent' })

const dayMs = 24 * 3_600_000

export interface RedisForTests {
  readonly server: TestRedis
  readonly redis: Redis
  /** Fresh keys: a prefix that no other test has. */
  keys(): Keys
  ledger(options?: { keys?: Keys; account?: string }): Promise<AccountLedger>
}

/** One server for a test file, started before its tests and gone after them. */
export function redisForTests(): RedisForTests {
  let server: TestRedis | undefined
  let redis: Redis | undefined
  let count = 0
  beforeAll(async () => {
    server = await startRedis()
    redis = connectTo(server.url)
  })
  afterAll(async () => {
    redis?.disconnect()
    await server?.stop()
  })
  const keys = (): Keys => createKeys(`t${(count += 1)}`)
  return {
    get server() {
      return server!
    },
    get redis() {
      return redis!
    },
    keys,
    ledger: (options = {}) =>
      openLedger({
        redis: redis!,
        keys: options.keys ?? keys(),
        account: options.account ?? 'main',
        config: ledgerConfig,
      }),
  }
}

export const ledgerConfig = {
  dedupeHorizonMs: 90 * dayMs,
  payloadRetentionMs: 14 * dayMs,
  historyRetentionMs: 90 * dayMs,
  maxBytes: 2 ** 30,
}

export function connectTo(url: string): Redis {
  return connectRedis({ url: secretFromText(url), prefix: 'unused', allowUnsafe: false }, silent)
}

/** What happens while Redis refuses to take any more. */
export async function whileFull<T>(redis: Redis, happen: () => Promise<T>): Promise<T> {
  await redis.config('SET', 'maxmemory', '1')
  try {
    return await happen()
  } finally {
    await redis.config('SET', 'maxmemory', '0')
  }
}

/** Of the configuration that was started last, which has every account. */
export function aStanding(given: Partial<Standing> = {}): Standing {
  const standing: Standing = {
    isActive: true,
    isNewest: true,
    checkNewest: () => Promise.resolve(standing.isNewest),
    isForeign: () => false,
    ...given,
  }
  return standing
}

/** An event routed to the given destinations; a destination `oncall:ab12` belongs to sink `oncall`. */
export function routed(
  overrides: Partial<ThreatEvent>,
  destinations: string[] = ['soc'],
  wantsDetail = false,
): RoutedEvent {
  const event = aThreatEvent(overrides)
  return {
    event,
    title: titleOf({ feed: 'brand', event }),
    decisions: [{ route: 'root', path: ['root'], why: [] }],
    items: destinations.map((destination) => ({
      sink: destination.split(':')[0]!,
      destination,
      routes: ['root'],
    })),
    wantsDetail,
  }
}

/** Takes a page in as a poll of `feed` would, at the feed's current fence. */
export async function takeIn(
  ledger: AccountLedger,
  events: RoutedEvent[],
  page: Partial<Page> & { batchWaitMs?: number } = {},
): Promise<AcceptResult> {
  const feed = page.feed ?? 'brand'
  const state = await openFeed(ledger, feed, dayMs)
  const { batchWaitMs, ...rest } = page
  return acceptPage(
    ledger,
    {
      feed,
      labels: {},
      sequence: state.sequence,
      generation: 1,
      scan: { fingerprint: 'f', body: {}, cursor: 'c', reason: 'first', startedAtMs: 0 },
      requestedAtMs: state.nowMs,
      isCaughtUp: true,
      isBackfilling: false,
      events,
      malformed: [],
      ...rest,
    },
    () => batchWaitMs,
  )
}

/** The uid of the n-th event that a call of commit-page brings. */
export function committedUid(args: readonly (string | number)[], n: number): string {
  return (JSON.parse(String(args[3 + 2 * n])) as { u: string }).u
}

/** Changes what becomes of a stored record; what it shows stays. */
export async function changeRecord<T>(
  ledger: AccountLedger,
  recordId: string,
  edit: (stored: T) => void,
): Promise<void> {
  const name = ledger.key('rec', recordId)
  const [line, shown] = (await ledger.redis.get(name))!.split('\n')
  const stored = JSON.parse(line!) as T
  edit(stored)
  await ledger.redis.set(name, `${JSON.stringify(stored)}\n${shown}`, 'KEEPTTL')
}

/** Pending items, with their records. */
export async function* scanPendingItems(
  ledger: AccountLedger,
): AsyncGenerator<{ ref: string; record: LedgerRecord; item: Item }> {
  for await (const record of scanPendingRecords(ledger)) {
    for (const item of record.items) {
      if (!(pendingStates as readonly string[]).includes(item.state)) continue
      yield { ref: `i:${record.recordId}:${item.index}:${item.sink}`, record, item }
    }
  }
}

async function scanPendingCounts(ledger: AccountLedger): Promise<Record<string, number>> {
  const counts = Object.create(null) as Record<string, number>
  for await (const { item } of scanPendingItems(ledger)) {
    counts[item.sink] = (counts[item.sink] ?? 0) + 1
  }
  return counts
}

/**
 * Throws unless every event fetched and every item created is somewhere, and the records agree. Of
 * a ledger that changes between its counters and its records, it reads both again.
 */
export async function expectConservation(ledger: AccountLedger): Promise<Accounting> {
  let accounting = await readAccounting(ledger)
  let scanned = await scanPendingCounts(ledger)
  let [ended, days] = [await countEndings(ledger), await countDays(ledger)]
  for (let tries = 0; tries < 100; tries++) {
    const after = await readAccounting(ledger)
    if (isDeepStrictEqual(after, accounting)) break
    accounting = after
    scanned = await scanPendingCounts(ledger)
    ;[ended, days] = [await countEndings(ledger), await countDays(ledger)]
  }
  for (const [feed, account] of Object.entries(accounting.feeds)) {
    if (account.unaccounted !== 0) throw new Error(`feed ${feed}: ${JSON.stringify(account)}`)
  }
  for (const [sink, account] of Object.entries(accounting.sinks)) {
    const pending = Object.values(account.pending).reduce((sum, count) => sum + count, 0)
    if (account.unaccounted !== 0 || pending !== (scanned[sink] ?? 0)) {
      throw new Error(`sink ${sink}: ${JSON.stringify(account)}, records: ${scanned[sink] ?? 0}`)
    }
  }
  for (const [sink, account] of Object.entries(accounting.sinks)) {
    for (const outcome of ['delivered', 'dead', 'suppressed', 'diverted'] as const) {
      const [count, dated] = [ended, days].map((counts) => counts.get(`${sink} ${outcome}`) ?? 0)
      if (count !== account[outcome] || dated !== count)
        throw new Error(
          `${sink} ${outcome}: ${account[outcome]}, endings ${count}, by day ${dated}`,
        )
    }
  }
  return accounting
}

/** Items by sink and outcome, as the stream of endings has them. */
async function countEndings(ledger: AccountLedger): Promise<Map<string, number>> {
  const counts = new Map<string, number>()
  for await (const { sink, outcome, items } of endingsOf(ledger)) {
    const name = `${sink} ${outcome}`
    counts.set(name, (counts.get(name) ?? 0) + items.length)
  }
  return counts
}

/** Items by sink and outcome, as the counts of the days of those endings have them. */
async function countDays(ledger: AccountLedger): Promise<Map<string, number>> {
  const counts = new Map<string, number>()
  const days = new Set<number>()
  for await (const { atMs } of endingsOf(ledger)) days.add(Math.floor(atMs / dayMs))
  for (const day of days) {
    const dated = await ledger.redis.hgetall(ledger.key('day', String(day)))
    for (const [field, count] of Object.entries(dated)) {
      const [kind, destination = '', , outcome = ''] = field.split('|')
      if (kind !== 'ended' && kind !== 'own') continue
      const place = `${destination.split(':')[0]} ${outcome}`
      counts.set(place, (counts.get(place) ?? 0) + Number(count))
    }
  }
  return counts
}

/** Entries of one account, newest first, each as an ending of its own. */
export async function readEndings(ledger: Stream, options: PageOptions): Promise<Ending[]> {
  return (await readEntries(ledger, options)).map(toEnding)
}

/** The newest first. */
async function* endingsOf(ledger: AccountLedger): AsyncGenerator<Ending> {
  let page = await readEndings(ledger, { count: 1_000 })
  while (page.length > 0) {
    yield* page
    page = await readEndings(ledger, { before: page.at(-1)!.id, count: 1_000 })
  }
}

/** What the ledger says of itself; `ledgers`: all that digests are made of. */
export async function proofOf(ledgers: readonly AccountLedger[]): Promise<LedgerCheck[]> {
  const steps = checkLedgers(ledgers)
  let step = await steps.next()
  while (!step.done) step = await steps.next()
  return step.value
}

/** Throws unless every pending item stands where something will move it. */
export async function expectNothingStranded(ledger: AccountLedger): Promise<void> {
  for (const proof of await proofOf([ledger])) {
    const { stranded, misfiled, differences, unfiled } = proof
    const found = [...stranded, ...misfiled, ...differences, ...(unfiled === 0 ? [] : [unfiled])]
    if (found.length > 0) throw new Error(`ledger: ${JSON.stringify(found)}`)
  }
  await expectEndings(ledger)
  const owed = await criticalsBySink(ledger)
  for (const [sink, since] of owed) {
    const noted = await ledger.redis.zrange(ledger.key('owed', sink), '0', '-1', 'WITHSCORES')
    if (!isDeepStrictEqual(noted, since))
      throw new Error(`owed to ${sink}: ${noted.join(' ')}, records: ${since.join(' ')}`)
  }
}

/** Throws unless the newest ending of each item that is final says what its record says. */
async function expectEndings(ledger: AccountLedger): Promise<void> {
  const newest = new Map<string, string>()
  for await (const { items, ...ending } of endingsOf(ledger)) {
    const { outcome, destination, messageId, isOwn } = ending
    for (const { recordId, index } of items) {
      const place = `${recordId} ${index}`
      const said = newest.get(place) ?? [outcome, destination, messageId, isOwn].join(' ')
      newest.set(place, said)
    }
  }
  for await (const { recordId, items, sightings } of scanRecords(ledger)) {
    const isOwn = sightings[0]?.feed === ownFeed
    for (const { index, state, destination, messageId } of items) {
      if ((pendingStates as readonly string[]).includes(state)) continue
      const id = messageId === undefined ? undefined : `b${messageId}`
      const outcome = state === 'discarded' ? 'dead' : state
      const [said, expected] = [
        newest.get(`${recordId} ${index}`),
        [outcome, destination, id, isOwn],
      ]
      if (said !== expected.join(' '))
        throw new Error(`${recordId} ${index}: ${expected.join(' ')}, ending: ${said}`)
    }
  }
}

/** As the records say it: what each sink owes, as a sorted set prints it. */
async function criticalsBySink(ledger: AccountLedger): Promise<Map<string, string[]>> {
  const underWay = new Set(['queued', 'group', 'batch', 'sending', 'retrying'])
  const sinceMs = new Map<string, Map<string, number>>()
  for await (const { recordId, items } of scanRecords(ledger)) {
    for (const { sink, severity, state, createdAtMs } of items) {
      const records = sinceMs.get(sink) ?? new Map<string, number>()
      sinceMs.set(sink, records)
      if (severityRank(severity) < 5 || !underWay.has(state)) continue
      records.set(recordId, Math.min(records.get(recordId) ?? Infinity, createdAtMs))
    }
  }
  const printed = [...sinceMs].map(([sink, records]): [string, string[]] => {
    const inOrder = [...records].toSorted(
      ([one, since], [other, later]) => since - later || (one < other ? -1 : 1),
    )
    return [sink, inOrder.flatMap(([id, since]) => [id, String(since)])]
  })
  return new Map(printed)
}

/** Until Redis' clock shows the next millisecond: what happened within one is not told apart. */
export async function pastThisMillisecond(redis: Redis): Promise<void> {
  const thisMs = await redisMs(redis)
  while ((await redisMs(redis)) === thisMs);
}

/** What Redis' clock shows, whole ms. */
export async function redisMs(redis: Redis): Promise<number> {
  const [seconds, micros] = await redis.time()
  return Number(seconds) * 1000 + Math.floor(Number(micros) / 1000)
}

/** What waits for a sink, by state. */
export function waitingIn(sink: SinkCounts | undefined): Record<string, number> {
  return Object.fromEntries(Object.entries(sink?.pending ?? {}).filter(([, count]) => count !== 0))
}
