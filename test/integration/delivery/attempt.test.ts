import { expect, test } from 'vitest'
import { readSummaryParts } from '../../../src/delivery/send/attempt.ts'
import { sealBatch, peekBatch } from '../../support/attempts.ts'
import type { AccountLedger } from '../../../src/store/account-ledger.ts'
import { readRecord, type Item } from '../../../src/store/records.ts'
import type { Keys } from '../../../src/redis/keys.ts'
import { type Clock, systemClock } from '../../../src/lib/clock.ts'
import { createLogger } from '../../../src/lib/logger.ts'
import { createMetrics } from '../../../src/lib/metrics/metrics.ts'
import { SinkError, type Sink } from '../../../src/sinks/sink.ts'
import { aDeliveryRig, bareMembers, type DeliveryRig } from '../../support/delivery.ts'
import { redisForTests, routed, takeIn } from '../../support/ledger.ts'
import { aRehearsedSink } from '../../support/rehearsed-sink.ts'

const tests = redisForTests()

async function rig(...sinks: Sink[]): Promise<DeliveryRig & { ledger: AccountLedger; keys: Keys }> {
  const keys = tests.keys()
  const ledger = await tests.ledger({ keys })
  return {
    ledger: ledger,
    keys,
    ...aDeliveryRig({ redis: tests.redis, keys, ledger: ledger, sinks }),
  }
}

/** Also what it logs, line by line. */
async function rigThatLogs(sink: Sink, clock: Clock = systemClock) {
  const lines: string[] = []
  const logger = createLogger({ destination: { write: (line) => void lines.push(line) } })
  const keys = tests.keys()
  const ledger = await tests.ledger({ keys })
  const given = { redis: tests.redis, keys, ledger, sinks: [sink], drain: { logger, clock } }
  const told = (): object[] => lines.map((line) => JSON.parse(line) as object)
  return { ledger, told, ...aDeliveryRig(given) }
}

async function made(
  ledger: AccountLedger,
  uid: string,
  to: string[],
  batchWaitMs?: number,
): Promise<string> {
  const page = batchWaitMs === undefined ? {} : { batchWaitMs }
  const accepted = await takeIn(ledger, [routed({ uid }, to)], page)
  return accepted.status === 'committed' ? accepted.changes[0]!.ref : ''
}

async function sealed(ledger: AccountLedger, sink: string, uids: string[]): Promise<string> {
  for (const uid of uids) await made(ledger, uid, [sink], 1_000)
  const refs = (await peekBatch(ledger, sink, 100)).map(({ ref }) => ref)
  return (await sealBatch(ledger, { sink, destination: sink, waitMs: 1_000 }, refs))!
}

async function item(ledger: AccountLedger, uid: string): Promise<Item> {
  return (await readRecord(ledger, ledger.fingerprints.recordId(uid)))!.items[0]!
}

test('a refusal keeps its reason when neither circuit nor pace can be told', async () => {
  const soc = aRehearsedSink('soc', { limitPerSecond: 1_000 })
  const { ledger, keys, deliver } = await rig(soc)
  const ref = await made(ledger, 'a/b/1', ['soc'])
  soc.next(async () => {
    await tests.redis.set(keys.shared('circuit', 'soc'), 'not a hash')
    await tests.redis.del(keys.shared('pace', 'soc'))
    await tests.redis.hset(keys.shared('pace', 'soc'), 'not', 'a string')
    throw new SinkError('rate_limited', 'slower')
  })
  expect(await deliver(soc, ref)).toMatchObject({ next: 'later' })
  expect(await item(ledger, 'a/b/1')).toMatchObject({ state: 'retrying', repeatRisks: 0 })
})

