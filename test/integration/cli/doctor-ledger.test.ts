/** What `doctor` says of a ledger, trouble by trouble, against one that the daemon's own scripts filled. */
import { expect, test } from 'vitest'
import { ledgerProbe } from '../../../src/operator/probes/redis-probes.ts'
import { about, type Finding } from '../../../src/operator/probes/probe.ts'
import { createAddressHasher } from '../../../src/delivery/sink-address.ts'
import { type Circuit, createCircuit } from '../../../src/delivery/circuit.ts'
import { runScript } from '../../../src/redis/scripts.ts'
import { activateGeneration } from '../../../src/store/account-ledger.ts'
import { noteFeedTrouble, pauseFeed } from '../../../src/store/feed-state.ts'
import { createAccountKey } from '../../../src/upstream/access/tokens.ts'
import { redisForTests, routed, takeIn } from '../../support/ledger.ts'
import { beginAttempt, settleAttempt } from '../../support/attempts.ts'
import { ledgerInTime } from '../../support/script-clock.ts'
import { noteCanary } from '../../../src/operator/alerts/canary.ts'
import { aSocScene, type SocScene } from './soc-scene.ts'
import { destinationsBySink } from '../../../src/operator/recipients.ts'

const tests = redisForTests()
const hourMs = 3_600_000

interface Scene extends SocScene {
  circuit: Circuit
}

/** A feed that was read to its end just now, a daemon that runs, and a fallback for `soc`. */
async function aScene(): Promise<Scene> {
  const scene = await aSocScene(tests, (text) =>
    text.replace('hush-hush" }', 'hush-hush", fallback: siem }'),
  )
  const { ledger, keys, parsed } = scene
  await takeIn(ledger, [], { isCaughtUp: true, requestedAtMs: Date.now() })
  await activateGeneration(tests.redis, keys, 'h')
  return { ...scene, circuit: createCircuit(tests.redis, keys, createAddressHasher(parsed)) }
}

async function found({ parsed }: SocScene): Promise<Finding[]> {
  const needs = { redis: tests.redis, config: parsed }
  return ledgerProbe.find(needs, about('ledger', parsed.redis.prefix), new AbortController().signal)
}

function lines(findings: readonly Finding[]): string[] {
  return findings.map(
    ({ check, subject, status, detail, remedy }) =>
      `${status} ${check} ${subject}: ${detail} -> ${remedy}`,
  )
}

const feedOf = ({ ledger }: SocScene): string => ledger.key('feed', 'brand')
const failure = { reason: 'timeout', answer: 'no answer within 30 s', waitMs: 90_000 }
const sent = { reason: 'unauthorized', answer: '403 no', nextTryInMs: 60_000 } as const

/** As a daemon does on the answer 401. */
async function refuseKey({ parsed, keys }: SocScene): Promise<void> {
  const { fingerprint } = createAccountKey(parsed.accounts[0]!)()
  const pause = keys.shared('account-pause', fingerprint)
  await runScript(tests.redis, 'pause-account', [pause], ['auth', 30_000, 900_000, 'refused (401)'])
}

test('a ledger in which all is well is one line, and so is one that took nothing in yet', async () => {
  const scene = await aScene()
  expect(lines(await found(scene))).toEqual([
    `ok ledger ${scene.parsed.redis.prefix}: 2 accounts, 1 feed, 5 sinks: nothing is late, refused, paused or given up -> null`,
  ])
  const empty = { ...scene.parsed, redis: { ...scene.parsed.redis, prefix: 'of-nobody' } }
  expect(await found({ ...scene, parsed: empty })).toMatchObject([
    { status: 'ok', detail: 'nothing was taken in yet' },
  ])
  expect(await tests.redis.keys('{of-nobody*')).toEqual([])
})

/** As if two events came in so long ago; the first try of all, or of all to one destination, failed. */
async function failedAgo(
  scene: Scene,
  agoMs: number,
  { sink, severity, only }: { sink: string; severity: string; only?: string },
): Promise<void> {
  const { ledger } = scene
  const past = ledgerInTime(ledger, () => Date.now() - agoMs)
  await scene.show(
    [sink],
    [1, 2].map((n) => ({ uid: `a/b/${n}`, severity })),
    past,
  )
  const failed = { outcome: 'retry', inMs: 4 * hourMs, counts: true, reason: 'rejected' } as const
  for (const ref of await tests.redis.zrange(ledger.key('due', sink), '0', '-1')) {
    const begun = await beginAttempt(past, ref, 't', 30_000)
    const isTaken = only !== undefined && begun.status === 'send' && begun.destination !== only
    const outcome = isTaken ? ({ outcome: 'delivered' } as const) : failed
    await settleAttempt(past, { ref, token: 't', replica: 'r1' }, outcome)
  }
  await takeIn(ledger, [], { isCaughtUp: true, requestedAtMs: Date.now() })
}

