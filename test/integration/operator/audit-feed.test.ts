/** What an audit names, by feed type, over HTTP against the sandbox and a real ledger. */
import { callBy } from '../../support/call.ts'
import { afterEach, expect, onTestFinished, test } from 'vitest'
import {
  auditFeed,
  type AuditOptions,
  type AuditResult,
  auditWindow,
} from '../../../src/operator/audit/audit-feed.ts'
import type { AuditWindow } from '../../../src/operator/audit/audit-pages.ts'
import type { PolledFeed } from '../../../src/feeds/types/polled-feed.ts'
import { systemClock } from '../../../src/lib/clock.ts'
import type { SandboxOptions } from '../../../src/sandbox/options.ts'
import { openFeed } from '../../../src/store/feed-state.ts'
import { discardItem } from '../../../src/store/pending-items.ts'
import type { UpstreamClient } from '../../../src/upstream/client.ts'
import { type FeedRig, startFeedRig } from '../../support/feed-rig.ts'
import { aCredentialFeed, aCredentialSearch, aFeed, anEventSearch } from '../../support/feeds.ts'
import { startHttpServer } from '../../support/http-server.ts'
import { pastThisMillisecond, redisForTests, scanPendingItems } from '../../support/ledger.ts'

const tests = redisForTests()
const dayMs = 86_400_000

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

/** An audit of the last day, by a client or of a ledger as given. */
async function begin(
  { replica, ledger }: FeedRig,
  feed: PolledFeed,
  options: Partial<AuditOptions> = {},
): Promise<AsyncGenerator<number, AuditResult>> {
  const state = await openFeed(ledger, feed.name, feed.startMs)
  const window = auditWindow(ledger, feed, state, dayMs)
  if (typeof window === 'string') throw new Error(`there is nothing to compare: ${window}`)
  const given: AuditOptions = {
    client: replica.client,
    ledger,
    clock: systemClock,
    signal: new AbortController().signal,
    isReserveReached: () => Promise.resolve(false),
    ...options,
  }
  return auditFeed(given, feed, window)
}

async function finish(steps: AsyncGenerator<number, AuditResult>): Promise<AuditResult> {
  for (;;) {
    const step = await steps.next()
    if (step.done) return step.value
  }
}

async function audited(given: FeedRig, feed: PolledFeed): Promise<AuditResult> {
  return finish(await begin(given, feed))
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
  const { m } = digests.ofEvent(uid).seen(name)
  for (const key of await redis.keys(`${ledger.key('marks')}*`)) await redis.srem(key, m)
}

const kinds: [PolledFeed, (given: FeedRig) => string[]][] = [
  [aFeed({ rescan: undefined }), someEvents],
  [anEventSearch({ rescan: undefined, query: { type: 'keyword', keyword: 'acme' } }), someEvents],
  [aCredentialFeed({ rescan: undefined }), someCredentials],
  [aCredentialSearch({ rescan: undefined }), someCredentials],
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

test.each(kinds)('an audit of a feed of type $type names what was removed', async (feed, add) => {
  const given = await aRig({ emptyPages: 0.2, shortPages: 0.2, endMode: 'echo' })
  const uids = add(given)
  await given.toEnd(feed)
  const clean = { shown: uids.length, accounted: uids.length, malformed: 0 }
  expect(await audited(given, feed)).toMatchObject({
    ...clean,
    missing: [],
    awaited: 0,
  })
  await remove(given, feed, uids[3]!)
  await remove(given, feed, uids[7]!, { markStays: true })
  const { missing, accounted } = await audited(given, feed)
  expect(new Map(missing.map(({ uid, why }) => [uid, why]))).toEqual(
    new Map([
      [uids[3], 'never_taken_in'],
      [uids[7], 'record_gone'],
    ]),
  )
  expect(accounted).toBe(uids.length - 2)
})

test('an audit does not call missing what retention drops meanwhile', async () => {
  const given = await aRig()
  const feed = aFeed({ rescan: undefined })
  const uids = someEvents(given)
  await given.toEnd(feed)
  const audit = await begin(given, feed)
  const ids = uids.slice(0, 9).map((uid) => given.ledger.fingerprints.recordId(uid))
  for await (const { ref, record } of scanPendingItems(given.ledger)) {
    if (ids.includes(record.recordId)) await discardItem(given.ledger, ref, 'ann')
  }
  await given.ledger.run('trim-records', dayMs, 2 ** 40)
  expect((await given.records()).size).toBe(uids.length - 9)
  expect(await finish(audit)).toMatchObject({ shown: uids.length, missing: [] })
})

test('what the next rescan will find is awaited, and what it should have found is missing', async () => {
  const given = await aRig()
  const feed = aFeed({ rescan: { everyMs: 1, backMs: 7 * dayMs } })
  const atMs = Date.now() - 3_600_000
  given.sandbox.addEvents(3, { severity: 'low', createdAtMs: atMs, matchedAtMs: atMs })
  await given.toEnd(feed)
  await given.toEnd(feed, 'rescan')
  given.sandbox.addEvents(1, { createdAtMs: atMs - 1, matchedAtMs: Date.now() + 1 })
  const [lost] = given.sandbox.addEvents(1, { createdAtMs: atMs - 2, matchedAtMs: atMs })
  const result = await audited(given, feed)
  expect(result.awaited).toBe(1)
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
      missing: verdict === 'missing' ? [{ uid: late!.uid }] : [],
      awaited: verdict === 'missing' ? 0 : 1,
    })
  },
)

