/** Retention: the oldest settled events make room, and no other. */
import { expect, test } from 'vitest'
import { systemClock } from '../../../src/lib/clock.ts'
import { createLogger } from '../../../src/lib/logger.ts'
import type { Keys } from '../../../src/redis/keys.ts'
import type { AccountLedger } from '../../../src/store/account-ledger.ts'
import { readRecord, readTrimmedUntilMs } from '../../../src/store/records.ts'
import {
  createRetention,
  fairShareBytes,
  readRetentionNote,
  type RetentionOptions,
} from '../../../src/store/retention.ts'
import { replayDeadLetter } from '../../support/acts.ts'
import { attemptOf, sealBatch } from '../../support/attempts.ts'
import {
  changeRecord,
  proofOf,
  redisForTests,
  routed,
  silent,
  takeIn,
  whileFull,
} from '../../support/ledger.ts'

const tests = redisForTests()
const minuteMs = 60_000
const plenty = 2 ** 40

test.each([
  ['all of it where all fit', [100, 200], Infinity],
  ['all of it where all just fit', [400, 600], Infinity],
  ['half, of two that are alike', [600, 600], 500],
  ['what a small one leaves over', [100, 2_000], 900],
  ['the same for all that are above it', [5_000, 100, 700], 450],
  ['an equal part of what is left, however small', [1, 2, 3, 5_000], 994],
])('the share of an account is %s', (_what, sizes, expected) => {
  expect(fairShareBytes(sizes, 1_000)).toBe(expected)
})

interface Scene {
  keys: Keys
  ledger: AccountLedger
  trimmed: { events: number }
  /** One pass, `aheadMs` from now. */
  keep: (maxBytes: number, given?: Partial<RetentionOptions> & Pass) => Promise<void>
}

interface Pass {
  aheadMs?: number
  signal?: AbortSignal
}

async function aScene(): Promise<Scene> {
  const keys = tests.keys()
  const ledger = await tests.ledger({ keys })
  const trimmed = { events: 0 }
  return {
    keys,
    ledger,
    trimmed,
    async keep(maxBytes, { aheadMs = 0, signal = new AbortController().signal, ...given } = {}) {
      const now = (): number => Date.now() + aheadMs
      const retention = createRetention({
        ledgers: [ledger],
        maxBytes,
        redis: tests.redis,
        keys,
        clock: { ...systemClock, now, sleep: () => Promise.resolve() },
        logger: silent,
        isActive: () => true,
        onTrimmed: (events) => void (trimmed.events += events),
        ...given,
      })
      await retention.retainOnce(signal, () => undefined)
    },
  }
}

const uidOf = (n: number): string => `paste/site/${n}`

function recordIdOf(ledger: AccountLedger, n: number): string {
  return ledger.fingerprints.recordId(uidOf(n))
}

interface Settled {
  agoMinutes: number
  outcome?: 'delivered' | 'dead'
  notes?: string
}

/** Takes one in and settles it as so many minutes ago. */
async function settled(
  ledger: AccountLedger,
  n: number,
  { agoMinutes, outcome = 'delivered', notes = 'x' }: Settled,
): Promise<void> {
  await takeIn(ledger, [routed({ uid: uidOf(n), notes }, ['soc'])])
  await attemptOf(ledger, `i:${recordIdOf(ledger, n)}:0:soc`, { outcome })
  const agoMs = agoMinutes * minuteMs
  await change(ledger, n, (record) => {
    record.t -= agoMs
    for (const item of record.i) item.e -= agoMs
  })
}

/** Of a record, what tells its age. */
interface Stored {
  t: number
  i: { e: number }[]
}

/** Changes a record, and files it where it then belongs. */
async function change(ledger: AccountLedger, n: number, edit: (record: Stored) => void) {
  let settledMs = 0
  await changeRecord<Stored>(ledger, recordIdOf(ledger, n), (record) => {
    edit(record)
    settledMs = Math.max(...record.i.map(({ e }) => e))
  })
  await tests.redis.zadd(ledger.key('records'), settledMs, recordIdOf(ledger, n))
}

