/** `retention.max_bytes`: the oldest settled events make room, and no other. */
import { describe, expect, test } from 'vitest'
import { systemClock } from '../../../src/lib/clock.ts'
import { createLogger, type Logger } from '../../../src/lib/logger.ts'
import type { Keys } from '../../../src/redis/keys.ts'
import { holdLease, releaseLease } from '../../../src/redis/scripts.ts'
import type { AccountLedger } from '../../../src/store/account-ledger.ts'
import { countDeadLetters } from '../../../src/store/pending-items.ts'
import { replayDeadLetter } from '../../support/acts.ts'
import { readRecord, readTrimmedUntilMs } from '../../../src/store/records.ts'
import {
  createRetention,
  readRetentionNote,
  type RetentionOptions,
} from '../../../src/store/retention.ts'
import { attemptOf, beginAttempt, sealBatch, settleAttempt } from '../../support/attempts.ts'
import { proofOf, redisForTests, routed, silent, takeIn } from '../../support/ledger.ts'

const tests = redisForTests()
const minuteMs = 60_000

interface Scene {
  keys: Keys
  ledger: AccountLedger
  trimmed: { histories: number; payloads: number }
  /** One pass, `aheadMs` from now. */
  keep: (
    maxBytes: number,
    given?: Partial<RetentionOptions> & { aheadMs?: number; signal?: AbortSignal },
  ) => Promise<void>
}

async function aScene(): Promise<Scene> {
  const keys = tests.keys()
  const ledger = await tests.ledger({ keys })
  const trimmed = { histories: 0, payloads: 0 }
  return {
    keys,
    ledger: ledger,
    trimmed,
    async keep(maxBytes, { aheadMs = 0, signal = new AbortController().signal, ...given } = {}) {
      const clock = {
        ...systemClock,
        now: () => Date.now() + aheadMs,
        sleep: () => Promise.resolve(),
      }
      const retention = createRetention({
        ledgers: [ledger],
        maxBytes,
        redis: tests.redis,
        keys,
        clock,
        logger: silent,
        isActive: () => true,
        onTrimmed({ histories, payloads }) {
          trimmed.histories += histories
          trimmed.payloads += payloads
        },
        ...given,
      })
      await retention.retainOnce(signal, () => undefined)
    },
  }
}

const uidOf = (n: number): string => `paste/site/${n}`

/** Takes one in and settles it as so many minutes ago. */
async function settled(
  ledger: AccountLedger,
  n: number,
  { agoMinutes, outcome = 'delivered', notes = 'x' }: Settled,
): Promise<void> {
  await takeIn(ledger, [routed({ uid: uidOf(n), notes }, ['soc'])])
  const id = ledger.fingerprints.recordId(uidOf(n))
  const ref = `i:${id}:0:soc`
  await beginAttempt(ledger, ref, 't', 60_000)
  await settleAttempt(ledger, { ref, token: 't', replica: 'r' }, { outcome })
  const { history, payload } = ledger.retention
  const agoMs = agoMinutes * minuteMs
  const record = JSON.parse((await tests.redis.get(ledger.key('rec', id))) ?? '') as Stored
  record.t -= agoMs
  for (const item of record.i) item.e -= agoMs
  await tests.redis.set(ledger.key('rec', id), JSON.stringify(record), 'PX', history - agoMs)
  await tests.redis.pexpire(ledger.key('pay', id), payload - agoMs)
  await refile(ledger, id)
}

/** Into its place in the index, where a test has changed the record. */
async function refile(ledger: AccountLedger, id: string): Promise<void> {
  const { i } = JSON.parse((await tests.redis.get(ledger.key('rec', id))) ?? '') as Stored
  await tests.redis.zadd(ledger.key('records'), Math.max(...i.map(({ e }) => e)), id)
}

/** Of a record, what tells its age. */
interface Stored {
  t: number
  i: { e: number }[]
}

