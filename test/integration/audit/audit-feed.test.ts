/** What an audit names, by feed type, over HTTP against the sandbox and a real ledger. */
import { callBy } from '../../support/call.ts'
import { afterEach, expect, onTestFinished, test } from 'vitest'
import { auditFeed, type AuditOptions } from '../../../src/audit/audit-feed.ts'
import { type AuditResult, auditWindow, type AuditWindow } from '../../../src/audit/pages.ts'
import { repair, type RepairOptions } from '../../../src/audit/repair.ts'
import type { PolledFeed } from '../../../src/feed-types/feed-type.ts'
import { systemClock } from '../../../src/lib/clock.ts'
import { createSecretBox } from '../../../src/lib/sealed-secret.ts'
import type { SandboxOptions } from '../../../src/sandbox/options.ts'
import { openFeed } from '../../../src/store/feed-state.ts'
import { discardItem, scanPendingItems } from '../../../src/store/pending-items.ts'
import type { UpstreamClient } from '../../../src/upstream/client.ts'
import { type FeedRig, startFeedRig } from '../../support/feed-rig.ts'
import { aCredentialFeed, aCredentialSearch, aFeed, anEventSearch } from '../../support/feeds.ts'
import { startHttpServer } from '../../support/http-server.ts'
import { expectConservation, pastThisMillisecond, redisForTests } from '../../support/ledger.ts'

const tests = redisForTests()
const dayMs = 86_400_000
/** As the poller of the rig names what does not parse. */
const secrets = createSecretBox(() => 'fw_of_the_rig')
const stopping = new AbortController().signal
const root = {
  decisions: [{ route: 'root', path: ['root'], why: [] }],
  items: [{ sink: 'soc', destination: 'soc', routes: ['root'] }],
}

let rig: FeedRig | undefined
afterEach(async () => {
  await rig?.stop()
  rig = undefined
})

async function aRig(sandbox: SandboxOptions = {}): Promise<FeedRig> {
  await tests.redis.flushdb()
  rig = await startFeedRig({ tests, sandbox })
  return rig
}

function partsOf({ replica, ledger }: FeedRig): AuditOptions {
  return {
    client: replica.client,
    ledger: ledger,
    clock: systemClock,
    plan: () => root,
    keepsEvents: true,
    isReserveReached: () => Promise.resolve(false),
    pairDigest: (parts) => secrets.digest(parts),
    sealSecret: () => undefined,
  }
}

async function audited(given: FeedRig, feed: PolledFeed, backMs = dayMs): Promise<AuditResult> {
  const state = await openFeed(given.ledger, feed.name, feed.startMs)
  const window = auditWindow(given.ledger, feed, state, backMs)
  if (typeof window === 'string') throw new Error(`there is nothing to compare: ${window}`)
  const steps = auditFeed(partsOf(given), feed, window, { kind: 'command', signal: stopping })
  for (;;) {
    const step = await steps.next()
    if (step.done) return step.value
  }
}

/** Behind the ledger's back: the record, and unless it stays the feed's mark too. */
async function remove(
  { ledger }: FeedRig,
  { name }: PolledFeed,
  uid: string,
  what: { markStays?: boolean } = {},
): Promise<void> {
  const { redis, fingerprints: digests } = ledger
  const id = digests.recordId(uid)
  await redis.del(ledger.key('rec', id), ledger.key('pay', id))
  if (what.markStays) return
  const { m } = digests.seen(name, uid)
  for (const key of await redis.keys(`${ledger.key('marks')}*`)) await redis.srem(key, m)
}

/** As if the feed had been read to its end just now. */
async function caughtUp({ ledger }: FeedRig, { name }: PolledFeed): Promise<void> {
  await ledger.redis.hset(ledger.key('feed', name), 'caught_up', String(Date.now() + 1))
}

const repairOptions = ({ ledger }: FeedRig): RepairOptions => ({
  ledger: ledger,
  clock: systemClock,
  plan: () => root,
  batchWaitMs: () => undefined,
  queue: () => Promise.resolve(),
})