/** The mailbox of bob alone is full. */
async function oneIsFull(scene: Scene, agoMs: number): Promise<void> {
  const only = recipientsOf(scene)[1]!.id
  await failedAgo(scene, agoMs, { sink: 'oncall', severity: 'critical', only })
  await scene.circuit.report('oncall', 'ok')
}

const recipientsOf = ({ parsed }: Scene) => destinationsBySink(parsed).get('oncall')!

const troubles: [what: string, disturb: (scene: Scene) => Promise<unknown>, said: RegExp[]][] = [
  [
    'a daemon that does not run, without what follows from it',
    async (scene) => {
      await tests.redis.hset(scene.keys.shared('generation'), 'confirmed', 1)
      await tests.redis.hset(feedOf(scene), 'caught_up', Date.now() - hourMs)
    },
    [/^problem daemon .*: none has run for a minute/],
  ],
  [
    'a feed that is late and why',
    async (scene) => {
      await tests.redis.hset(feedOf(scene), 'caught_up', Date.now() - hourMs)
      await noteFeedTrouble(scene.ledger, 'brand', 'feed', failure)
    },
    [/^problem feed brand: lag 1 h.*; failing since .*, last: timeout/],
  ],
  [
    'a feed that works off a backlog, as a warning',
    (scene) => tests.redis.hset(feedOf(scene), { caught_up: Date.now() - hourMs, backfill: 1 }),
    [/^warning feed brand: .*; works off a backlog/],
  ],
  [
    'a failure within the objective and of rescans, as warnings',
    async ({ ledger }) => {
      await noteFeedTrouble(ledger, 'brand', 'feed', failure)
      await noteFeedTrouble(ledger, 'brand', 'rescan', failure)
    },
    [/^warning feed brand: lag .*; failing since/, /^warning feed brand: its rescans: failing sin/],
  ],
  [
    'a feed that shows events which are dated ahead of now',
    (scene) =>
      tests.redis.hset(feedOf(scene), { ahead: Date.UTC(2199, 0, 1), ahead_at: Date.now() }),
    [/^warning feed brand: shows events .* ahead of now, up to 2199-01-01/],
  ],
  [
    'nothing of one that came more than a day ago',
    (scene) =>
      tests.redis.hset(feedOf(scene), {
        ahead: Date.UTC(2199, 0, 1),
        ahead_at: Date.now() - 24 * hourMs - 2_000,
      }),
    [/^ok ledger/],
  ],
  [
    'a feed that is paused',
    ({ ledger }) => pauseFeed(ledger, 'brand', { reason: 'noise', sinceMs: Date.now() }),
    [/^problem feed brand: paused since .*: noise/],
  ],
  [
    'a feed that cannot be read, and its quarantine',
    async ({ ledger }) => {
      await takeIn(ledger, [], { malformed: [{ uid: null, problem: 'no uid', raw: '{}' }] })
    },
    [/^problem feed brand: 1 of 1 items .*: no uid/, /^problem feed brand: 1 item in the quar/],
  ],
  [
    'an account whose key is refused, and nothing of its feeds, which follows from it',
    async (scene) => {
      const { ledger } = scene
      await tests.redis.hset(ledger.key('feed', 'brand'), 'caught_up', Date.now() - hourMs)
      await noteFeedTrouble(ledger, 'brand', 'feed', failure)
      await noteFeedTrouble(ledger, 'brand', 'rescan', failure)
      await refuseKey(scene)
    },
    [/^problem account main: its key: failing/, /account second: /],
  ],
  [
    'an account that left with work',
    async (scene) =>
      scene.show(
        ['lake'],
        [{ uid: 'a/b/1' }],
        await tests.ledger({ keys: scene.keys, account: 'gone' }),
      ),
    [/^problem account gone: .*, and 1 item waits/],
  ],
  [
    'a sink that has never taken anything, what waits and what its fallback got',
    async (scene) => {
      await scene.show(['soc'], [{ uid: 'a/b/1' }, { uid: 'a/b/2' }])
      await tests.redis.hincrby(scene.ledger.key('counters'), 's|soc|created', 35)
      await tests.redis.hincrby(scene.ledger.key('counters'), 's|soc|diverted', 35)
      await scene.circuit.report('soc', 'broken', sent)
    },
    [
      /^problem delivery soc: circuit open; .* 2 items wait, 35 items went .*; its fallback siem takes/,
    ],
  ],
  [
    'what is held beside what waits for its sink',
    async (scene) => {
      await scene.show(['soc'], [{ uid: 'a/b/1' }, { uid: 'a/b/2' }])
      for (const counter of ['created', 'pending|held'])
        await tests.redis.hincrby(scene.ledger.key('counters'), `s|soc|${counter}`, 35)
      await scene.circuit.report('soc', 'broken', sent)
    },
    [/^problem delivery soc: circuit open; .* 2 items wait, 35 held; its fallback siem takes/],
  ],
  [
    'a sink that is paused',
    ({ circuit }) => circuit.pause('lake', { reason: 'it moves', sinceMs: Date.now() }),
    [/^problem delivery lake: paused since .*: it moves; 0 items wait/],
  ],
  [
    'a sink that refuses whatever waits, though its circuit is closed',
    async (scene) => {
      await scene.show(['lake'], [{ uid: 'a/b/1' }])
      await scene.circuit.report('lake', 'ok')
      for (let i = 0; i < 3; i += 1) await scene.circuit.report('lake', 'fault', sent)
    },
    [/^problem delivery lake: failing since .*, 3 times, .*; 1 item waits/],
  ],
  [
    'a single failure, as a warning',
    async ({ circuit }) => {
      await circuit.report('lake', 'ok')
      await circuit.report('lake', 'fault', sent)
    },
    [/^warning delivery lake: failing since .*, once/],
  ],
  [
    'criticals that one recipient does not get, while the other takes mail',
    (scene) => oneIsFull(scene, 2 * hourMs),
    [/^problem delivery oncall: a critical event has waited for 2 h.*; 2 items wait/],
  ],
  [
    'nothing of what has waited for less than an hour',
    (scene) => oneIsFull(scene, hourMs / 2),
    [/^ok ledger/],
  ],
  [
    'a resumed sink with nothing waiting, as a warning',
    async ({ circuit }) => {
      await circuit.report('lake', 'broken', sent)
      await circuit.pause('lake', undefined)
    },
    [/^warning delivery lake: circuit half_open/],
  ],
  [
    'a resumed sink for which something is held alone, as a warning',
    async ({ circuit, ledger }) => {
      await circuit.report('lake', 'broken', sent)
      await circuit.pause('lake', undefined)
      for (const counter of ['created', 'pending|held'])
        await tests.redis.hincrby(ledger.key('counters'), `s|lake|${counter}`, 35)
    },
    [/^warning delivery lake: circuit half_open, the next message is the test; .* 35 held/],
  ],
  [
    'work that nobody takes up',
    async (scene) => {
      await scene.show(['lake'], [{ uid: 'a/b/1' }])
      await scene.circuit.report('lake', 'ok')
      const [ref = ''] = await tests.redis.zrange(scene.ledger.key('due', 'lake'), '0', '0')
      await tests.redis.zadd(scene.ledger.key('due', 'lake'), Date.now() - hourMs, ref)
    },
    [/^problem delivery lake: work is overdue; 1 item waits/],
  ],
  [
    'dead letters',
    async (scene) => {
      await scene.show(['lake'], [{ uid: 'a/b/1' }])
      await scene.attempt('lake', { outcome: 'dead', reason: 'rejected' })
    },
    [/^problem delivery lake: 1 dead letter/],
  ],
  [
    'items of a sink that left the configuration',
    async ({ ledger }) => {
      await takeIn(ledger, [routed({ uid: 'a/b/1' }, ['old'])], { isCaughtUp: true })
    },
    [/^problem delivery old: not configured any more, 1 item waits/],
  ],
  [
    'a digest that is overdue',
    async (scene) => {
      await scene.show(['oncall'], [{ uid: 'a/b/1', severity: 'low' }])
      for (const name of await tests.redis.keys(`${scene.ledger.key('group')}:*`)) {
        await tests.redis.hset(name, 'from', Date.now() - 48 * hourMs)
      }
    },
    [/^problem delivery oncall: its digest has been due since/],
  ],
  [
    'counters that do not add up',
    async ({ ledger }) => {
      await tests.redis.hincrby(ledger.key('counters'), 'f|brand|fetched', 1)
    },
    [/^problem accounting main: brand: 1 unaccounted for/],
  ],
]

