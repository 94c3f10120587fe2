import { expect, test } from 'vitest'
import type { Book } from '../../../src/ledger/book.ts'
import type { Keys } from '../../../src/redis/keys.ts'
import { expectConservation, redisForTests } from '../../support/ledger.ts'
import { aNoticesRig, type NoticesRig } from '../../support/notices.ts'

const tests = redisForTests()
const minute = 60_000

async function aRig(): Promise<NoticesRig & { book: Book; keys: Keys }> {
  const keys = tests.keys()
  const book = await tests.book({ keys })
  return { ...aNoticesRig({ book, keys }), book, keys }
}

/** What was told, without the time in the uid. */
async function toldOf(rig: NoticesRig): Promise<string[]> {
  const records = await rig.told()
  return records.map(({ uid }) => uid.replace('notice/tocsin/', '').replace(/-\d+-/, ' '))
}

const down = { name: 'siem', circuit: 'open', deadLetters: 0, paused: undefined } as const

test('trouble is told once when it has lasted, once when it is over, and both are accounted for', async () => {
  const rig = await aRig()
  const watch = rig.replica()
  const look = async (minutes: number): Promise<void> => {
    rig.clock.atMs += minutes * minute
    await watch.watchOnce()
  }
  rig.snapshot.sinks = [down]
  await look(0)
  await look(4)
  expect(await toldOf(rig)).toEqual([])
  await look(1)
  await look(1)
  expect(await toldOf(rig)).toEqual(['circuit-open-siem begin'])
  rig.snapshot.sinks = []
  await look(1)
  await look(9)
  expect(await toldOf(rig)).toEqual(['circuit-open-siem begin'])
  await look(1)
  await look(60)
  expect(await toldOf(rig)).toEqual(['circuit-open-siem begin', 'circuit-open-siem end'])
  expect(rig.queued).toEqual(['soc', 'soc'])
  await expectConservation(rig.book)
  expect(await tests.redis.exists(rig.keys.shared('notices'))).toBe(0)
})

test('the notice goes straight to its sink, and the ledger can say why', async () => {
  const rig = await aRig()
  rig.snapshot.accounts = [{ name: 'main', isRefused: true }]
  await rig.replica().watchOnce()
  const [record] = await rig.told()
  expect(record).toMatchObject({
    type: 'notice',
    severity: 'critical',
    sightings: [
      {
        feed: '_tocsin',
        decisions: [{ route: 'notices', path: ['notices'], why: ['account-refused-main'] }],
      },
    ],
    items: [{ sink: 'soc', destination: 'soc', routes: ['notices'], state: 'queued' }],
  })
})

test('any number of replicas tell it once, also when all look at the same time', async () => {
  const rig = await aRig()
  const replicas = Array.from({ length: 5 }, () => rig.replica())
  const lookAll = (): Promise<unknown> => Promise.all(replicas.map((one) => one.watchOnce()))
  rig.snapshot.accounts = ['a', 'b', 'c'].map((name) => ({ name, isRefused: true }))
  await lookAll()
  await lookAll()
  rig.snapshot.accounts = []
  await lookAll()
  rig.clock.atMs += 10 * minute
  await lookAll()
  await lookAll()
  const expected = ['a', 'b', 'c'].flatMap((name) => [
    `account-refused-${name} begin`,
    `account-refused-${name} end`,
  ])
  expect(await toldOf(rig)).toEqual(expected)
  expect(rig.queued).toHaveLength(6)
})