interface Settled {
  agoMinutes: number
  outcome?: 'delivered' | 'dead'
  notes?: string
}

/** Which of the first so many have a record, and a payload. */
async function kept(ledger: AccountLedger, count: number): Promise<string> {
  const marks = Array.from({ length: count }, async (_none, n) => {
    const id = ledger.fingerprints.recordId(uidOf(n))
    const there = await tests.redis.exists(ledger.key('rec', id))
    const content = await tests.redis.exists(ledger.key('pay', id))
    return ['-', '?', '+'][there + content] ?? ''
  })
  return (await Promise.all(marks)).join('')
}

async function weighed({ keys, keep }: Scene): Promise<number> {
  await keep(2 ** 40)
  const bytes = (await readRetentionNote(tests.redis, keys))?.bytes ?? 0
  await tests.redis.del(keys.shared('keeping'))
  return bytes
}

test('the quarantine counts, and its oldest entries make room with the oldest events', async () => {
  const { keys, ledger, keep } = await aScene()
  await settled(ledger, 0, { agoMinutes: 5 })
  const before = await weighed({
    keys,
    ledger: ledger,
    keep,
    trimmed: { histories: 0, payloads: 0 },
  })
  const malformed = Array.from({ length: 40 }, (_none, n) => ({
    uid: n % 2 === 0 ? `a/b/${n}` : null,
    problem: 'x: y',
    raw: `{"n":${n},"text":"${'x'.repeat(16_000)}"}`,
  }))
  await takeIn(ledger, [], { malformed })
  const ages = ledger.key('quarantine-ages')
  const ids = await tests.redis.zrange(ages, '0', '-1')
  for (const [n, id] of ids.entries()) await tests.redis.zadd(ages, Date.now() - n * minuteMs, id)
  const bytes = await weighed({
    keys,
    ledger: ledger,
    keep,
    trimmed: { histories: 0, payloads: 0 },
  })
  expect(bytes - before).toBeGreaterThan(40 * 16_000)
  let dropped = 0
  await keep(Math.floor(bytes / 2), {
    onTrimmed: ({ quarantined }) => void (dropped += quarantined),
  })
  expect(await kept(ledger, 1)).toBe('+') // five minutes old: what is older went first, and was enough
  const left = await tests.redis.zrange(ages, '0', '-1')
  expect(left.toSorted()).toEqual(ids.slice(0, 40 - dropped).toSorted())
  expect(dropped).toBeGreaterThan(10)
  expect(dropped).toBeLessThan(30)
  const tables = ['quarantine', 'quarantine-feeds'].map((name) =>
    tests.redis.hlen(ledger.key(name)),
  )
  expect(await Promise.all(tables)).toEqual([left.length, left.length])
})

test('nothing goes while it fits', async () => {
  const scene = await aScene()
  for (const n of [0, 1, 2]) await settled(scene.ledger, n, { agoMinutes: 10 * n })
  const bytes = await weighed(scene)
  expect(bytes).toBeGreaterThan(3 * 500)
  await scene.keep(bytes)
  expect(await kept(scene.ledger, 3)).toBe('+++')
  expect(scene.trimmed).toEqual({ histories: 0, payloads: 0 })
})

test('the oldest settled go first, history and payload together; what is not settled stays', async () => {
  const scene = await aScene()
  const { ledger } = scene
  const ages = [10, 50, 30, 40, 20, 60]
  for (const [n, agoMinutes] of ages.entries()) await settled(ledger, n, { agoMinutes })
  await takeIn(ledger, [routed({ uid: uidOf(6) }, ['soc'])])
  await takeIn(ledger, [routed({ uid: uidOf(7) }, ['soc'])])
  const bytes = await weighed(scene)
  await scene.keep(Math.floor((bytes * 6) / 8))
  expect(await kept(ledger, 8)).toBe('+-+-+-++') // 90 % of six of eight are five
  expect(scene.trimmed).toEqual({ histories: 3, payloads: 3 })
  expect((await readRetentionNote(tests.redis, scene.keys))?.bytes).toBeLessThan((bytes * 6) / 8)
  const [proof] = await proofOf([ledger])
  expect(proof).toMatchObject({ differences: [], stranded: [], dangling: [] })
})