/** Events that nobody was to get, settled one after the other up to `untilMs`. */
async function fill(ledger: AccountLedger, count: number, untilMs = Date.now()): Promise<void> {
  const uids = Array.from({ length: count }, (_none, n) => uidOf(n))
  for (let at = 0; at < count; at += 450) {
    const events = uids.slice(at, at + 450).map((uid) => routed({ uid, notes: 'x' }, []))
    await takeIn(ledger, events)
  }
  for (let n = 0; n < count; n += 1) {
    await tests.redis.zadd(ledger.key('records'), untilMs - count + n, recordIdOf(ledger, n))
  }
}

/** Which of the first so many have a record, and a payload. */
async function kept(ledger: AccountLedger, count: number): Promise<string> {
  const marks = Array.from({ length: count }, async (_none, n) => {
    const names = [
      ledger.key('rec', recordIdOf(ledger, n)),
      ledger.key('pay', recordIdOf(ledger, n)),
    ]
    return ['-', '?', '+'][await tests.redis.exists(...names)]
  })
  return (await Promise.all(marks)).join('')
}

/** What all records of the ledgers weigh. */
async function weigh(...ledgers: AccountLedger[]): Promise<number> {
  let sum = 0
  for (const ledger of ledgers) {
    const count = await tests.redis.zcard(ledger.key('records'))
    sum += Number(await ledger.run('weigh-records', ...Array.from({ length: count }, (_, n) => n)))
  }
  return sum
}

function trimOnce(ledger: AccountLedger, wanted: number): Promise<unknown> {
  return ledger.run('trim-records', ledger.retention.history, wanted)
}

test('nothing goes while it fits, and the pass notes what is kept and how far back', async () => {
  const { keys, ledger, keep, trimmed } = await aScene()
  const small = await tests.ledger({ keys, account: 'small' })
  await fill(small, 2)
  await takeIn(small, [routed({ uid: 'a/pending', notes: 'x'.repeat(5_000) })])
  for (const n of [0, 1, 2]) await settled(ledger, n, { agoMinutes: 10 * n })
  const bytes = await weigh(ledger, small)
  await keep(bytes, { ledgers: [small, ledger] })
  expect(await kept(ledger, 3)).toBe('+++')
  expect(trimmed).toEqual({ events: 0 })
  const oldestMs = Number(
    (await tests.redis.zrange(ledger.key('records'), '0', '0', 'WITHSCORES'))[1],
  )
  expect(await readRetentionNote(tests.redis, keys)).toMatchObject({ bytes, oldestMs })
})

test('the oldest settled go first, history and payload together; what is not settled stays', async () => {
  const { keys, ledger, keep, trimmed } = await aScene()
  const ages = [10, 50, 30, 40, 20, 60]
  for (const [n, agoMinutes] of ages.entries()) await settled(ledger, n, { agoMinutes })
  for (const n of [6, 7]) await takeIn(ledger, [routed({ uid: uidOf(n) }, ['soc'])])
  const bytes = await weigh(ledger)
  await keep(Math.floor((bytes * 6) / 8))
  expect(await kept(ledger, 8)).toBe('+-+-+-++') // 90 % of six of eight are five
  expect(trimmed).toEqual({ events: 3 })
  expect((await readRetentionNote(tests.redis, keys))?.bytes).toBeLessThan((bytes * 6) / 8)
  expect((await proofOf([ledger]))[0]).toMatchObject({
    differences: [],
    stranded: [],
    misfiled: [],
  })
})

test('an event is as old as the last of its deliveries, whichever of its items that was', async () => {
  const { ledger, keep } = await aScene()
  await settled(ledger, 0, { agoMinutes: 50 })
  await change(ledger, 0, (record) => record.i.unshift({ ...record.i[0]!, e: Date.now() }))
  await settled(ledger, 1, { agoMinutes: 40 })
  await keep(Math.floor(0.8 * (await weigh(ledger))))
  expect(await kept(ledger, 2)).toBe('+-')
})