test.each([
  ['before it told', false],
  ['after it told, before it noted that', true],
])('a replica that dies %s loses no notice and repeats none', async (_when, tellsFirst) => {
  const rig = await aRig()
  const dying = rig.replica({
    async tell(event, way) {
      if (tellsFirst) await rig.tell(event, way)
      throw new Error('killed')
    },
  })
  rig.snapshot.accounts = [{ name: 'main', isRefused: true }]
  await expect(dying.watchOnce()).rejects.toThrow('killed')
  rig.snapshot.accounts = []
  await rig.replica().watchOnce()
  expect(await toldOf(rig)).toEqual(['account-refused-main begin'])
  rig.clock.atMs += 10 * minute
  await expect(dying.watchOnce()).rejects.toThrow('killed')
  await rig.replica().watchOnce()
  expect(await toldOf(rig)).toEqual(['account-refused-main begin', 'account-refused-main end'])
  expect(rig.queued).toHaveLength(2)
})

test('what comes and goes within ten minutes is one trouble', async () => {
  const rig = await aRig()
  const watch = rig.replica()
  for (let i = 0; i < 20; i += 1) {
    rig.snapshot.accounts = i % 2 === 0 ? [{ name: 'main', isRefused: true }] : []
    await watch.watchOnce()
    rig.clock.atMs += 9 * minute
  }
  expect(await toldOf(rig)).toEqual(['account-refused-main begin'])
})

test('the circuit of the very sink that takes notices is not told through it', async () => {
  const rig = await aRig()
  const watch = rig.replica()
  rig.snapshot.sinks = [{ ...down, name: 'soc' }, down]
  for (let i = 0; i < 4; i += 1) {
    if (i === 2) rig.snapshot.sinks = []
    await watch.watchOnce()
    rig.clock.atMs += 10 * minute
  }
  expect(await toldOf(rig)).toEqual(['circuit-open-siem begin', 'circuit-open-siem end'])
})

test('the feeds of a refused account are not told one by one', async () => {
  const rig = await aRig()
  const watch = rig.replica()
  const stalled = {
    name: 'brand',
    account: 'main',
    lagObjectiveMs: 5 * minute,
    isPaused: false,
    lastSuccessMs: rig.clock.atMs,
    lastCaughtUpMs: rig.clock.atMs,
  }
  rig.snapshot.feeds = [stalled]
  rig.snapshot.accounts = [{ name: 'main', isRefused: true }]
  for (let i = 0; i < 4; i += 1) {
    rig.clock.atMs += 10 * minute
    await watch.watchOnce()
  }
  expect(await toldOf(rig)).toEqual(['account-refused-main begin'])
  rig.snapshot.accounts = []
  await watch.watchOnce()
  expect(await toldOf(rig)).toEqual(['account-refused-main begin'])
  for (let i = 0; i < 2; i += 1) {
    rig.clock.atMs += 10 * minute
    await watch.watchOnce()
  }
  expect(await toldOf(rig)).toEqual([
    'account-refused-main begin',
    'account-refused-main end',
    'feed-stalled-brand begin',
  ])
})

test('only a replica of the active configuration watches', async () => {
  const rig = await aRig()
  rig.snapshot.accounts = [{ name: 'main', isRefused: true }]
  await rig.replica({ isActive: () => false }).watchOnce()
  expect(await toldOf(rig)).toEqual([])
  expect(await tests.redis.exists(rig.keys.shared('notices'))).toBe(0)
})

test('a replica that was slow does not undo what others noted meanwhile', async () => {
  const rig = await aRig()
  const quick = rig.replica()
  const refused = [{ name: 'main', isRefused: true }]
  rig.snapshot.accounts = refused
  await quick.watchOnce()
  rig.snapshot.accounts = []
  await quick.watchOnce()
  rig.clock.atMs += 10 * minute
  const slow = rig.replica({
    async tell(event, way) {
      await quick.watchOnce()
      rig.snapshot.accounts = refused
      rig.clock.atMs += minute
      await quick.watchOnce()
      await rig.tell(event, way)
    },
  })
  await slow.watchOnce()
  rig.clock.atMs += minute
  await quick.watchOnce()
  expect(await toldOf(rig)).toEqual([
    'account-refused-main begin',
    'account-refused-main end',
    'account-refused-main begin',
  ])
  expect(await tests.redis.hlen(rig.keys.shared('notices'))).toBe(1)
})