test("the noise of one tenant costs another none of its history, and another's unused share is not lost", async () => {
  const scene = await aScene()
  const quiet = await tests.ledger({ keys: scene.keys, account: 'quiet' })
  for (let n = 0; n < 4; n += 1) await settled(quiet, n, { agoMinutes: 500 - n })
  const quietBytes = await weighed({ ...scene, keep: keepOf(scene, [quiet]) })
  for (let n = 0; n < 40; n += 1) await settled(scene.ledger, n, { agoMinutes: 100 - n })
  const keep = keepOf(scene, [scene.ledger, quiet])
  const bytes = await weighed({ ...scene, keep })
  const maxBytes = Math.floor(bytes / 2) // the quiet one keeps a tenth of all, less than its half
  await keep(maxBytes)
  expect(await kept(quiet, 4)).toBe('++++')
  const left = (await kept(scene.ledger, 40)).replaceAll('-', '')
  const noisyBytes = maxBytes - quietBytes
  const each = (bytes - quietBytes) / 40
  expect(left.length * each).toBeLessThanOrEqual(noisyBytes)
  expect(left.length * each).toBeGreaterThan(0.8 * noisyBytes)
})

function keepOf({ keep }: Scene, ledgers: readonly AccountLedger[]): Scene['keep'] {
  return (maxBytes, given) => keep(maxBytes, { ...given, ledgers: ledgers })
}

test('an event is as old as the last of its deliveries, whichever of its items that was', async () => {
  const scene = await aScene()
  const { ledger } = scene
  await settled(ledger, 0, { agoMinutes: 50 })
  const id = ledger.fingerprints.recordId(uidOf(0))
  const name = ledger.key('rec', id)
  const record = JSON.parse((await tests.redis.get(name)) ?? '') as Stored
  const [item] = record.i
  record.i = [{ ...item!, e: Date.now() }, item!] // delivered to one just now, to the other long ago
  await tests.redis.set(name, JSON.stringify(record), 'KEEPTTL')
  await refile(ledger, id)
  await settled(ledger, 1, { agoMinutes: 40 })
  await scene.keep(Math.floor(0.8 * (await weighed(scene))))
  expect(await kept(ledger, 2)).toBe('+-')
})

test('it breaks off where the process stops, its configuration is replaced, or another replica walks', async () => {
  const stopping = new AbortController()
  let isActive = true
  const disturbances = [
    () => stopping.abort(),
    () => void (isActive = false),
    (keys: Keys) => tests.redis.set(keys.shared('walking'), 'another'),
  ]
  for (const disturb of disturbances) {
    const { ledger, keys, keep } = await aScene()
    isActive = true
    await settled(ledger, 0, { agoMinutes: 50 })
    const clock = {
      ...systemClock,
      sleep: async () => void (await disturb(keys)), // after the first page
    }
    const signal = disturb === disturbances[0] ? stopping.signal : new AbortController().signal
    await keep(100, { clock, isActive: () => isActive, signal })
    expect(await kept(ledger, 1)).toBe('+')
    expect(await readRetentionNote(tests.redis, keys)).toBeUndefined()
  }
})

test('a large payload counts for what it is', async () => {
  const scene = await aScene()
  const { ledger } = scene
  await settled(ledger, 0, { agoMinutes: 50 })
  await settled(ledger, 1, { agoMinutes: 40, notes: 'x'.repeat(100_000) })
  for (const n of [2, 3, 4]) await settled(ledger, n, { agoMinutes: 30 - n })
  await scene.keep(50_000)
  expect(await kept(ledger, 5)).toBe('--+++')
})