test.each(troubles)('doctor says %s', async (_what, disturb, said) => {
  const scene = await aScene()
  await disturb(scene)
  const findings = lines(await found(scene))
  expect(findings).toEqual(said.map((line) => expect.stringMatching(line)))
})

test.each([
  ['an interval', { whole_completed: 4 }, / do not end: the last one /],
  ['an interval, of which none has ended', { first_poll: 4 }, / do not end: none/],
  ['an interval that has passed twice', { whole_completed: 2 }, /^ok ledger/],
])('rescans of a feed with %s are judged by it', async (_what, hoursAgo, said) => {
  const scene = await aScene()
  for (const [field, hours] of Object.entries(hoursAgo))
    await tests.redis.hset(feedOf(scene), field, Date.now() - hours * hourMs)
  const feeds = scene.parsed.feeds.map((feed) => ({
    ...feed,
    rescan: { ...feed.rescan!, everyMs: hourMs },
  }))
  const parsed = { ...scene.parsed, feeds }
  expect(lines(await found({ ...scene, parsed }))).toEqual([expect.stringMatching(said)])
})

test('a feed that waits because another one met a 429 says so, and not that its rescans do not end', async () => {
  const scene = await aScene()
  const { ledger, parsed } = scene
  const other = ledger.key('feed', 'staff')
  const longAgoMs = Date.now() - 4 * hourMs
  await tests.redis.hset(feedOf(scene), { caught_up: longAgoMs, whole_completed: longAgoMs })
  await tests.redis.copy(feedOf(scene), other)
  const refused = { reason: 'rate_limited', answer: 'wait (429)', waitMs: 90_000 }
  await noteFeedTrouble(ledger, 'brand', 'feed', refused)
  const feeds = ['brand', 'staff'].map((name) => {
    const feed = parsed.feeds[0]!
    return { ...feed, name, rescan: { ...feed.rescan!, everyMs: hourMs } }
  })
  const both = { ...scene, parsed: { ...parsed, feeds } }
  const own = expect.stringMatching(
    /^problem feed brand: lag 4 h.*; failing since .*, wait \(429\)/,
  )
  expect(lines(await found(both))).toEqual([
    own,
    expect.stringMatching(
      /^problem feed staff: lag 4 h.*; waits with feed brand: failing since .*, wait \(429\); next try/,
    ),
  ])
  await tests.redis.hset(other, 'caught_up', Date.now())
  expect(lines(await found(both))).toEqual([own])
  await tests.redis.hset(other, { caught_up: longAgoMs, success: Date.now() + 1 })
  const [, still] = lines(await found(both))
  expect(still).toMatch(/^problem feed staff: lag 4 h/)
  expect(still).not.toContain('brand')
})