test.each([
  ['unavailable', { msg: 'delivery failed: it is retried', againInSeconds: expect.any(Number) }],
  ['gone', { msg: 'delivery failed: it waits for its sink' }],
] as const)('what a failure of the reason %s says of the next try holds', async (reason, said) => {
  const soc = aRehearsedSink('soc')
  const { ledger, told, deliver } = await rigThatLogs(soc)
  soc.next(() => Promise.reject(new SinkError(reason, 'no')))
  await deliver(soc, await made(ledger, 'a/b/1', ['soc']))
  const [{ msg, againInSeconds }] = told() as [{ msg: string; againInSeconds?: number }]
  expect({ msg, againInSeconds }).toEqual(said)
})

test('each message that a sink took is one line: how many events, the worst of them, and how long', async () => {
  const soc = aRehearsedSink('soc')
  let nowMs = 0
  const clock = { ...systemClock, monotonic: () => nowMs }
  const { ledger, deliver, told } = await rigThatLogs(soc, clock)
  await takeIn(ledger, [routed({ uid: 'a/b/1', severity: 'critical' }, ['soc'])], {
    batchWaitMs: 1_000,
  })
  const batch = await sealed(ledger, 'soc', ['a/b/2', 'a/b/3'])
  soc.next(() => Promise.resolve(void (nowMs += 250)))
  await deliver(soc, batch)
  const where = { level: 'info', sink: 'soc', account: 'main', attempt: 1, msg: 'delivered' }
  const id = soc.received[0]!.id
  expect(told()).toMatchObject([{ ...where, id, events: 3, worst: 'critical', ms: 250 }])
})

test('an attempt is prepared until its first byte is written, then sent', async () => {
  let nowMs = 0
  const clock = { ...systemClock, monotonic: () => nowMs }
  const send: Sink['send'] = (_delivery, { mayBegin }) => {
    nowMs += 2_000
    mayBegin?.()
    nowMs += 500
    return Promise.resolve({ answer: 'taken' })
  }
  const soc = aRehearsedSink('soc', { send })
  const metrics = createMetrics({ clock })
  const keys = tests.keys()
  const ledger = await tests.ledger({ keys })
  const given = { redis: tests.redis, keys, ledger, sinks: [soc], drain: { metrics, clock } }
  const { deliver } = aDeliveryRig(given)
  await deliver(soc, await made(ledger, 'a/b/1', ['soc']))
  const { body } = await metrics.render()
  for (const [stage, seconds] of Object.entries({ prepare: 2, send: 0.5 }))
    expect(body).toContain(`tocsin_delivery_stage_seconds_sum{stage="${stage}"} ${seconds}\n`)
})

test('what failed is told by the id of its delivery, and by its event or how many it has', async () => {
  const soc = aRehearsedSink('soc')
  const { ledger, deliver, told } = await rigThatLogs(soc)
  const [single, batch] = [
    await made(ledger, 'a/b/1', ['soc']),
    await sealed(ledger, 'soc', ['a/b/2', 'a/b/3']),
  ]
  soc.next('timeout', 'unavailable')
  await deliver(soc, single)
  await deliver(soc, batch)
  const where = { sink: 'soc', account: 'main' }
  expect(told()).toMatchObject([
    { ...where, id: soc.received[0]!.id, uid: 'a/b/1' },
    { ...where, id: soc.received[1]!.id, events: 2 },
  ])
  expect(soc.received[1]!.id).toBe(`b${batch.split(':')[1]}`)
  for (const line of told()) expect(line).not.toHaveProperty('ref')
  expect(told()[0]).not.toHaveProperty('events')
  expect(told()[1]).not.toHaveProperty('uid')
})

