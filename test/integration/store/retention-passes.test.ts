/** What a pass of retention says of itself, when the next one comes, and how one is broken off. */
import { expect, test } from 'vitest'
import { systemClock } from '../../../src/lib/clock.ts'
import { createLogger } from '../../../src/lib/logger.ts'
import type { Keys } from '../../../src/redis/keys.ts'
import type { AccountLedger } from '../../../src/store/account-ledger.ts'
import {
  createRetention,
  readRetentionNote,
  type RetentionNote,
  type RetentionOptions,
} from '../../../src/store/retention.ts'
import { redisForTests, routed, silent, takeIn } from '../../support/ledger.ts'

const tests = redisForTests()
const minuteMs = 60_000

interface Pass extends Partial<RetentionOptions> {
  ledgers: AccountLedger[]
  keys: Keys
  maxBytes: number
  aheadMs?: number
  signal?: AbortSignal
  passes?: number
  alive?: () => void
}

/** Resolves with what is noted afterwards. */
async function keep({
  aheadMs = 0,
  signal = new AbortController().signal,
  passes = 1,
  alive = () => undefined,
  ...given
}: Pass): Promise<RetentionNote | undefined> {
  const now = (): number => Date.now() + aheadMs
  const retention = createRetention({
    redis: tests.redis,
    clock: { ...systemClock, now, sleep: () => Promise.resolve() },
    logger: silent,
    isActive: () => true,
    onTrimmed: () => undefined,
    ...given,
  })
  for (let pass = 0; pass < passes; pass += 1) await retention.retainOnce(signal, alive)
  return readRetentionNote(tests.redis, given.keys)
}

interface Filled {
  notes?: string
  from?: number
}

/** So many events that nobody was to get, settled one after the other up to now. */
async function fill(ledger: AccountLedger, count: number, { notes = 'x', from = 0 }: Filled = {}) {
  const uids = Array.from({ length: count }, (_none, n) => `paste/site/${from + n}`)
  const events = uids.map((uid) => routed({ uid, notes }, []))
  await takeIn(ledger, events)
  const startMs = Date.now() - count
  for (const [n, uid] of uids.entries()) {
    await tests.redis.zadd(ledger.key('records'), startMs + n, ledger.fingerprints.recordId(uid))
  }
  return startMs
}

async function weigh(ledger: AccountLedger): Promise<number> {
  const count = await tests.redis.zcard(ledger.key('records'))
  const places = Array.from({ length: count }, (_none, n) => n)
  return Number(await ledger.run('weigh-records', ...places))
}

test('the log says what went, of which account, up to when, and what is left', async () => {
  const keys = tests.keys()
  const ledger = await tests.ledger({ keys })
  const small = await tests.ledger({ keys, account: 'small' })
  const smallStartMs = await fill(small, 2)
  const startMs = await fill(ledger, 450)
  await tests.redis.del(ledger.key('pay', ledger.fingerprints.recordId('paste/site/0')))
  const malformed = [1, 2, 3].map((n) => ({ uid: null, problem: 'x: y', raw: `{"n":${n}}` }))
  await takeIn(ledger, [], { malformed })
  for (const id of await tests.redis.zrange(ledger.key('quarantine-ages'), '0', '-1')) {
    await tests.redis.zadd(ledger.key('quarantine-ages'), startMs - 1, id)
  }
  const lines: string[] = []
  const logger = createLogger({ level: 'info', destination: { write: (text) => lines.push(text) } })
  const maxBytes = Math.floor((await weigh(ledger)) / 2)
  const note = await keep({ ledgers: [small, ledger], keys, maxBytes, logger })
  const left = await tests.redis.zcard(ledger.key('records'))
  expect(left).toBeLessThan(250) // more than one step
  expect(lines).toHaveLength(1)
  expect(JSON.parse(lines[0]!)).toMatchObject({
    account: 'main',
    histories: 450 - left,
    payloads: 449 - left,
    quarantined: 3,
    settledUntil: new Date(startMs + 449 - left).toISOString(),
    bytes: await weigh(ledger),
    msg: 'the oldest settled events were dropped',
  })
  expect(note?.bytes).toBe((await weigh(ledger)) + (await weigh(small)))
  expect(note?.maxBytes).toBe(maxBytes)
  expect(note?.oldestMs).toBe(Math.min(smallStartMs, startMs + 450 - left))
})

