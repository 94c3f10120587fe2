/** Audits by schedule: who audits, when, and what is kept of it. */
import { expect, onTestFinished, test } from 'vitest'
import type { AuditOptions } from '../../../src/audit/audit-feed.ts'
import {
  type AuditSchedule,
  createAuditSchedule,
  readAuditNotes,
} from '../../../src/audit/audit-schedule.ts'
import type { PolledFeed } from '../../../src/feed-types/feed-type.ts'
import { type Clock, systemClock } from '../../../src/lib/clock.ts'
import { createKeys, type Keys } from '../../../src/redis/keys.ts'
import { type FeedRig, startFeedRig } from '../../support/feed-rig.ts'
import { aFeed } from '../../support/feeds.ts'
import { redisForTests, silent } from '../../support/ledger.ts'

const tests = redisForTests()
const hourMs = 3_600_000
const feed = aFeed({ rescan: undefined, audit: { everyMs: hourMs, backMs: 24 * hourMs } })
let prefixes = 0

interface Scene {
  rig: FeedRig
  keys: Keys
  clock: { aheadMs: number }
  /** As another replica would. */
  schedule(given?: { isActive?: boolean; hasRoom?: boolean; feeds?: PolledFeed[] }): AuditSchedule
}

async function aScene(events = 12): Promise<Scene> {
  const rig = await startFeedRig({ tests })
  onTestFinished(() => rig.stop())
  if (events > 0) rig.sandbox.addEvents(events)
  const keys = createKeys(`schedule${(prefixes += 1)}`)
  const ahead = { aheadMs: 0 }
  const clock: Clock = { ...systemClock, now: () => Date.now() + ahead.aheadMs }
  const parts: AuditOptions = {
    client: rig.replica.client,
    ledger: rig.ledger,
    clock,
    plan: () => ({ decisions: [], items: [] }),
    isReserveReached: () => Promise.resolve(false),
    pairDigest: () => undefined,
    sealSecret: () => undefined,
  }
  return {
    rig,
    keys,
    clock: ahead,
    schedule: ({ isActive = true, hasRoom = true, feeds = [feed] } = {}) =>
      createAuditSchedule({
        feeds,
        optionsFor: () => parts,
        redis: tests.redis,
        keys,
        clock,
        logger: silent,
        isActive: () => isActive,
        hasRoom: () => Promise.resolve(hasRoom),
      }),
  }
}

const pages = ({ rig }: Scene): number => rig.asked().length

function once(schedule: AuditSchedule): Promise<void> {
  return schedule.auditOnce(new AbortController().signal, () => undefined)
}

test('a feed is audited once it was read to its end, and again when its time has come', async () => {
  const scene = await aScene()
  const schedule = scene.schedule()
  await once(schedule)
  expect(pages(scene)).toBe(0)
  await scene.rig.toEnd(feed)
  pages(scene)
  await once(schedule)
  expect(pages(scene)).toBe(2)
  expect(await readAuditNotes(tests.redis, scene.keys)).toMatchObject({
    brand: { shown: 12, missing: 0, awaited: 0, extra: 0 },
  })
  await once(schedule)
  expect(pages(scene)).toBe(0)
  scene.clock.aheadMs += hourMs
  await once(schedule)
  expect(pages(scene)).toBe(2)
})

test.each([
  ['audits', { endedAtMs: Date.now() + 100 * hourMs }],
  ['audit-failures', { count: 1, lastMs: Date.now() + 100 * hourMs }],
])('a time in %s that a clock ahead wrote delays no audit', async (key, note) => {
  const scene = await aScene()
  await scene.rig.toEnd(feed)
  pages(scene)
  await tests.redis.hset(scene.keys.shared(key), feed.name, JSON.stringify(note))
  await once(scene.schedule())
  expect(pages(scene)).toBe(2)
})

test('of several replicas one audits, of one that is not active none', async () => {
  const scene = await aScene()
  await scene.rig.toEnd(feed)
  pages(scene)
  await once(scene.schedule({ isActive: false }))
  expect(pages(scene)).toBe(0)
  await Promise.all([once(scene.schedule()), once(scene.schedule())])
  expect(pages(scene)).toBe(2)
})

test('no audit begins while Redis is nearly full: it could not be noted, and would begin again and again', async () => {
  const scene = await aScene()
  await scene.rig.toEnd(feed)
  pages(scene)
  await once(scene.schedule({ hasRoom: false }))
  expect(pages(scene)).toBe(0)
  await once(scene.schedule())
  expect(pages(scene)).toBe(2)
})

test('what was lost is counted, and told until it is there', async () => {
  const scene = await aScene(3)
  await scene.rig.toEnd(feed)
  const { ledger } = scene.rig
  const [uid] = [...(await scene.rig.records()).keys()]
  await ledger.redis.del(ledger.key('rec', ledger.fingerprints.recordId(uid!)))
  await once(scene.schedule())
  expect((await readAuditNotes(tests.redis, scene.keys))['brand']).toMatchObject({ missing: 1 })
})