test('where more than fits is not settled, all that is settled goes, and the log says so', async () => {
  const scene = await aScene()
  const lines: string[] = []
  const logger = createLogger({
    level: 'warn',
    destination: { write: (line) => void lines.push(line) },
  })
  await settled(scene.ledger, 0, { agoMinutes: 5 })
  for (const n of [1, 2, 3]) await takeIn(scene.ledger, [routed({ uid: uidOf(n) }, ['soc'])])
  await scene.keep(1_000, { logger })
  expect(await kept(scene.ledger, 4)).toBe('-+++')
  expect(lines.join('\n')).toContain('more than retention.max_bytes is not settled')
})

test('a dead letter goes with its event, and is no longer counted', async () => {
  const scene = await aScene()
  await settled(scene.ledger, 0, { agoMinutes: 50, outcome: 'dead' })
  await settled(scene.ledger, 1, { agoMinutes: 5, outcome: 'dead' })
  expect(await countDeadLetters(scene.ledger, 'soc')).toBe(2)
  await scene.keep(Math.floor(0.7 * (await weighed(scene))))
  expect(await kept(scene.ledger, 2)).toBe('-+')
  expect(await countDeadLetters(scene.ledger, 'soc')).toBe(1)
})

test('a dead letter whose event another item keeps stays listed, however old it is', async () => {
  const { ledger, keep } = await aScene()
  await settled(ledger, 0, { agoMinutes: 5, outcome: 'dead' })
  const kept = `i:${ledger.fingerprints.recordId(uidOf(0))}:0:soc`
  const gone = `i:${ledger.fingerprints.recordId('nobody')}:0:soc`
  await tests.redis.zadd(ledger.key('dead', 'soc'), 1, kept, 2, gone)
  expect(await countDeadLetters(ledger, 'soc')).toBe(1)
  await keep(2 ** 40)
  expect(await tests.redis.zrange(ledger.key('dead', 'soc'), '0', '-1')).toEqual([kept])
})

test('what is replayed after it was weighed stays', async () => {
  const scene = await aScene()
  const { ledger } = scene
  await settled(ledger, 0, { agoMinutes: 50, outcome: 'dead' })
  await settled(ledger, 1, { agoMinutes: 40 })
  const id = ledger.fingerprints.recordId(uidOf(0))
  const { run } = ledger
  const replaying: AccountLedger = {
    ...ledger,
    async run(script, ...args) {
      if (script === 'weigh-quarantine') await replayDeadLetter(ledger, `i:${id}:0:soc`, undefined)
      return run(script, ...args)
    },
  }
  await scene.keep(100, { ledgers: [replaying] })
  expect(await kept(ledger, 2)).toBe('+-')
})

test('what is pending stays, whatever the index says, and is put right there', async () => {
  const { ledger, keep } = await aScene()
  await settled(ledger, 0, { agoMinutes: 50 })
  await takeIn(ledger, [routed({ uid: uidOf(1) }, ['soc'])])
  const id = ledger.fingerprints.recordId(uidOf(1))
  await tests.redis.zadd(ledger.key('records'), 1, id)
  await keep(1)
  expect(await kept(ledger, 2)).toBe('-+')
  expect(Number(await tests.redis.zscore(ledger.key('records'), id))).toBeLessThan(0)
})

test('two keepers at once drop no more than one', async () => {
  const scene = await aScene()
  const { ledger } = scene
  for (let n = 0; n < 40; n += 1) await settled(ledger, n, { agoMinutes: 100 - n })
  const bytes = await weighed(scene)
  await Promise.all([1, 2, 3].map(() => scene.keep(Math.floor(bytes / 2))))
  const left = (await kept(ledger, 40)).replaceAll('-', '').length
  expect(left).toBeGreaterThanOrEqual(17)
  expect(left).toBeLessThanOrEqual(19)
  expect(scene.trimmed).toEqual({ histories: 40 - left, payloads: 40 - left })
})