test('an event without a match time is awaited until a rescan begins after its creation', async () => {
  const given = await aRig()
  const feed = aFeed({ rescan: { everyMs: 1, backMs: 7 * dayMs } })
  const createdAtMs = Date.now() - 3_600_000
  given.sandbox.addEvents(3, { severity: 'low', createdAtMs, matchedAtMs: createdAtMs })
  await given.toEnd(feed)
  const rescanned = async (begunMs: number): Promise<void> => {
    const ended = JSON.stringify({ fingerprint: 'any', begunMs })
    await tests.redis.hset(given.ledger.key('feed', feed.name), 'whole_completed_walk', ended)
  }
  const late = { severity: 'low', createdAtMs: createdAtMs - 1, matchedAtMs: null }
  const [arrived] = given.sandbox.addEvents(1, late)
  await rescanned(late.createdAtMs - 1)
  expect(await audited(given, feed)).toMatchObject({
    missing: [],
    awaited: 1,
  })
  await rescanned(late.createdAtMs)
  expect(await audited(given, feed)).toMatchObject({
    missing: [{ uid: arrived!.uid }],
    awaited: 0,
  })
})

test('an audit says nothing of what people ignored at the service, and counts what is malformed', async () => {
  const given = await aRig()
  const feed = aFeed({ rescan: undefined })
  const [, hidden] = given.sandbox.addEvents(2, { severity: 'low' })
  given.sandbox.addRawItem(1042, { metadata: { uid: {} } }, { createdAtMs: Date.now() })
  await given.toEnd(feed)
  await pastThisMillisecond(tests.redis) // what came within it may have come meanwhile
  given.sandbox.changeEvent(hidden!.uid, { ignoredAtMs: Date.now() })
  const result = await audited(given, feed)
  expect(result).toMatchObject({ missing: [], malformed: 1, shown: 1 })
})

test('an audit does not call missing what the daemon takes in meanwhile', async () => {
  const given = await aRig()
  const feed = aFeed({ rescan: undefined })
  given.sandbox.addEvents(12, { severity: 'low' })
  await given.toEnd(feed)
  const [uid] = [...(await given.records()).keys()]
  const record = given.ledger.key('rec', given.ledger.fingerprints.recordId(uid!))
  await tests.redis.rename(record, `${record}-away`)
  const steps = await begin(given, feed)
  for (let page = 0; page < 2; page += 1) await steps.next()
  await tests.redis.rename(`${record}-away`, record)
  expect(await finish(steps)).toMatchObject({ shown: 12, missing: [] })
})

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
  let asked = 0
  const round: UpstreamClient = {
    ...given.replica.client,
    call: callBy(() =>
      Promise.resolve({ page: { items: [], next: `c${(asked += 1) % 7}` }, requestedAtMs: 1 }),
    ),
  }
  const steps = await begin(given, feed, { client: round })
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
