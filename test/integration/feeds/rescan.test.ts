import { callBy } from '../../support/call.ts'
import { afterEach, expect, test } from 'vitest'
import { buildSuppressionRules } from '../../../src/daemon/parts/grouping.ts'
import { parseConfig } from '../../../src/config/load.ts'
import { openFeed, rewindFeed } from '../../../src/store/feed-state.ts'
import { createRouter } from '../../../src/routing/router.ts'
import { systemClock } from '../../../src/lib/clock.ts'
import type { SandboxOptions } from '../../../src/sandbox/options.ts'
import { aFeed } from '../../support/feeds.ts'
import { scraped, startFeedRig, type FeedRig } from '../../support/feed-rig.ts'
import { expectConservation, redisForTests } from '../../support/ledger.ts'
import { deliverRef, drainOptions } from '../../support/delivery.ts'
import { aRehearsedSink } from '../../support/rehearsed-sink.ts'

const tests = redisForTests()
const hourMs = 3_600_000
const startMs = 96 * hourMs
const feed = aFeed({ startMs, rescan: { everyMs: 1, backMs: 168 * hourMs } })

let rig: FeedRig

async function begin(sandbox: SandboxOptions = {}): Promise<FeedRig> {
  rig = await startFeedRig({ tests, sandbox })
  return rig
}

afterEach(() => rig.stop())

function uidsOf(events: readonly { uid: string }[]): string[] {
  return events.map(({ uid }) => uid).toSorted()
}

async function known(): Promise<string[]> {
  return [...(await rig.records()).keys()].toSorted()
}

test('what arrives behind the tail is found by the next rescan, once, and counted as late', async () => {
  const { sandbox } = await begin({ endMode: 'empty' })
  sandbox.addEvents(25)
  await rig.toEnd(feed)
  const nowMs = Date.now()
  for (const hours of [1, 24, 72]) sandbox.addEvents(2, { createdAtMs: nowMs - hours * hourMs })
  const older = sandbox.addEvent({ createdAtMs: nowMs - startMs - hourMs })
  sandbox.addEvents(3)
  await rig.toEnd(feed)
  expect(await known()).toHaveLength(28)
  await rig.toEnd(feed, 'rescan')
  const appeared = sandbox.addEvent({ createdAtMs: nowMs - startMs - hourMs })
  await rig.toEnd(feed, 'rescan')
  expect(await known()).toEqual(uidsOf(sandbox.events().filter(({ uid }) => uid !== older.uid)))
  const { feeds } = await expectConservation(rig.ledger)
  expect(await known()).toContain(appeared.uid) // it was not there when the start bound was set
  expect(feeds['brand']).toMatchObject({ new: 35, late: 7, baseline: 1 })
  expect(await scraped(rig.metrics, 'rescan_late_events_total{feed="brand"}')).toBe(7)
  expect(await scraped(rig.metrics, 'event_lateness_seconds_count')).toBe(7)
  expect(sandbox.violations().changedScans).toBe(0)
})

test.each([
  ['ahead when a feed was rewound', 24 * hourMs],
  ['set back before a feed was rewound', -24 * hourMs],
])(
  'what is new is told, and what is missed found, though Redis’ clock was %s',
  async (_when, byMs) => {
    await begin({ endMode: 'empty' })
    const short = { startMs: 24 * hourMs, rescan: { everyMs: hourMs, backMs: 48 * hourMs } }
    rig.sandbox.addEvents(3)
    await rig.toEnd(aFeed(short))
    const name = rig.ledger.key('feed', 'brand')
    const { scan: walk } = await openFeed(rig.ledger, 'brand', startMs)
    if (byMs < 0) {
      const ahead = { ...walk, startedAtMs: Date.now() - byMs }
      await tests.redis.hset(name, 'walk', JSON.stringify(ahead))
    }
    await rewindFeed(rig.ledger, 'brand', Date.now() - 72 * hourMs)
    if (byMs > 0) await tests.redis.hset(name, 'rewound', Date.now() + byMs)
    const missed = rig.sandbox.addEvent({ createdAtMs: Date.now() - 60 * hourMs })
    rig.sandbox.addEvents(25)
    await rig.toEnd(aFeed(short))
    await rig.turn(aFeed(short), 'rescan')
    expect(await known()).toContain(missed.uid)
    expect(await known()).toHaveLength(29)
  },
)