test('where more than fits is not settled, all that is settled goes, and the log says so', async () => {
  const { ledger, keep } = await aScene()
  const lines: string[] = []
  const logger = createLogger({ level: 'warn', destination: { write: (line) => lines.push(line) } })
  await settled(ledger, 0, { agoMinutes: 5 })
  for (const n of [1, 2, 3]) await takeIn(ledger, [routed({ uid: uidOf(n) }, ['soc'])])
  await keep(1_000, { logger })
  expect(await kept(ledger, 4)).toBe('-+++')
  expect(lines.join('\n')).toContain('more than retention.max_bytes is not settled')
})

test('a dead letter goes with its event, and one whose event another item keeps stays', async () => {
  const { ledger, keep } = await aScene()
  await settled(ledger, 0, { agoMinutes: 50, outcome: 'dead' })
  await settled(ledger, 1, { agoMinutes: 5, outcome: 'dead' })
  const [letters, letter] = [ledger.key('dead', 'soc'), `i:${recordIdOf(ledger, 1)}:0:soc`]
  await tests.redis.zadd(letters, 1, letter, 2, 'i:expired:0:soc') // both beyond the history
  await keep(Math.floor(0.7 * (await weigh(ledger))))
  expect(await kept(ledger, 2)).toBe('-+')
  expect(await tests.redis.zrange(letters, '0', '-1')).toEqual([letter])
})

test('what is replayed after it was weighed stays', async () => {
  const { ledger, keep } = await aScene()
  await settled(ledger, 0, { agoMinutes: 50, outcome: 'dead' })
  await settled(ledger, 1, { agoMinutes: 40 })
  const replaying: AccountLedger = {
    ...ledger,
    async run(script, ...args) {
      const answer = await ledger.run(script, ...args)
      const letter = `i:${recordIdOf(ledger, 0)}:0:soc`
      if (script === 'weigh-records') await replayDeadLetter(ledger, letter, undefined)
      return answer
    },
  }
  await keep(100, { ledgers: [replaying] })
  expect(await kept(ledger, 2)).toBe('+-')
})

test('what is pending stays, whatever the index says, and is put right there', async () => {
  const { ledger, keep } = await aScene()
  await settled(ledger, 0, { agoMinutes: 50 })
  await takeIn(ledger, [routed({ uid: uidOf(1) }, ['soc'])])
  await tests.redis.zadd(ledger.key('records'), 1, recordIdOf(ledger, 1))
  await keep(1)
  expect(await kept(ledger, 2)).toBe('-+')
  expect(
    Number(await tests.redis.zscore(ledger.key('records'), recordIdOf(ledger, 1))),
  ).toBeLessThan(0)
})

test('what retention.history has ended goes whether or not there is room, also by a shorter one', async () => {
  const { ledger, keep, trimmed } = await aScene()
  const dayMinutes = 24 * 60
  await settled(ledger, 0, { agoMinutes: 91 * dayMinutes })
  await settled(ledger, 1, { agoMinutes: 15 * dayMinutes, outcome: 'dead' })
  await settled(ledger, 2, { agoMinutes: 13 * dayMinutes })
  await tests.redis.del(ledger.key('rec', recordIdOf(ledger, 0))) // it expired by itself
  await keep(plenty)
  expect(await kept(ledger, 3)).toBe('-++')
  const shorter = { ...ledger, retention: { history: 14 * dayMinutes * minuteMs } }
  await keep(plenty, { ledgers: [shorter], aheadMs: 20 * minuteMs })
  expect(await kept(ledger, 3)).toBe('--+')
  expect(trimmed).toEqual({ events: 0 }) // they had ended anyway
  expect(await tests.redis.zcard(ledger.key('dead', 'soc'))).toBe(0)
  expect((await proofOf([ledger]))[0]).toMatchObject({ records: 1, unfiled: 0, misfiled: [] })
})

test('a pass comes after a quarter of an hour, also by a clock that was ahead', async () => {
  const { keys, keep } = await aScene()
  const endedMs = async (): Promise<number | undefined> =>
    (await readRetentionNote(tests.redis, keys))?.endedAtMs
  await keep(plenty)
  const first = await endedMs()
  await keep(plenty, { aheadMs: 14 * minuteMs })
  await keep(plenty, { aheadMs: 16 * minuteMs, isActive: () => false })
  expect(await endedMs()).toBe(first)
  await keep(plenty, { aheadMs: 16 * minuteMs })
  expect(await endedMs()).toBeGreaterThan(first!)
  await keep(plenty) // the clock that was ahead is right again
  expect(await endedMs()).toBeLessThan(first! + minuteMs)
})