const kinds: [PolledFeed, (given: FeedRig) => string[]][] = [
  [aFeed({ rescan: undefined }), someEvents],
  [anEventSearch({ rescan: undefined, query: { type: 'keyword', keyword: 'acme' } }), someEvents],
  [aCredentialFeed({ rescan: undefined, dedupe: undefined }), someCredentials],
  [aCredentialSearch({ rescan: undefined, dedupe: undefined }), someCredentials],
]

function someEvents({ sandbox }: FeedRig): string[] {
  const highlights = { content: ['something of <mark>acme</mark>'] }
  const given = { severity: 'low', groupIds: [1042], highlights }
  return sandbox.addEvents(25, given).map(({ uid }) => uid)
}

function someCredentials({ sandbox }: FeedRig): string[] {
  const given = { identifierIds: [77], domain: 'example.com' }
  return sandbox.addCredentials(25, given).map(({ id }) => `credential/${id}`)
}

test.each(kinds)(
  'an audit of a feed of type $type misses nothing that is there',
  async (feed, add) => {
    const given = await aRig({ emptyPages: 0.2, shortPages: 0.2, endMode: 'echo' })
    const uids = add(given)
    await given.toEnd(feed)
    const result = await audited(given, feed)
    expect(result).toMatchObject({ missing: [], awaited: [], extra: [], malformed: [] })
    expect(result.shown).toBe(uids.length)
    expect(result.accounted).toBe(uids.length)
  },
)

test.each(kinds)(
  'of a feed of type $type it names what was removed, and takes it in again',
  async (feed, add) => {
    const given = await aRig()
    const uids = add(given)
    await given.toEnd(feed)
    await remove(given, feed, uids[3]!)
    await remove(given, feed, uids[7]!, { markStays: true })
    await audited(given, feed) // without a match time it may have come a moment ago
    await caughtUp(given, feed)
    const before = await openFeed(given.ledger, feed.name, feed.startMs)

    const result = await audited(given, feed)
    const named = new Map(result.missing.map(({ uid, why }) => [uid, why]))
    expect(named).toEqual(
      new Map([
        [uids[3], 'never_taken_in'],
        [uids[7], 'record_gone'],
      ]),
    )
    expect(result.accounted).toBe(uids.length - 2)

    expect(await repair(repairOptions(given), feed, result)).toEqual([])
    const records = await given.records()
    for (const uid of [uids[3]!, uids[7]!]) {
      expect(records.get(uid)?.items).toMatchObject([
        { sink: 'soc', state: 'queued', repeatRisks: 1 },
      ])
    }
    expect((await audited(given, feed)).missing).toEqual([])
    const after = await openFeed(given.ledger, feed.name, feed.startMs)
    expect({ ...after, nowMs: 0, repairSequence: 0 }).toEqual({ ...before, nowMs: 0 })
  },
)

test('what made room while it went on is not missing', async () => {
  const given = await aRig()
  const feed = aFeed({ rescan: undefined })
  const uids = someEvents(given)
  await given.toEnd(feed)
  const state = await openFeed(given.ledger, feed.name, feed.startMs)
  const window = auditWindow(given.ledger, feed, state, dayMs) as AuditWindow
  const ids = uids.slice(0, 9).map((uid) => given.ledger.fingerprints.recordId(uid))
  for await (const { ref, record } of scanPendingItems(given.ledger)) {
    if (ids.includes(record.recordId)) await discardItem(given.ledger, ref, 'ann')
  }
  await given.ledger.run('trim-records', dayMs, given.ledger.horizonMs, 2 ** 40)
  const audit = auditFeed(partsOf(given), feed, window, { kind: 'command', signal: stopping })
  let step = await audit.next()
  while (!step.done) step = await audit.next()
  expect((await given.records()).size).toBe(uids.length - 9)
  expect(step.value).toMatchObject({ shown: uids.length, missing: [] })
})

test('what the next rescan will find is awaited, and what it should have found is missing', async () => {
  const given = await aRig()
  const feed = aFeed({ rescan: { everyMs: 1, backMs: 7 * dayMs } })
  const atMs = Date.now() - 3_600_000
  given.sandbox.addEvents(3, { severity: 'low', createdAtMs: atMs, matchedAtMs: atMs })
  await given.toEnd(feed)
  await given.toEnd(feed, 'rescan')
  const [late] = given.sandbox.addEvents(1, { createdAtMs: atMs - 1, matchedAtMs: Date.now() + 1 })
  const [lost] = given.sandbox.addEvents(1, { createdAtMs: atMs - 2, matchedAtMs: atMs })
  const result = await audited(given, feed)
  expect(result.awaited.map(({ uid }) => uid)).toEqual([late!.uid])
  expect(result.missing.map(({ uid }) => uid)).toEqual([lost!.uid])
})