test('an event that became more severe goes out again, and says what it was before', async () => {
  const { sandbox } = await begin({ endMode: 'empty' })
  const [same, worse, milder] = sandbox.addEvents(3, { severity: 'medium' })
  await rig.toEnd(feed)
  sandbox.changeEvent(worse!.uid, { override: 'critical' })
  sandbox.changeEvent(milder!.uid, { override: 'low' })
  await rig.toEnd(feed, 'rescan')
  await rig.toEnd(feed, 'rescan')
  const records = await rig.records()
  expect(records.get(worse!.uid)!.items).toMatchObject([
    { severity: 'medium', raisedFrom: undefined },
    { severity: 'critical', raisedFrom: 'medium' },
  ])
  for (const { uid } of [same!, milder!]) expect(records.get(uid)!.items).toHaveLength(1)
  const { feeds } = await expectConservation(rig.ledger)
  expect(feeds['brand']).toMatchObject({ new: 3, raised: 1, late: 0 })
})

test('what people closed at the service meanwhile is noted, and no longer told to people', async () => {
  const { sandbox } = await begin({ endMode: 'empty', showsIgnored: true })
  const [open, ignored, remediated] = sandbox.addEvents(3, { severity: 'high' })
  await rig.toEnd(feed)
  sandbox.changeEvent(ignored!.uid, { ignoredAtMs: Date.now() })
  sandbox.changeEvent(remediated!.uid, { remediatedAtMs: Date.now() })
  await rig.toEnd(feed, 'rescan')
  const records = await rig.records()
  const closed = [open!, ignored!, remediated!].map(({ uid }) => records.get(uid)!.closed)
  expect(closed).toEqual([undefined, 'ignored', 'remediated'])

  const soc = await deliverAll()
  expect(soc.received.flatMap(({ members }) => members.map(({ event }) => event.uid))).toEqual([
    open!.uid,
  ])
  const items = [...(await rig.records()).values()].map(
    ({ closed: why = 'open', items: [item] }) => [why, [item!.state, item!.heldFor]],
  )
  expect(Object.fromEntries(items)).toEqual({
    open: ['delivered', undefined],
    ignored: ['suppressed', 'ignored'],
    remediated: ['suppressed', 'remediated'],
  })
  await expectConservation(rig.ledger)
})

/** Delivers every item under the rules of the whole daemon. */
async function deliverAll() {
  const { config } = parseConfig(
    `
redis: {url: 'redis://127.0.0.1:1'}
accounts: {main: {base_url: 'https://api.example.com', api_key: key}}
feeds: {brand: {type: events, identifier_group: 1042, detail: []}}
sinks: {soc: {type: slack, url: 'https://hooks.slack.com/services/T/B/x'}}
route: {sinks: [soc]}
`,
    { file: 'test.yaml', env: {} },
  )
  const gate = buildSuppressionRules(
    { config, clock: systemClock },
    createRouter(config.route),
    () => [],
  )
  const soc = aRehearsedSink('soc', { type: 'slack' })
  const keys = tests.keys()
  const options = drainOptions({
    redis: tests.redis,
    keys,
    ledgers: [rig.ledger],
    clock: systemClock,
  })
  for (const { recordId } of (await rig.records()).values()) {
    const judging = { ...options, rules: gate, metrics: rig.metrics }
    await deliverRef(judging, rig.ledger, soc, `i:${recordId}:0:soc`)
  }
  return soc
}

test.each(['feed', 'rescan'] as const)(
  'cursors that lead round in a circle end the %s, as an error that is told, and cost no event',
  async (kind) => {
    await begin({ endMode: 'empty' })
    if (kind === 'rescan') await rig.toEnd(feed)
    const nextOf: Record<string, string> = { '': 'a', a: 'b', b: 'a' }
    const asked: string[] = []
    rig.replica.client.call = callBy((_name, { from }: { from?: string }) => {
      asked.push(from ?? '')
      const estimated_created_at = new Date(Date.now() - hourMs).toISOString()
      const metadata = { uid: `paste/x/${from ?? 'first'}`, type: 'paste', estimated_created_at }
      const page = { items: [{ metadata }], next: nextOf[from ?? ''] ?? null }
      return Promise.resolve({ page, requestedAtMs: Date.now() })
    })
    expect(await rig.turn(feed, kind)).toMatchObject({ status: 'failed', reason: 'invalid' })
    expect(asked.length).toBeLessThan(40)
    expect(await known()).toEqual(['paste/x/a', 'paste/x/b', 'paste/x/first'])
  },
)
