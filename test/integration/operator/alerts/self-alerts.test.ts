import { expect, test } from 'vitest'
import type { AccountLedger } from '../../../../src/store/account-ledger.ts'
import type { Problem } from '../../../../src/operator/alerts/troubles.ts'
import type { SelfAlerts } from '../../../../src/operator/alerts/self-alerts.ts'
import type { Keys } from '../../../../src/redis/keys.ts'
import { expectConservation, redisForTests } from '../../../support/ledger.ts'
import { aNoticesRig, aProblem, type NoticesRig } from '../../../support/self-alerts.ts'

const tests = redisForTests()
const minute = 60_000

const refused = (account: string): Problem => aProblem('account-refused', account)
const down = (sink: string): Problem => aProblem('circuit-open', sink)

async function aRig(): Promise<NoticesRig & { ledger: AccountLedger; keys: Keys }> {
  const keys = tests.keys()
  const ledger = await tests.ledger({ keys })
  return { ...aNoticesRig({ ledger: ledger, keys }), ledger: ledger, keys }
}

/** What was told, without the time in the uid. */
async function toldOf(rig: NoticesRig): Promise<string[]> {
  const records = await rig.told()
  return records.map(({ uid }) => uid.replace('notice/tocsin/', '').replace(/-\d+-/, ' '))
}

test('trouble is told once when it has lasted, once when it is over, and both are accounted for', async () => {
  const rig = await aRig()
  const watch = rig.replica()
  const look = async (minutes: number): Promise<void> => {
    rig.clock.atMs += minutes * minute
    await watch.watchOnce()
  }
  rig.snapshot.problems = [down('siem')]
  await look(0)
  await look(4)
  expect(await toldOf(rig)).toEqual([])
  await look(1)
  await look(1)
  expect(await toldOf(rig)).toEqual(['circuit-open-siem begin'])
  rig.snapshot.problems = []
  await look(1)
  await look(9)
  expect(await toldOf(rig)).toEqual(['circuit-open-siem begin'])
  await look(1)
  await look(60)
  expect(await toldOf(rig)).toEqual(['circuit-open-siem begin', 'circuit-open-siem end'])
  expect(rig.queued).toEqual(['soc', 'soc'])
  await expectConservation(rig.ledger)
  expect(await tests.redis.exists(rig.keys.shared('notices'))).toBe(0)
})

test('an outage that meets many is told once; what is left of it when most is over is told each', async () => {
  const rig = await aRig()
  const watch = rig.replica()
  const look = async (minutes: number): Promise<void> => {
    rig.clock.atMs += minutes * minute
    await watch.watchOnce()
  }
  const all = Array.from({ length: 30 }, (_none, n) => down(`lake${n}`))
  rig.snapshot.problems = all
  await look(0)
  await look(6)
  let steps = 0
  await watch.watchOnce(() => void (steps += 1))
  expect(steps).toBe(31) // each is a sign of life: there may be thousands
  expect(await toldOf(rig)).toEqual(['many-circuit-open begin'])
  rig.snapshot.problems = all.slice(0, 2)
  await look(1)
  await look(10)
  await look(1)
  expect(await toldOf(rig)).toEqual([
    'circuit-open-lake0 begin',
    'circuit-open-lake1 begin',
    'many-circuit-open begin',
    'many-circuit-open end',
  ])
})

test('while more than ten stand, those that come are told by one alert', async () => {
  const rig = await aRig()
  const watch = rig.replica()
  const refuse = async (count: number, afterMinutes: number): Promise<void> => {
    rig.clock.atMs += afterMinutes * minute
    rig.snapshot.problems = Array.from({ length: count }, (_none, n) => refused(`a${n}`))
    await watch.watchOnce()
  }
  const many = async (): Promise<string[]> =>
    (await toldOf(rig)).filter((told) => told.startsWith('many'))
  await refuse(10, 0)
  for (const minutes of [4, 20, 20]) await refuse(400, minutes)
  expect([(await rig.told()).length, await many()]).toEqual([11, ['many-account-refused begin']])
  for (const minutes of [1, 11]) await refuse(10, minutes)
  await refuse(13, 60)
  const edges = ['begin', 'begin', 'end'].map((edge) => `many-account-refused ${edge}`)
  expect((await many()).toSorted()).toEqual(edges)
})