test('one replica walks at a time', async () => {
  const scene = await aScene()
  await settled(scene.ledger, 0, { agoMinutes: 50 })
  const lease = scene.keys.shared('walking')
  expect(await holdLease(tests.redis, lease, { holder: 'another', ms: minuteMs })).toBe(true)
  await scene.keep(100)
  expect(await kept(scene.ledger, 1)).toBe('+')
  await releaseLease(tests.redis, lease, 'another')
  await scene.keep(100)
  expect(await kept(scene.ledger, 1)).toBe('-')
})

test('it walks again when it is time to, and not before', async () => {
  const scene = await aScene()
  await settled(scene.ledger, 0, { agoMinutes: 50 })
  const walked = async (): Promise<number | undefined> =>
    (await readRetentionNote(tests.redis, scene.keys))?.endedAtMs
  await scene.keep(2 ** 30)
  const first = await walked()
  await scene.keep(2 ** 30, { aheadMs: 30_000 })
  await scene.keep(2 ** 30, { aheadMs: 61_000, isActive: () => false })
  expect(await walked()).toBe(first)
  await scene.keep(2 ** 30, { aheadMs: 61_000 })
  expect(await walked()).toBeGreaterThan(first!)
})

test('what was seen after the newest that made room is known to be all there', async () => {
  const scene = await aScene()
  const { ledger } = scene
  expect(await readTrimmedUntilMs(ledger)).toBe(0)
  await settled(ledger, 0, { agoMinutes: 50 })
  const seenMs =
    (await readRecord(ledger, ledger.fingerprints.recordId(uidOf(0))))?.firstSeenMs ?? 0
  await scene.keep(100)
  expect(await readTrimmedUntilMs(ledger)).toBe(seenMs + 1 + 5 * minuteMs) // the service's clock may be ahead
})

test('a shorter retention.history lets the oldest go first all the same', async () => {
  const { keys, ledger, keep } = await aScene()
  for (const n of [0, 1, 2]) await settled(ledger, n, { agoMinutes: 60 - n })
  const history = 14 * 24 * 60 * minuteMs // less than what the first ones have left
  const shorter = { ...ledger, retention: { ...ledger.retention, history } }
  for (const n of [3, 4, 5]) await settled(shorter, n, { agoMinutes: 10 - n })
  const bytes = await weighed({ keys, keep } as Scene)
  await keep(Math.floor(0.7 * bytes), { ledgers: [shorter] })
  expect(await kept(ledger, 6)).toBe('---+++')
})

test('room is made where memory is full, and noted, so that not every look makes a pass', async () => {
  const { keys, ledger, keep } = await aScene()
  for (const n of [0, 1]) await settled(ledger, n, { agoMinutes: 50 - n })
  await tests.redis.config('SET', 'maxmemory', '1')
  try {
    await keep(1_000)
  } finally {
    await tests.redis.config('SET', 'maxmemory', '0')
  }
  expect(await kept(ledger, 2)).toBe('--')
  expect(await readRetentionNote(tests.redis, keys)).toMatchObject({ maxBytes: 1_000 })
})

describe('it does not wait for its time', () => {
  test('where the replica that set it had a clock that was ahead', async () => {
    const { ledger, keep } = await aScene()
    await settled(ledger, 0, { agoMinutes: 50 })
    await keep(2 ** 30, { aheadMs: 24 * 60 * minuteMs })
    await keep(100)
    expect(await kept(ledger, 1)).toBe('-')
  })

  test('where the limit was lowered', async () => {
    const { ledger, keep } = await aScene()
    await settled(ledger, 0, { agoMinutes: 50 })
    await keep(2 ** 30)
    await keep(100)
    expect(await kept(ledger, 1)).toBe('-')
  })

  test('where more came than there was room for', async () => {
    const { ledger, keep } = await aScene()
    await settled(ledger, 0, { agoMinutes: 50 })
    await keep(2 ** 20)
    await settled(ledger, 1, { agoMinutes: 40, notes: 'x'.repeat(2 ** 21) })
    await keep(2 ** 20)
    expect(await kept(ledger, 2)).toBe('--')
  })
})

