/**
 * A burst, then a quiet night, then one critical event: whoever is not to blame for what failed in
 * the burst is told of it within half a minute. Time is simulated.
 */
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
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

// tries would come a fifth sooner or later, and so before or after what others were told
beforeEach(() => void vi.spyOn(Math, 'random').mockReturnValue(0.5))
afterEach(() => vi.mocked(Math.random).mockRestore())

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

/** What a mail server may take, and how many at once. */
const asMail = { concurrency: 4, sendTimeoutMs: 900_000 }

/** No groups are made for machines. */
const oneByOne = { type: 'webhook' }

const rows: Row[] = [
  recipient('a recipient that is deferred', {
    reason: 'recipient_deferred',
    status: 452,
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
  recipient(
    'a recipient whose mails are never answered at their end',
    { reason: 'timeout', afterMs: 600_000 },
    { ...asMail, ...oneByOne },
  ),
  recipient(
    'a recipient at whom the server falls silent',
    { reason: 'unavailable', scope: 'destination', afterMs: 30_000 },
    { ...asMail, ...oneByOne },
  ),
  {
    ...item('one mail that is never answered at its end', { reason: 'timeout', afterMs: 600_000 }),
    sinks: [hook(failing(isPoison, { reason: 'timeout', afterMs: 600_000 }), asMail)],
  },
  item('one event, answered 500', { reason: 'unavailable', status: 500 }),
  item('one event, never answered', { reason: 'timeout', afterMs: 10_000 }),
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

const nightMs = 20 * 60_000

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
  ['nothing within ten seconds', { reason: 'timeout', afterMs: 10_000 }, 250_000],
  ['403', { reason: 'unauthorized', status: 403 }, 420_000],
])(
  'a batch of fifty with one event that is answered by %s: the others are told soon',
  async (_name, failed, withinMs) => {
    const sinks = [hook(failing(isPoison, failed), inBatches)]
    const night = await aNight(tests, { sinks })
    await night.bring(numbered('well', 49).toSpliced(24, 0, 'poison/of/0'), ['hook'])
    await night.time.pass(withinMs)
    expect(distinct(night.told, { sick: false }).size).toBe(49)
    expect(night.told).toHaveLength(49) // each once
    expect(distinct(night.tried, { sick: true }).size).toBe(1)
    await expectConservation(night.ledgers[0]!)
  },
)

test.each<[string, Failing, number, string[]]>([
  ['500, alone', { reason: 'unavailable', status: 500 }, 6, []],
  ['500, while others pass', { reason: 'unavailable', status: 500 }, 19, ['other']],
  ['400', { reason: 'invalid', status: 400 }, 49, []],
])(
  'a group for people with one event that is answered by %s: the others are told soon',
  async (_name, failed, count, others) => {
    const sinks = [hook(failing(isPoison, failed), { type: 'slack' })]
    const night = await aNight(tests, { sinks })
    await night.bring(['poison/of/0', ...numbered('well', count)], ['hook'])
    await night.time.pass(30_000)
    await night.bring(others, ['hook'], { severity: 'critical' })
    await night.time.pass(120_000)
    expect(night.told).toHaveLength(count + others.length)
    expect(distinct(night.told, { sick: false }).size).toBe(count + others.length)
    await expectConservation(night.ledgers[0]!)
  },
)

test('a group for people stays whole while the receiver refuses everything', async () => {
  let isBack = false
  const sink = hook(
    failing(() => !isBack, { reason: 'unavailable', status: 503 }),
    { type: 'slack' },
  )
  const night = await aNight(tests, { sinks: [sink] })
  await night.bring(numbered('one', 20), ['hook'])
  await night.time.pass(3_600_000)
  isBack = true
  await night.time.pass(2 * 3_600_000)
  expect(new Set(night.told.map(({ atMs }) => atMs)).size).toBe(1)
})

test('batches stay whole in an outage, and are told when it is over', async () => {
  let isBack = false
  let sent = 0
  const refuse = failing(always, { reason: 'unavailable', status: 503 })!
  const answer: NightSink['answer'] = (...given) => (isBack ? (sent += 1) : refuse(...given))
  const night = await aNight(tests, { sinks: [hook(answer, inBatches)] })
  await night.bring(numbered('one', 8 * 50), ['hook'])
  await night.time.pass(3_600_000)
  isBack = true
  await night.time.pass(900_000)
  expect(night.told).toHaveLength(8 * 50)
  expect(sent).toBeLessThanOrEqual(8 + 6)
})

test('eight batches of which each has a bad event in every ten, alone at night: the others are told', async () => {
  const sinks = [hook(failing(isPoison, { reason: 'unavailable', status: 500 }), inBatches)]
  const night = await aNight(tests, { sinks })
  const uids = Array.from({ length: 400 }, (_, i) => `${i % 10 === 0 ? 'poison' : 'well'}/of/${i}`)
  await night.bring(uids, ['hook'])
  await night.time.pass(2 * 3_600_000)
  expect(distinct(night.told, { sick: false }).size).toBe(360)
  expect(distinct(night.tried, { sick: true }).size).toBe(40)
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

test('a server that falls silent at every recipient opens the circuit of the sink', async () => {
  const silent = { reason: 'unavailable', scope: 'destination', afterMs: 30_000 } as const
  const destinations = numbered('mail:r', 20).map((id) => ({ id, label: id }))
  const night = await aNight(tests, {
    sinks: [mail(failing(always, silent), { ...asMail, ...oneByOne, destinations })],
  })
  const ids = destinations.map(({ id }) => id)
  await night.bring(numbered('burst', 3), ids, { severity: 'critical' })
  await night.time.pass(75_000)
  const { state } = await night.circuit.read('mail', night.time.clock.now())
  expect(state).toBe('open')
})