test('the notice goes straight to its sink, and the ledger can say why', async () => {
  const rig = await aRig()
  rig.snapshot.problems = [refused('main')]
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
  rig.snapshot.problems = ['a', 'b', 'c'].map(refused)
  await lookAll()
  await lookAll()
  rig.snapshot.problems = []
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

test('a replica that stood still between two conditions tells nothing of its old picture', async () => {
  const rig = await aRig()
  const watch = rig.replica()
  const old = { ...rig.snapshot, atMs: rig.clock.atMs, problems: ['first', 'main'].map(refused) }
  const frozen = rig.replica({
    readSnapshot: () => Promise.resolve(old),
    publish: async (event, way) => {
      await rig.publish(event, way)
      await comeAndGo(rig, watch)
    },
  })
  await frozen.watchOnce()
  const told = (await toldOf(rig)).filter((uid) => uid.includes('-main'))
  expect(told).toEqual(['account-refused-main begin', 'account-refused-main end'])
})

/** The account `main` is refused, works again, and both are told. */
async function comeAndGo(rig: NoticesRig, watch: SelfAlerts): Promise<void> {
  rig.clock.atMs += minute
  rig.snapshot.problems = [refused('main')]
  await watch.watchOnce()
  rig.snapshot.problems = []
  await watch.watchOnce()
  rig.clock.atMs += 10 * minute
  await watch.watchOnce()
}

test.each([
  ['before it told', false],
  ['after it told, before it noted that', true],
])('a replica that dies %s loses no notice and repeats none', async (_when, tellsFirst) => {
  const rig = await aRig()
  const dying = rig.replica({
    async publish(event, way) {
      if (tellsFirst) await rig.publish(event, way)
      throw new Error('killed')
    },
  })
  rig.snapshot.problems = [refused('main')]
  await expect(dying.watchOnce()).rejects.toThrow('killed')
  rig.snapshot.problems = []
  await rig.replica().watchOnce()
  expect(await toldOf(rig)).toEqual(['account-refused-main begin'])
  rig.clock.atMs += 10 * minute
  await expect(dying.watchOnce()).rejects.toThrow('killed')
  await rig.replica().watchOnce()
  expect(await toldOf(rig)).toEqual(['account-refused-main begin', 'account-refused-main end'])
  expect(rig.queued).toHaveLength(2)
})

test('a notice that was decided for a sink which is no more is told through another', async () => {
  const rig = await aRig()
  const dying = rig.replica({ publish: () => Promise.reject(new Error('killed')) })
  rig.snapshot.problems = [refused('main')]
  await expect(dying.watchOnce()).rejects.toThrow('killed')
  await rig.replica({ ways: ['siem'] }).watchOnce()
  expect(await placesOf(rig)).toEqual(['account-refused-main begin: siem queued'])
})

/** Where each notice is or went, and in which state. */
async function placesOf(rig: NoticesRig): Promise<string[]> {
  const [names, records] = [await toldOf(rig), await rig.told()]
  return records.flatMap(({ items }, i) =>
    items.map(({ destination, state }) => `${names[i]}: ${destination} ${state}`),
  )
}

test.each([
  ['its circuit is open', 'circuit-open', ['soc', 'siem']],
  ['it is gone', 'sink-disabled', ['soc', 'siem']],
  ['it has dead letters', 'dead-letters', ['siem']],
] as const)(
  'that of the sink that takes notices %s is told once through another, and so is the end',
  async (_trouble, kind, deafSinks) => {
    const rig = await aRig()
    const watch = rig.replica()
    Object.assign(rig.snapshot, { problems: [aProblem(kind, 'soc'), down('siem')], deafSinks })
    for (let i = 0; i < 5; i += 1) {
      if (i === 3) Object.assign(rig.snapshot, { problems: [], deafSinks: [] })
      await watch.watchOnce()
      rig.clock.atMs += 10 * minute
    }
    const ofItself = (await placesOf(rig)).filter((place) => place.startsWith(kind))
    expect(ofItself.filter((place) => place.includes('-soc'))).toEqual(
      ['begin', 'end'].flatMap((edge) =>
        ['ann', 'bob'].map((who) => `${kind}-soc ${edge}: oncall:${who} queued`),
      ),
    )
    await expectConservation(rig.ledger)
  },
)

test('only a replica of the active configuration watches', async () => {
  const rig = await aRig()
  rig.snapshot.problems = [refused('main')]
  await rig.replica({ isActive: () => false }).watchOnce()
  expect(await toldOf(rig)).toEqual([])
  expect(await tests.redis.exists(rig.keys.shared('notices'))).toBe(0)
})

test('a replica that was slow does not undo what others noted meanwhile', async () => {
  const rig = await aRig()
  const quick = rig.replica()
  rig.snapshot.problems = [refused('main')]
  await quick.watchOnce()
  rig.snapshot.problems = []
  await quick.watchOnce()
  rig.clock.atMs += 10 * minute
  const slow = rig.replica({
    async publish(event, way) {
      await quick.watchOnce()
      rig.snapshot.problems = [refused('main')]
      rig.clock.atMs += minute
      await quick.watchOnce()
      await rig.publish(event, way)
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