describe('a limit of more than half of what Redis may use', () => {
  async function warningsWith(maxBytes: number): Promise<string[]> {
    const lines: string[] = []
    const logger: Logger = createLogger({
      level: 'warn',
      destination: { write: (line) => void lines.push(line) },
    })
    await (await aScene()).keep(maxBytes, { logger })
    return lines
  }

  test('is told', async () => {
    await tests.redis.config('SET', 'maxmemory', '200mb')
    try {
      expect((await warningsWith(101 * 2 ** 20)).join()).toContain('more than half of what Redis')
      expect(await warningsWith(99 * 2 ** 20)).toEqual([])
    } finally {
      await tests.redis.config('SET', 'maxmemory', '0')
    }
    expect(await warningsWith(2 ** 40)).toEqual([])
  })
})

test('an event that made room is told again only where it comes back more severe than ever', async () => {
  const { ledger, keep } = await aScene()
  const shown = async (severity: string): Promise<string[]> => {
    const accepted = await takeIn(ledger, [routed({ uid: uidOf(1), severity }, ['soc'])])
    const made = accepted.status === 'committed' ? accepted.changes : []
    for (const { ref } of made) {
      await beginAttempt(ledger, ref, 't', minuteMs)
      await settleAttempt(ledger, { ref, token: 't', replica: 'r' }, { outcome: 'delivered' })
    }
    const record = await readRecord(ledger, ledger.fingerprints.recordId(uidOf(1)))
    const items = record?.items ?? []
    return made.length === 0 ? [] : items.map((item) => `${item.raisedFrom} to ${item.severity}`)
  }
  const makeRoom = () => keep(1, { aheadMs: 365 * 24 * 60 * minuteMs })
  expect(await shown('medium')).toEqual(['undefined to medium'])
  await makeRoom()
  expect(await readRecord(ledger, ledger.fingerprints.recordId(uidOf(1)))).toBeUndefined()
  expect(await shown('medium')).toEqual([])
  expect(await shown('low')).toEqual([])
  expect(await shown('critical')).toEqual(['medium to critical'])
  await makeRoom()
  expect(await shown('critical')).toEqual([])
  expect(await shown('high')).toEqual([])
  expect((await proofOf([ledger]))[0]).toMatchObject({ differences: [], stranded: [] })
})

test('a record weighs what Redis says with its payload, and its places in the tables of keys', async () => {
  const ledger = await tests.ledger()
  await takeIn(ledger, [routed({ uid: 'a/b/1' })])
  const recordId = ledger.fingerprints.recordId('a/b/1')
  const names = [ledger.key('rec', recordId), ledger.key('pay', recordId)]
  const bytes = await Promise.all(names.map((name) => tests.redis.memory('USAGE', name)))
  const own = bytes.reduce<number>((sum, one) => sum + (one ?? 0), 0)
  expect(await ledger.run('weigh-records', 0, 1)).toBe(own + 120 + 200) // two keys, one entry, one ending
})

test('what is kept of a message weighs on its events, and goes with the first of them', async () => {
  const ledger = await tests.ledger()
  const uids = ['a/b/1', 'a/b/2']
  await takeIn(
    ledger,
    uids.map((uid) => routed({ uid }, ['siem'])),
    { batchWaitMs: 1_000 },
  )
  const refs = uids.map((uid) => `i:${ledger.fingerprints.recordId(uid)}:0:siem`)
  const batch = (await sealBatch(ledger, { sink: 'siem', destination: 'siem' }, refs))!
  await attemptOf(ledger, batch, { outcome: 'delivered' })
  const name = ledger.key('told', batch.split(':')[1]!)
  const toldBytes = (await tests.redis.memory('USAGE', name))! + 60
  const all = Number(await ledger.run('weigh-records', 0, 1))
  expect(JSON.parse((await tests.redis.get(name))!)).toEqual(refs)
  await ledger.run('trim-records', ledger.retention.history, ledger.horizonMs, 1)
  expect(await tests.redis.exists(name)).toBe(0)
  expect(await tests.redis.zcard(ledger.key('records'))).toBe(1)
  const rest = Number(await ledger.run('weigh-records', 0))
  expect(2 * rest).toBe(all - toldBytes)
})

