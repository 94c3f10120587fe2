import { expect, test } from 'vitest'
import {
  createCanary,
  noteCanary,
  readCanary,
  type Canary,
} from '../../../../src/operator/alerts/canary.ts'
import { aMember } from '../../../support/deliveries.ts'
import { redisForTests } from '../../../support/ledger.ts'
import { aNoticesRig, type NoticesRig } from '../../../support/self-alerts.ts'
import { aThreatEvent } from '../../../support/events.ts'

const tests = redisForTests()
const hour = 3_600_000

async function aRig(): Promise<NoticesRig & { canary: (isActive?: () => boolean) => Canary }> {
  const keys = tests.keys()
  const rig = aNoticesRig({ ledger: await tests.ledger({ keys }), keys })
  const config = { everyMs: hour, sinks: ['soc', 'oncall'] }
  return {
    ...rig,
    canary: (isActive = () => true) =>
      createCanary({ config, publish: rig.publish, isActive, clock: rig.clock }),
  }
}

test('each full hour one test event goes to every destination, however many replicas send it', async () => {
  const rig = await aRig()
  const replicas = [rig.canary(), rig.canary(), rig.canary()]
  const firstMs = rig.clock.atMs
  for (const afterMs of [0, 15_000, hour - 1, hour, 2 * hour - 1]) {
    rig.clock.atMs = firstMs + afterMs
    await Promise.all(replicas.map((one) => one.canaryOnce()))
  }
  const told = await rig.told()
  expect(told.map(({ uid }) => uid)).toEqual([
    `canary/tocsin/${firstMs}`,
    `canary/tocsin/${firstMs + hour}`,
  ])
  expect(told[0]?.items.map(({ destination }) => destination)).toEqual([
    'soc',
    'oncall:ann',
    'oncall:bob',
  ])
  expect(told[0]?.sightings[0]?.decisions).toEqual([
    { route: 'canary', path: ['canary'], why: ['every 1 h'] },
  ])
  expect(rig.queued).toHaveLength(6)
})

test('a test event that could not be told is told at the next look', async () => {
  const rig = await aRig()
  let isDown = true
  const canary = createCanary({
    config: { everyMs: hour, sinks: ['soc'] },
    publish: (event, way) => (isDown ? Promise.reject(new Error('away')) : rig.publish(event, way)),
    isActive: () => true,
    clock: rig.clock,
  })
  await expect(canary.canaryOnce()).rejects.toThrow('away')
  isDown = false
  await canary.canaryOnce()
  expect(await rig.told()).toHaveLength(1)
})

test('only a replica of the active configuration sends it', async () => {
  const rig = await aRig()
  await rig.canary(() => false).canaryOnce()
  expect(await rig.told()).toEqual([])
})

test('when a sink last took one is known to all, and no longer said of a sink that gets none any more', async () => {
  const place = { redis: tests.redis, keys: tests.keys() }
  expect(await readCanary(place, ['soc', 'siem'])).toEqual({})
  await noteCanary(place, 'soc', { isTest: true, members: [], atMs: 7.5 })
  await noteCanary(place, 'siem', { isTest: true, members: [], atMs: 8 })
  expect(await readCanary(place, ['soc', 'siem'])).toEqual({ soc: 7, siem: 8 })
  expect(await readCanary(place, ['siem'])).toEqual({ siem: 8 })
})

test('one that a batch holds beside other events has arrived, and not one that a digest lists', async () => {
  const place = { redis: tests.redis, keys: tests.keys() }
  const canary = aMember({ feed: '_tocsin', event: aThreatEvent({ type: 'canary' }) })
  await noteCanary(place, 'siem', { members: [aMember(), canary], atMs: 7 })
  await noteCanary(place, 'siem', { members: [aMember()], atMs: 8 })
  await noteCanary(place, 'siem', { members: [canary], summary: { kind: 'digest' }, atMs: 9 })
  expect(await readCanary(place, ['siem'])).toEqual({ siem: 7 })
})