test('one replica makes a pass at a time, and several at once drop no more than one', async () => {
  const { keys, ledger, keep, trimmed } = await aScene()
  await fill(ledger, 40)
  await tests.redis.set(keys.shared('walking'), 'another')
  await keep(1)
  expect(trimmed.events).toBe(0)
  await tests.redis.del(keys.shared('walking'))
  const bytes = await weigh(ledger)
  await Promise.all([1, 2, 3].map(() => keep(Math.floor(bytes / 2))))
  expect(await weigh(ledger)).toBeGreaterThan(0.4 * bytes)
  expect(await weigh(ledger)).toBeLessThan(0.5 * bytes)
})

test('a pass ends between two steps where the process stops, is replaced, or loses the lease', async () => {
  for (const disturbance of ['stop', 'replace', 'lose'] as const) {
    const { keys, ledger, keep } = await aScene()
    await fill(ledger, 450, Date.now() - ledger.retention.history - minuteMs)
    const stopping = new AbortController()
    let isActive = true
    const sleep = async (): Promise<void> => {
      if (disturbance === 'stop') stopping.abort()
      if (disturbance === 'replace') isActive = false
      if (disturbance === 'lose') await tests.redis.set(keys.shared('walking'), 'another')
    }
    const clock = { ...systemClock, sleep }
    await keep(plenty, { clock, isActive: () => isActive, signal: stopping.signal })
    expect(await tests.redis.zcard(ledger.key('records'))).toBe(250)
    expect(await readRetentionNote(tests.redis, keys)).toBeUndefined()
    const holder = await tests.redis.get(keys.shared('walking'))
    expect(holder).toBe(disturbance === 'lose' ? 'another' : null)
  }
})

test('room is made where memory is full, and noted, so that not every look makes a pass', async () => {
  const { keys, ledger, keep } = await aScene()
  for (const n of [0, 1]) await settled(ledger, n, { agoMinutes: 50 - n })
  await whileFull(tests.redis, () => keep(1_000))
  expect(await kept(ledger, 2)).toBe('--')
  expect(await readRetentionNote(tests.redis, keys)).toMatchObject({ bytes: 0 })
})

test('an event weighs what Redis says of its record and payload, and its places in tables and index', async () => {
  const ledger = await tests.ledger()
  await takeIn(ledger, [routed({ uid: uidOf(1) })])
  const names = ['rec', 'pay'].map((kind) => ledger.key(kind, recordIdOf(ledger, 1)))
  const bytes = await Promise.all(names.map((name) => tests.redis.memory('USAGE', name)))
  const own = bytes.reduce<number>((sum, one) => sum + (one ?? 0), 0)
  expect(await ledger.run('weigh-records', 0, 1)).toBe(own + 120 + 300) // two keys, one entry, one ending, a message's part
})

test('an event that goes nowhere is settled at once: its record and content expire', async () => {
  const ledger = await tests.ledger()
  await takeIn(ledger, [routed({ uid: uidOf(1) }, [])])
  const { history, payload } = ledger.retention
  for (const [kind, keptMs] of [['rec', history] as const, ['pay', payload] as const]) {
    const leftMs = await tests.redis.pttl(ledger.key(kind, recordIdOf(ledger, 1)))
    expect(leftMs).toBeGreaterThan(keptMs - 60_000)
    expect(leftMs).toBeLessThanOrEqual(keptMs)
  }
})