test('the oldest settled event that a pass leaves is noted; a pending one does not count', async () => {
  const keys = tests.keys()
  const ledger = await tests.ledger({ keys })
  await takeIn(ledger, [routed({ uid: 'paste/site/pending' }, ['soc'])])
  const empty = await keep({ ledgers: [ledger], keys, maxBytes: 1e6 })
  expect(empty?.oldestMs).toBeUndefined()
  const startMs = await fill(ledger, 3)
  const ahead = 2 * 3_600_000 // the next pass is due by then
  const full = await keep({ ledgers: [ledger], keys, maxBytes: 1e6, aheadMs: ahead })
  expect(full?.oldestMs).toBe(startMs)
})

test('nothing goes of an account that takes more than its part while all of them fit', async () => {
  const keys = tests.keys()
  const ledger = await tests.ledger({ keys })
  const small = await tests.ledger({ keys, account: 'small' })
  await fill(small, 2)
  await fill(ledger, 97)
  const bytes = (await weigh(ledger)) + (await weigh(small))
  for (const spare of [0, 1, 77]) {
    const given = { ledgers: [ledger, small], keys, maxBytes: bytes + spare }
    expect(await keep({ ...given, aheadMs: spare * 60 * minuteMs })).toMatchObject({ bytes })
  }
})

test('the next pass comes in half of the time in which it would be full, after an hour where nothing grows', async () => {
  const keys = tests.keys()
  const ledger = await tests.ledger({ keys })
  const pass = (maxBytes: number, aheadMs: number) =>
    keep({ ledgers: [ledger], keys, maxBytes, aheadMs })
  const pauseOf = (note?: RetentionNote): number => note!.dueAtMs - note!.endedAtMs
  await fill(ledger, 100)
  const first = await pass(2 ** 30, 0)
  expect(pauseOf(first)).toBe(minuteMs)
  const second = await pass(2 ** 30, 2 * minuteMs)
  expect(second!.bytes).toBe(first!.bytes)
  expect(pauseOf(second)).toBe(60 * minuteMs)
  await fill(ledger, 100, { from: 100 })
  // what came in an hour may come half as much again: in half an hour
  const third = await pass(Math.floor(2.5 * first!.bytes), 63 * minuteMs)
  expect(pauseOf(third) / minuteMs).toBeGreaterThan(13)
  expect(pauseOf(third) / minuteMs).toBeLessThan(17)
})

test.each([
  ['what retention.history has ended', 2 ** 40],
  ['what makes room', 1],
])(
  'a pass that is stopped between two steps drops no more of %s, and notes nothing',
  async (what, maxBytes) => {
    const keys = tests.keys()
    const ledger = await tests.ledger({ keys })
    const startMs = await fill(ledger, 450)
    const hasEnded = what !== 'what makes room'
    if (hasEnded) {
      const uids = Array.from({ length: 450 }, (_none, n) => `paste/site/${n}`)
      for (const [n, uid] of uids.entries()) {
        const endedMs = startMs - ledger.retention.history - minuteMs + n
        await tests.redis.zadd(ledger.key('records'), endedMs, ledger.fingerprints.recordId(uid))
      }
    }
    const stopping = new AbortController()
    const stopped: AccountLedger = {
      ...ledger,
      async run(script, ...args) {
        const answer = await ledger.run(script, ...args)
        if (script === 'trim-records' && (hasEnded || Number(args[2]) > 0)) stopping.abort()
        return answer
      },
    }
    let signs = 0
    const alive = (): void => void (signs += 1)
    const note = await keep({ ledgers: [stopped], keys, maxBytes, signal: stopping.signal, alive })
    expect(note).toBeUndefined()
    expect(await tests.redis.zcard(ledger.key('records'))).toBe(250)
    expect(signs).toBeGreaterThan(0)
    expect(await tests.redis.exists(keys.shared('walking'))).toBe(0)
  },
)

test('that a limit is more than half of what Redis may use is told once', async () => {
  const keys = tests.keys()
  const ledger = await tests.ledger({ keys })
  const warningsWith = async (maxBytes: number): Promise<number> => {
    let lines = 0
    const destination = { write: () => void (lines += 1) }
    const logger = createLogger({ level: 'warn', destination })
    await keep({ ledgers: [ledger], keys, maxBytes, logger, passes: 3 })
    return lines
  }
  await tests.redis.config('SET', 'maxmemory', '200mb')
  try {
    expect(await warningsWith(100 * 2 ** 20)).toBe(0)
    expect(await warningsWith(100 * 2 ** 20 + 1)).toBe(1)
  } finally {
    await tests.redis.config('SET', 'maxmemory', '0')
  }
})
