/**
 * A burst, then a quiet night, then one critical event: whoever is not to blame for what failed in
 * the burst is told of it within half a minute. Time is simulated.
 */
import { expect, test } from 'vitest'
import { type Delivery, SinkError, type SinkReason } from '../../../src/sinks/sink.ts'
import { fallbackAfterMs } from '../../support/failover.ts'
import { expectConservation, redisForTests } from '../../support/ledger.ts'
import {
  aNight,
  type Night,
  type NightOptions,
  type NightSink,
  type Sent,
} from '../../support/quiet-night.ts'
import type { SimulatedTime } from '../../support/simulated-time.ts'

const tests = redisForTests()

const healthy = 'critical/at/night'
const batch = { max: 50, waitMs: 1_000, maxBytes: 1_000_000 }

/** The sick one first. */
const both = ['mail:full', 'mail:well']

interface Failing {
  reason: SinkReason
  status?: number
  scope?: 'destination'
  /** How long it takes to fail, ms. */
  afterMs?: number
}

/** Fails what `isSick` says. */
function failing(
  isSick: (delivery: Delivery) => boolean,
  { reason, afterMs = 0, ...given }: Failing,
): NightSink['answer'] {
  return async (delivery: Delivery, { clock }: SimulatedTime) => {
    if (!isSick(delivery)) return
    await clock.sleep(afterMs)
    throw new SinkError(reason, `rehearsed: ${reason}`, given)
  }
}

const toFull = ({ destination }: Delivery): boolean => destination.id === 'mail:full'
const isPoison = ({ members }: Delivery): boolean =>
  members.some(({ event }) => event.uid.startsWith('poison'))
const isOfSick = ({ members }: Delivery): boolean =>
  members.some(({ account }) => account === 'sick')
const always = (): boolean => true

function mail(answer: NightSink['answer'], given: Partial<NightSink> = {}): NightSink {
  const destinations = both.map((id) => ({ id, label: id }))
  return { name: 'mail', type: 'email', destinations, answer, ...given }
}

function hook(answer: NightSink['answer'], given: Partial<NightSink> = {}): NightSink {
  return { name: 'hook', answer, ...given }
}

interface Row extends NightOptions {
  blame: string
  burst: (night: Night) => Promise<void>
  /** Who is told of the event of the night; left out: the sink. */
  to?: string[]
  /** Its account. */
  account?: string
  well?: string
}

function numbered(name: string, count: number): string[] {
  return Array.from({ length: count }, (_, i) => `${name}/of/${i}`)
}

const burstToBoth = (count: number) => (night: Night) => night.bring(numbered('burst', count), both)

function recipient(blame: string, failed: Failing, given: Partial<NightSink> = {}): Row {
  const sinks = [mail(failing(toFull, failed), given)]
  return { blame, sinks, burst: burstToBoth(40), to: both, well: 'mail:well' }
}

function item(blame: string, failed: Failing, count = 1): Row {
  return {
    blame,
    sinks: [hook(failing(isPoison, failed))],
    burst: (night) => night.bring(numbered('poison', count), ['hook']),
  }
}