test('a feed whose own rescan met a 429 waits with no other', async () => {
  const scene = await aScene()
  await tests.redis.hset(feedOf(scene), 'caught_up', Date.now() - 4 * hourMs)
  const refused = { reason: 'rate_limited', answer: 'wait (429)', waitMs: 90_000 }
  await noteFeedTrouble(scene.ledger, 'brand', 'rescan', refused)
  expect(lines(await found(scene)).join()).toMatch(/lag 4 h(?!.*waits with)/)
})

test('rescans that were switched off fail no more', async () => {
  const scene = await aScene()
  await noteFeedTrouble(scene.ledger, 'brand', 'rescan', failure)
  const feeds = scene.parsed.feeds.map((feed) => ({ ...feed, rescan: undefined }))
  const parsed = { ...scene.parsed, feeds }
  expect(lines(await found({ ...scene, parsed }))).toEqual([expect.stringMatching(/^ok ledger/)])
})

test.each<[lastAgoMs: number | undefined, also: string | undefined, said: RegExp]>([
  [4 * hourMs, undefined, /^problem delivery lake: its canary is late: the last one/],
  [undefined, undefined, /^warning delivery lake: its canary is late: none has arrived yet/],
  [2 * hourMs, undefined, /^ok ledger/],
  [4 * hourMs, 'it moves', /^problem delivery lake: paused since/],
])(
  'doctor judges a canary whose last one arrived %s ms ago at a sink (paused: %s)',
  async (lastAgoMs, paused, said) => {
    const scene = await aScene()
    const canary = { everyMs: hourMs, sinks: ['lake'] }
    if (lastAgoMs !== undefined) {
      const place = { redis: tests.redis, keys: scene.keys }
      const arrived = { isTest: true, members: [], atMs: Date.now() - lastAgoMs }
      await noteCanary(place, 'lake', arrived)
    }
    if (paused) await scene.circuit.pause('lake', { reason: paused, sinceMs: Date.now() })
    const parsed = { ...scene.parsed, canary: { ...canary, ping: undefined } }
    expect(lines(await found({ ...scene, parsed }))).toEqual([expect.stringMatching(said)])
  },
)