test.each([
  ['missing', 'past its match time', {}],
  ['awaited', 'up to an earlier one', { toMs: 1 }],
  ['awaited', 'with other filters', { fingerprint: 'of other filters' }],
])(
  'what came after a rescan is %s where the feed was read by match time %s',
  async (verdict, _how, read) => {
    const given = await aRig()
    const feed = aFeed({ rescan: { everyMs: 1, backMs: 7 * dayMs } })
    const atMs = Date.now() - 3_600_000
    given.sandbox.addEvents(3, { severity: 'low', createdAtMs: atMs, matchedAtMs: atMs })
    await given.toEnd(feed)
    await given.toEnd(feed, 'rescan')
    const matchedAtMs = Date.now() + 1
    const [late] = given.sandbox.addEvents(1, { createdAtMs: atMs - 1, matchedAtMs })
    const { scan } = await openFeed(given.ledger, feed.name, feed.startMs)
    const matched = { fingerprint: scan?.fingerprint, toMs: matchedAtMs + 1, ...read }
    await tests.redis.hset(given.ledger.key('feed', feed.name), 'matched', JSON.stringify(matched))
    expect(await audited(given, feed)).toMatchObject({
      missing: [],
      awaited: [],
      [verdict]: [{ uid: late!.uid }],
    })
  },
)

test('what people ignored at the service is extra; what is malformed is in the quarantine', async () => {
  const given = await aRig()
  const feed = aFeed({ rescan: undefined })
  const [kept, hidden] = given.sandbox.addEvents(2, { severity: 'low' })
  given.sandbox.addRawItem(1042, { metadata: { uid: {} } }, { createdAtMs: Date.now() })
  await given.toEnd(feed)
  await pastThisMillisecond(tests.redis) // what came within it may have come meanwhile
  given.sandbox.changeEvent(hidden!.uid, { ignoredAtMs: Date.now() })
  const result = await audited(given, feed)
  expect(result.extra.map(({ uid }) => uid)).toEqual([hidden!.uid])
  expect(result).toMatchObject({ missing: [], malformed: [], shown: 2 })
  expect((await given.records()).has(kept!.uid)).toBe(true)
  await given.ledger.redis.del(given.ledger.key('quarantine'))
  for (const key of await given.ledger.redis.keys(`${given.ledger.key('marks')}*`)) {
    await given.ledger.redis.del(key)
  }
  expect(await audited(given, feed)).toMatchObject({ malformed: [] }) // it may have come just now
  expect(await audited(given, feed)).toMatchObject({ malformed: [] })
  await caughtUp(given, feed)
  const again = await audited(given, feed)
  expect(again.malformed).toHaveLength(1)
  await repair(repairOptions(given), feed, { missing: [], malformed: again.malformed })
  expect(await audited(given, feed)).toMatchObject({ malformed: [] })
})

test('what the daemon takes in while it reads is no finding', async () => {
  const given = await aRig()
  const feed = aFeed({ rescan: undefined })
  given.sandbox.addEvents(12, { severity: 'low' })
  await given.toEnd(feed)
  const [added] = given.sandbox.addEvents(1, {
    severity: 'low',
    createdAtMs: Date.now() - 60_000,
    matchedAtMs: Date.now() - 365 * dayMs,
  })
  const state = await openFeed(given.ledger, feed.name, feed.startMs)
  const window = auditWindow(given.ledger, feed, state, dayMs) as AuditWindow
  const steps = auditFeed(partsOf(given), feed, window, { kind: 'command', signal: stopping })
  await steps.next()
  await steps.next()
  const found = await finish(steps)
  expect(found.missing.map(({ uid }) => uid)).toEqual([added!.uid])

  const again = auditFeed(partsOf(given), feed, window, { kind: 'command', signal: stopping })
  await again.next()
  const { scan: walk, ...rest } = await openFeed(given.ledger, feed.name, feed.startMs)
  expect(walk).toBeDefined()
  await repair(repairOptions(given), feed, { missing: found.missing, malformed: [] })
  expect(rest.repairSequence).toBe(0)
  expect((await finish(again)).missing).toEqual([])
  await expectConservation(given.ledger)
})