const rows: Row[] = [
  recipient('a recipient that is deferred', {
    reason: 'recipient_deferred',
    status: 452,
    scope: 'destination',
  }),
  recipient('a recipient that fails for now', {
    reason: 'unavailable',
    status: 451,
    scope: 'destination',
  }),
  recipient('a recipient that is refused', { reason: 'recipient_refused', status: 550 }),
  recipient('a recipient to whom no relay is granted', {
    reason: 'unauthorized',
    status: 554,
    scope: 'destination',
  }),
  {
    ...recipient(
      'a recipient with a thousand waiting, behind a limit',
      { reason: 'recipient_deferred', scope: 'destination' },
      { limitPerSecond: 2 },
    ),
    burst: (night) =>
      night.bring(numbered('burst', 1_000), ['mail:full'], { severity: 'critical' }),
  },
  item('one event, answered 500', { reason: 'unavailable', status: 500 }),
  item('one event, answered 404', { reason: 'rejected', status: 404 }),
  item('one event, answered 403', { reason: 'unauthorized', status: 403 }),
  item('one event, never answered', { reason: 'timeout', afterMs: 10_000 }),
  item('one event on which the receiver dies', { reason: 'connection_lost' }),
  {
    ...item(
      'one group of events for people, answered 500',
      { reason: 'unavailable', status: 500 },
      9,
    ),
    sinks: [hook(failing(isPoison, { reason: 'unavailable', status: 500 }), { type: 'slack' })],
  },
  item('forty events, answered 500', { reason: 'unavailable', status: 500 }, 40),
  {
    blame: 'one event of a batch',
    sinks: [
      hook(failing(isPoison, { reason: 'unavailable', status: 500 }), { batch, measure: () => 1 }),
    ],
    burst: (night) => night.bring(['poison/of/0', ...numbered('well', 49)], ['hook']),
  },
  {
    blame: 'one account',
    accounts: ['main', 'sick'],
    sinks: [hook(failing(isOfSick, { reason: 'unavailable', status: 500 }))],
    burst: (night) =>
      night.bring(numbered('burst', 40), ['hook'], { account: 'sick', severity: 'critical' }),
  },
  {
    blame: 'one account, whose events go in batches',
    accounts: ['main', 'sick'],
    sinks: [
      hook(failing(isOfSick, { reason: 'unauthorized', status: 403 }), { batch, measure: () => 1 }),
    ],
    burst: (night) => night.bring(numbered('burst', 40), ['hook'], { account: 'sick' }),
  },
  {
    blame: 'another sink',
    sinks: [hook(undefined), { name: 'down', answer: failing(always, { reason: 'unavailable' }) }],
    burst: (night) => night.bring(numbered('burst', 40), ['down', 'hook']),
    to: ['down', 'hook'],
    well: 'hook',
  },
  {
    blame: 'a dead fallback',
    sinks: [
      mail(failing(toFull, { reason: 'recipient_refused' })),
      { name: 'down', answer: failing(always, { reason: 'unavailable' }) },
    ],
    fallbacks: { mail: 'down' },
    burst: burstToBoth(40),
    to: both,
    well: 'mail:well',
  },
]

const nightMs = 40 * 60_000

test.each(rows)('$blame: the others are told within half a minute', async (row) => {
  const night = await aNight(tests, row)
  await row.burst(night)
  await night.time.pass(nightMs)
  const to = row.to ?? ['hook']
  const sinceMs = night.time.clock.monotonic()
  const { account = 'main', well = 'hook' } = row
  await night.bring([healthy], to, { severity: 'critical', account })
  await night.time.pass(30_000)
  const heard = night.told.filter(({ uid, destination }) => uid === healthy && destination === well)
  expect(heard).toHaveLength(1)
  expect(heard[0]!.atMs - sinceMs).toBeLessThanOrEqual(30_000)
})

/** Distinct ones of a list, in its order. */
function distinct(sent: readonly Sent[], { sick }: { sick: boolean }): Set<string> {
  return new Set(sent.map(({ uid }) => uid).filter((uid) => uid.startsWith('poison') === sick))
}

const inBatches = { batch, measure: () => 1 }

test.each<[string, Failing, number]>([
  ['500', { reason: 'unavailable', status: 500 }, 90_000],
  ['404', { reason: 'rejected', status: 404 }, 90_000],
  ['a cut connection', { reason: 'connection_lost' }, 90_000],
  ['nothing within ten seconds', { reason: 'timeout', afterMs: 10_000 }, 250_000],
  ['403', { reason: 'unauthorized', status: 403 }, 420_000],
])(
  'a batch of fifty with one event that is answered by %s: the others are told soon, wherever it stands',
  async (_name, failed, withinMs) => {
    for (const at of [0, 24, 49]) {
      const sinks = [hook(failing(isPoison, failed), inBatches)]
      const night = await aNight(tests, { sinks })
      const uids = numbered('well', 49)
      await night.bring(uids.toSpliced(at, 0, 'poison/of/0'), ['hook'])
      await night.time.pass(withinMs)
      expect(distinct(night.told, { sick: false }).size).toBe(49)
      expect(night.told).toHaveLength(49) // each once
      expect(distinct(night.tried, { sick: true }).size).toBe(1)
      await expectConservation(night.ledgers[0]!)
    }
  },
)