test('what is kept of a message goes with the first of its events', async () => {
  const ledger = await tests.ledger()
  const events = [1, 2].map((n) => routed({ uid: uidOf(n) }, ['siem']))
  await takeIn(ledger, events, { batchWaitMs: 1_000 })
  const refs = [1, 2].map((n) => `i:${recordIdOf(ledger, n)}:0:siem`)
  const batch = (await sealBatch(ledger, { sink: 'siem', destination: 'siem' }, refs))!
  await attemptOf(ledger, batch, { outcome: 'delivered' })
  const name = ledger.key('told', batch.split(':')[1]!)
  expect(await tests.redis.exists(name)).toBe(1)
  await trimOnce(ledger, 1)
  expect(await tests.redis.exists(name)).toBe(0)
  expect(await tests.redis.zcard(ledger.key('records'))).toBe(1)
})

test('of an account with many records a sample is weighed, in as many steps as of one with a thousand', async () => {
  const { keys, ledger, keep } = await aScene()
  await fill(ledger, 2_400)
  const texts = Array.from({ length: 2_400 }, (_none, n) => 'x'.repeat(n))
  for (const [n, text] of texts.entries()) {
    await tests.redis.set(ledger.key('pay', recordIdOf(ledger, n)), text)
  }
  let steps = 0
  const counting: AccountLedger = {
    ...ledger,
    async run(script, ...args) {
      if (script === 'weigh-records') steps += 1
      return ledger.run(script, ...args)
    },
  }
  await keep(plenty, { ledgers: [counting] })
  expect(steps).toBe(5)
  const sampled = (await readRetentionNote(tests.redis, keys))!.bytes
  expect(Math.abs(sampled / (await weigh(ledger)) - 1)).toBeLessThan(0.02)
})

test('a step drops two hundred events at most, says what it freed and how far it came, and the next goes on', async () => {
  const ledger = await tests.ledger()
  await fill(ledger, 250)
  const ids = await tests.redis.zrange(ledger.key('records'), '0', '-1', 'WITHSCORES')
  const settledMs = (n: number): number => Number(ids[2 * n + 1])
  const places = Array.from({ length: 200 }, (_none, n) => n)
  const bytes = await ledger.run('weigh-records', ...places)
  const counted = (): Promise<string | null> => tests.redis.hget(ledger.key('counters'), 'records')
  expect(await trimOnce(ledger, 0)).toEqual([0, 0, 0, 0])
  expect(await trimOnce(ledger, plenty)).toEqual([200, bytes, settledMs(199), 1])
  expect([await tests.redis.zcard(ledger.key('records')), await counted()]).toEqual([50, '50'])
  const one = Number(await ledger.run('weigh-records', 0))
  expect(await trimOnce(ledger, one)).toEqual([1, one, settledMs(200), 0])
  expect(await trimOnce(ledger, plenty)).toEqual([49, expect.any(Number), settledMs(249), 0])
  expect(await counted()).toBe('0')
  expect(await tests.redis.keys(ledger.key('*', '*'))).not.toContainEqual(
    expect.stringMatching(/:(?:rec|pay):/),
  )
})

test('an entry of the index whose record is gone makes room for itself, and counts as no event', async () => {
  const ledger = await tests.ledger()
  await fill(ledger, 1)
  await tests.redis.del(
    ledger.key('rec', recordIdOf(ledger, 0)),
    ledger.key('pay', recordIdOf(ledger, 0)),
  )
  expect(await trimOnce(ledger, 1)).toEqual([0, 300, expect.any(Number), 0])
  expect(await tests.redis.zcard(ledger.key('records'))).toBe(0)
  expect(await readTrimmedUntilMs(ledger)).toBe(0)
})

test('up to when events were dropped is known, allows for the clock of the service, and never goes back', async () => {
  const ledger = await tests.ledger()
  await fill(ledger, 1)
  const { firstSeenMs } = (await readRecord(ledger, recordIdOf(ledger, 0)))!
  await trimOnce(ledger, plenty)
  expect(await readTrimmedUntilMs(ledger)).toBe(firstSeenMs + 1 + 5 * minuteMs)
  await tests.redis.set(ledger.key('trimmed'), firstSeenMs + 60 * minuteMs)
  await takeIn(ledger, [routed({ uid: 'a/b/later' }, [])])
  await trimOnce(ledger, plenty)
  expect(await readTrimmedUntilMs(ledger)).toBe(firstSeenMs + 65 * minuteMs)
})