async function finish(steps: AsyncGenerator<number, AuditResult>): Promise<AuditResult> {
  for (;;) {
    const step = await steps.next()
    if (step.done) return step.value
  }
}

test('what a changed filter lets through is compared once it was read, and from then on', async () => {
  const given = await aRig()
  const atMs = Date.now() - 5 * 3_600_000
  given.sandbox.addEvents(5, { severity: 'low', createdAtMs: atMs, matchedAtMs: atMs })
  const before = aFeed({ rescan: undefined, filters: { severity: ['critical'] } })
  await given.toEnd(before)
  given.sandbox.addEvents(1, { severity: 'critical' })
  await given.toEnd(before)
  const after = aFeed({ rescan: undefined, filters: {} })
  const state = await openFeed(given.ledger, after.name, after.startMs)
  expect(auditWindow(given.ledger, after, state, dayMs)).toBe('not_read')
  await given.toEnd(after) // an hour back, no further
  expect(await audited(given, after)).toMatchObject({ missing: [], shown: 1 })
})

test('a late arrival without a match time is missing only once a rescan had its chance', async () => {
  const given = await aRig()
  const feed = aFeed({ rescan: { everyMs: 1, backMs: 7 * dayMs } })
  const createdAtMs = Date.now() - 3_600_000
  given.sandbox.addEvents(3, { severity: 'low', createdAtMs, matchedAtMs: createdAtMs })
  await given.toEnd(feed)
  await given.toEnd(feed, 'rescan')
  const late = { severity: 'low', createdAtMs: createdAtMs - 1, matchedAtMs: null }
  const [arrived] = given.sandbox.addEvents(1, late)
  const first = await audited(given, feed)
  expect(first).toMatchObject({ missing: [], awaited: [{ uid: arrived!.uid }] })
  const rescanned = given.ledger.key('feed', feed.name)
  const ended = { fingerprint: 'any', begunMs: Date.now() + 1 }
  await tests.redis.hset(rescanned, 'whole_completed_walk', JSON.stringify(ended))
  expect((await audited(given, feed)).missing).toMatchObject([{ uid: arrived!.uid }])
})

test('an audit keeps when an earlier one saw an event first: a rescan between the two proves that it is missing', async () => {
  const given = await aRig()
  const feed = aFeed({ rescan: { everyMs: 1, backMs: 7 * dayMs } })
  const createdAtMs = Date.now() - 3_600_000
  given.sandbox.addEvents(3, { severity: 'low', createdAtMs, matchedAtMs: createdAtMs })
  await given.toEnd(feed)
  await given.toEnd(feed, 'rescan')
  const late = { severity: 'low', createdAtMs: createdAtMs - 1, matchedAtMs: null }
  const [arrived] = given.sandbox.addEvents(1, late)
  const auditAt = async (aheadMs: number): Promise<AuditResult> => {
    const state = await openFeed(given.ledger, feed.name, feed.startMs)
    const window = auditWindow(given.ledger, feed, state, dayMs) as AuditWindow
    const clock = { ...systemClock, now: () => Date.now() + aheadMs }
    const turn = { kind: 'command', signal: stopping } as const
    return finish(auditFeed({ ...partsOf(given), clock }, feed, window, turn))
  }
  await auditAt(0)
  expect((await auditAt(120_000)).awaited).toMatchObject([{ uid: arrived!.uid }])
  const ended = { fingerprint: 'any', begunMs: Date.now() + 60_000 }
  const place = given.ledger.key('feed', feed.name)
  await tests.redis.hset(place, 'whole_completed_walk', JSON.stringify(ended))
  expect((await auditAt(180_000)).missing).toMatchObject([{ uid: arrived!.uid }])
})