test('batches stay whole while the receiver refuses everything, and are told when it is back', async () => {
  let isBack = false
  const answer = failing(() => !isBack, { reason: 'unavailable', status: 503 })
  const night = await aNight(tests, { sinks: [hook(answer, inBatches)] })
  const sent = (): number => new Set(night.told.map(({ atMs }) => atMs)).size
  await night.bring(numbered('one', 400), ['hook'])
  await night.time.pass(3_600_000)
  isBack = true
  await night.time.pass(900_000)
  expect(night.told).toHaveLength(400)
  expect(sent()).toBeLessThanOrEqual(24) // of eight
})

test('a recipient that takes nothing is tried now and then, and costs the others no place in the pace', async () => {
  let isFull = true
  const refuse = { reason: 'recipient_deferred', scope: 'destination' } as const
  const answer = failing((delivery) => isFull && toFull(delivery), refuse)
  const night = await aNight(tests, {
    sinks: [mail(answer, { limitPerSecond: 1, type: 'webhook' })],
  })
  await night.bring(numbered('burst', 200), ['mail:full'], { severity: 'critical' })
  await night.time.pass(60_000)
  const sinceMs = night.time.clock.monotonic()
  await night.bring(numbered('later', 50), ['mail:well'])
  await night.time.pass(60_000)
  const well = night.told.filter(({ destination }) => destination === 'mail:well')
  expect(well).toHaveLength(50)
  expect(well.at(-1)!.atMs - sinceMs).toBeLessThanOrEqual(55_000)
  const inVain = night.tried.filter(({ destination }) => destination === 'mail:full')
  expect(inVain.length).toBeLessThanOrEqual(12)
  const [last, ...before] = inVain.map(({ uid }) => uid).toReversed()
  expect(before[0]).not.toBe(last)
  isFull = false
  await night.time.pass(900_000)
  expect(night.told).toHaveLength(250)
})

test('what is for a recipient to whom no relay is granted goes to the fallback, and the others get theirs', async () => {
  const denied = { reason: 'misconfigured', status: 554, scope: 'destination' } as const
  const sinks = [mail(failing(toFull, denied), { type: 'webhook' }), hook(undefined)]
  const night = await aNight(tests, { sinks, fallbacks: { mail: 'hook' } })
  await burstToBoth(40)(night)
  await night.bring(['a/b/1'], ['mail:full'])
  // while a circuit is half open its items stay: at the latest they go after the next opening
  await night.time.pass(2 * fallbackAfterMs + 60_000)
  const toFallback = night.told.filter(({ sink }) => sink === 'hook').map(({ uid }) => uid)
  expect(new Set(toFallback)).toEqual(new Set([...numbered('burst', 40), 'a/b/1']))
  expect(toFallback).toHaveLength(41)
  const others = night.told.filter(({ sink }) => sink === 'mail')
  expect(new Set(others.map(({ destination }) => destination))).toEqual(new Set(['mail:well']))
  expect(others).toHaveLength(40)
  await expectConservation(night.ledgers[0]!)
})

test('a sink that grants no relay to any of its recipients hands over to its fallback', async () => {
  const denied = { reason: 'unauthorized', status: 554, scope: 'destination' } as const
  const sinks = [mail(failing(always, denied), { type: 'webhook' }), hook(undefined)]
  const night = await aNight(tests, { sinks, fallbacks: { mail: 'hook' } })
  await night.bring(['a/b/1'], both)
  // while a circuit is half open its items stay: at the latest they go after the next opening
  await night.time.pass(2 * fallbackAfterMs + 60_000)
  expect(night.told).toMatchObject([{ sink: 'hook', uid: 'a/b/1' }])
  await expectConservation(night.ledgers[0]!)
})