test.each([
  ['rate_limited', 40_000, undefined, 40_000],
  ['rate_limited', undefined, 1_000, 10_000],
  ['rate_limited', undefined, undefined, 0],
] as const)(
  'a sink that answers %s, Retry-After %s, limit %s, is left alone for %s ms',
  async (reason, retryAfterMs, limitPerSecond, pauseMs) => {
    const soc = aRehearsedSink('soc', limitPerSecond === undefined ? {} : { limitPerSecond })
    const { ledger, deliver, circuit } = await rig(soc)
    const ref = await made(ledger, 'a/b/1', ['soc'])
    const asked = retryAfterMs === undefined ? {} : { retryAfterMs }
    soc.next(() => Promise.reject(new SinkError(reason, 'slower', asked)))
    const beganMs = Date.now()
    await deliver(soc, ref)
    const { waitMs } = await circuit.admit('soc', 1)
    expect(waitMs + Date.now() - beganMs).toBeGreaterThanOrEqual(pauseMs - 1)
    expect(waitMs).toBeLessThanOrEqual(pauseMs)
  },
)

test('a send after a 2xx that named an error says that it may be a repeat', async () => {
  const soc = aRehearsedSink('soc')
  const { ledger, deliver } = await rig(soc)
  const ref = await made(ledger, 'a/b/1', ['soc'])
  const deny = (status: number) => () =>
    Promise.reject(new SinkError('rejected', 'denied', { status }))
  soc.next(deny(404), deny(202), 'ok')
  for (let pass = 0; pass < 3; pass += 1) await deliver(soc, ref)
  expect(soc.received.map(({ mayBeRepeat }) => mayBeRepeat)).toEqual([false, false, true])
})

test('a possible duplicate is counted once it begins to be written, and once per send', async () => {
  const metrics = createMetrics()
  const begins = [1, 0, 2] // of each send; the second finds no connection
  const soc = aRehearsedSink('soc', {
    async send(_delivery, { mayBegin }) {
      const count = begins.shift()!
      for (let i = 0; i < count; i += 1) expect(mayBegin!()).toBe(true)
      if (begins.length > 0) throw new SinkError(count > 0 ? 'timeout' : 'unavailable', 'away')
      return { answer: 'taken' }
    },
  })
  const keys = tests.keys()
  const ledger = await tests.ledger({ keys })
  const given = { redis: tests.redis, keys, ledger: ledger, sinks: [soc], drain: { metrics } }
  const { deliver } = aDeliveryRig(given)
  const ref = await made(ledger, 'a/b/1', ['soc'])
  for (let pass = 0; pass < 3; pass += 1) await deliver(soc, ref)
  expect(begins).toEqual([])
  const { body } = await metrics.render()
  expect(body).toContain('tocsin_possible_duplicates_total{sink="soc"} 1\n')
})

test('twenty thousand events at most are read for a file, of all accounts together', async () => {
  const keys = tests.keys()
  const [main, other] = [
    await tests.ledger({ keys }),
    await tests.ledger({ keys, account: 'other' }),
  ]
  const read: string[] = []
  const redis = Object.assign(Object.create(tests.redis) as typeof tests.redis, {
    mget: async (names: string[]) => {
      read.push(...names)
      return tests.redis.mget(names)
    },
  })
  const ref = await made(main, 'a/b/1', ['soc'])
  const summary = { kind: 'digest', total: 20_300, lastAtMs: 0 }
  const { attachment } = await readSummaryParts(
    {
      sink: aRehearsedSink('soc', { canAttach: true }),
      messageId: 'm1',
      options: {
        ...bareMembers,
        findLedger: (account) => (account === 'main' ? main : { ...other, redis }),
        readListed: ({ account }) =>
          Promise.resolve(
            account === 'main'
              ? Array.from({ length: 300 }, () => ref)
              : Array.from({ length: 20_000 }, () => 'i:gone:0:soc'),
          ),
      },
    },
    { about: JSON.stringify({ summary, accounts: ['main', 'other'], shown: [] }) },
  )
  expect(read).toHaveLength(2 * 19_700) // the record and the payload of each
  const lines = Buffer.from(attachment!.content).toString().trim().split('\r\n')
  expect(lines).toHaveLength(1 + 300 + 1)
  expect(lines.at(-1)).toContain('20000 more rows left out')
})