test('an event of two feeds whose record is gone is taken in again for both', async () => {
  const given = await aRig()
  const feeds = ['one', 'two'].map((name) => aFeed({ name, rescan: undefined }))
  given.sandbox.addEvents(3, { severity: 'low' })
  for (const feed of feeds) await given.toEnd(feed)
  const [uid] = [...(await given.records()).keys()]
  await remove(given, feeds[0]!, uid!, { markStays: true })
  for (const feed of feeds) {
    const result = await audited(given, feed)
    expect(result.missing).toMatchObject([{ uid, why: 'record_gone' }])
    expect(await repair(repairOptions(given), feed, result)).toEqual([])
  }
  const record = (await given.records()).get(uid!)
  expect(record?.sightings.map(({ feed }) => feed)).toEqual(['one', 'two'])
  expect(record?.items).toHaveLength(1)
})

test('a window reaches back through the last rescan, running or not, and over no gap', async () => {
  const given = await aRig()
  const feed = aFeed({ rescan: { everyMs: 1, backMs: 7 * dayMs } })
  given.sandbox.addEvents(2)
  await given.toEnd(feed)
  const read = await openFeed(given.ledger, feed.name, feed.startMs)
  const { scan: walk, nowMs, whole } = read
  const tail = { ...walk!, readsFromMs: nowMs - 3_600_000 }
  const fromMs = nowMs - 20 * 3_600_000
  const windowWith = (toMs: number, fingerprint = tail.fingerprint): number => {
    const lastEnded = { fingerprint, begunMs: 1, fromMs, toMs }
    const state = { ...read, scan: tail, whole: { ...whole, isDone: false, lastEnded } }
    return (auditWindow(given.ledger, feed, state, dayMs) as AuditWindow).fromMs
  }
  expect(windowWith(nowMs)).toBe(fromMs)
  expect(windowWith(nowMs - 2 * 3_600_000)).toBe(tail.readsFromMs)
  expect(windowWith(nowMs, 'of other filters')).toBe(tail.readsFromMs)
  const short = { retention: given.ledger.retention, horizonMs: 60_000 }
  const window = auditWindow(short, feed, read, dayMs) as AuditWindow
  expect(window.fromMs).toBe(nowMs - 60_000)
  const trimmed = { ...given.ledger, trimmedUntilMs: nowMs - 30_000 }
  const rest = auditWindow(trimmed, feed, read, dayMs) as AuditWindow
  expect(rest.fromMs).toBe(nowMs - 30_000) // what is older may have made room
})

test('pages that come round again end the audit with an error that names the feed', async () => {
  const given = await aRig()
  const feed = aFeed({ rescan: undefined })
  someEvents(given)
  await given.toEnd(feed)
  const state = await openFeed(given.ledger, feed.name, feed.startMs)
  const window = auditWindow(given.ledger, feed, state, dayMs) as AuditWindow
  let asked = 0
  const round: UpstreamClient = {
    ...given.replica.client,
    call: callBy(() =>
      Promise.resolve({ page: { items: [], next: `c${(asked += 1) % 7}` }, requestedAtMs: 1 }),
    ),
  }
  const parts = { ...partsOf(given), client: round }
  const steps = auditFeed(parts, feed, window, { kind: 'command', signal: stopping })
  await expect(finish(steps)).rejects.toThrow(/feed brand: the pages .* come round again/)
  expect(asked).toBeLessThan(20)
})

test('a page that is too large to be read is compared in small pages', async () => {
  const front = await startHttpServer()
  onTestFinished(() => front.stop())
  const sizes: number[] = []
  rig = await startFeedRig({
    tests,
    before: (url) => {
      front.script(async ({ method, path, headers: { authorization = '' }, body }) => {
        const { size = 0, from } = JSON.parse(body || '{}') as { size?: number; from?: string }
        if (size > 0) sizes.push(size)
        const items = Array.from({ length: 101 }, () => ({}))
        if (size > 1 && from !== undefined) return { status: 200, body: JSON.stringify({ items }) }
        const headers = { authorization, 'content-type': 'application/json' }
        const answer = await fetch(url + path, { method, headers, ...(body && { body }) })
        return { status: answer.status, body: await answer.text() }
      })
      return front.url
    },
  })
  const feed = aFeed()
  rig.sandbox.addEvents(25)
  await rig.toEnd(feed)
  sizes.length = 0
  expect(await audited(rig, feed)).toMatchObject({ shown: 25, accounted: 25, missing: [] })
  expect(sizes.slice(0, 3)).toEqual([10, 10, 1])
})