test('of an account with many records a sample is weighed, in as many steps as of one with a thousand', async () => {
  const scene = await aScene()
  const { ledger } = scene
  for (let page = 0; page < 6; page += 1) {
    const events = Array.from({ length: 400 }, (_none, n) =>
      routed({ uid: uidOf(400 * page + n), notes: 'x'.repeat(100 * page + n) }, []),
    )
    await takeIn(ledger, events)
  }
  let steps = 0
  const counting: AccountLedger = {
    ...ledger,
    async run(script, ...args) {
      if (script === 'weigh-records') steps += 1
      return ledger.run(script, ...args)
    },
  }
  await scene.keep(2 ** 40, { ledgers: [counting] })
  const sampled = (await readRetentionNote(tests.redis, scene.keys))?.bytes ?? 0
  expect(steps).toBe(5)
  const all = Array.from({ length: 2_400 }, (_none, n) => n)
  const bytes = Number(await ledger.run('weigh-records', ...all))
  expect(Math.abs(sampled / bytes - 1)).toBeLessThan(0.02)
})

test('what retention.history has ended leaves the index, and what is left of it goes', async () => {
  const { ledger, keep } = await aScene()
  const days = 24 * 60
  await settled(ledger, 0, { agoMinutes: 89 * days })
  const ended = ledger.fingerprints.recordId(uidOf(0))
  await tests.redis.del(ledger.key('rec', ended)) // two days later
  await tests.redis.zadd(ledger.key('records'), Date.now() - 91 * days * minuteMs, ended)
  await settled(ledger, 1, { agoMinutes: 15 * days, outcome: 'dead' })
  await settled(ledger, 2, { agoMinutes: 13 * days })
  expect(await kept(ledger, 3)).toBe('-?+')
  await keep(2 ** 40)
  const ids = await tests.redis.zrange(ledger.key('records'), '0', '-1')
  expect(ids).toEqual([1, 2].map((n) => ledger.fingerprints.recordId(uidOf(n))))
  const shorter = { ...ledger, retention: { history: 14 * days * minuteMs, payload: 1 } }
  await keep(2 ** 40, { ledgers: [shorter], aheadMs: 2 * 3_600_000 })
  expect(await kept(ledger, 3)).toBe('--+')
  expect(await countDeadLetters(ledger, 'soc')).toBe(0)
  const [proof] = await proofOf([ledger])
  expect(proof).toMatchObject({ records: 1, unfiled: 0, dangling: [] })
})

test('a step drops the oldest that it needs to, and says what it freed and how far it came', async () => {
  const { ledger } = await aScene()
  await settled(ledger, 0, { agoMinutes: 50, outcome: 'dead' })
  await settled(ledger, 1, { agoMinutes: 40 })
  const id = ledger.fingerprints.recordId(uidOf(0))
  const { i } = JSON.parse((await tests.redis.get(ledger.key('rec', id)))!) as Stored
  const bytes = Number(await ledger.run('weigh-records', 0))
  const trim = (wanted: number) =>
    ledger.run('trim-records', ledger.retention.history, ledger.horizonMs, wanted)
  expect(await trim(0)).toEqual([0, 0, 0, 0, 0, 0])
  expect(await trim(bytes)).toEqual([1, 1, 0, bytes, i[0]!.e, 0])
  expect(await countDeadLetters(ledger, 'soc')).toBe(0)
  expect(await kept(ledger, 2)).toBe('-+')
})
