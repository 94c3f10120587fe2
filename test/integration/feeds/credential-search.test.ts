import { afterEach, describe, expect, test } from 'vitest'
import type { SandboxOptions } from '../../../src/sandbox/options.ts'
import { openFeed } from '../../../src/store/feed-state.ts'
import { aCredentialSearch } from '../../support/feeds.ts'
import { scraped, startFeedRig, type FeedRig } from '../../support/feed-rig.ts'
import { expectConservation, redisForTests } from '../../support/ledger.ts'
import { until } from '../../support/rehearsal.ts'

const tests = redisForTests()
const hourMs = 3_600_000
const dayMs = 24 * hourMs
const feed = aCredentialSearch({ startMs: 4 * dayMs, rescan: { everyMs: 1, backMs: 7 * dayMs } })

let rig: FeedRig

/** The key may not use the search without a quota. */
async function begin(sandbox: SandboxOptions = {}): Promise<FeedRig> {
  rig = await startFeedRig({ tests, sandbox })
  rig.sandbox.faults.add({ on: '/astp/*', effect: 'status', status: 403 })
  return rig
}

afterEach(() => rig.stop())

function add(count: number, importedAtMs = Date.now()): void {
  rig.sandbox.addCredentials(count, { importedAtMs, domain: 'example.com' })
}

function sizes(): number[] {
  return searches().map(({ body }) => (body as { size: number }).size)
}

/** Global searches since the last look. */
function searches() {
  return rig.asked().filter(({ path }) => path.startsWith('/firework/'))
}

async function known(): Promise<number> {
  return (await rig.records()).size
}

test('pages for which the gateway gives up are halved until they come, and stay small for a day', async () => {
  await begin({ credentialSizeLimit: 30 })
  add(60)
  await rig.toEnd(feed)
  expect(sizes()).toEqual([100, 50, 25, 25, 25])
  expect((await openFeed(rig.ledger, 'leaks', 0)).scan?.reason).toBe('page_size_changed')
  const resets = 'feed_cursor_resets_total{feed="leaks",reason="page_size_changed"}'
  expect(await scraped(rig.metrics, resets)).toBe(1)
  add(3)
  await rig.toEnd(feed)
  expect(sizes()).toEqual([25, 25, 25]) // the hour before is read again
  expect(await known()).toBe(63)
  expect(rig.sandbox.violations().changedScans).toBe(0)
  await expectConservation(rig.ledger)
})

test('a rescan asks for no more at once than the gateway bore, and still knows what is late', async () => {
  await begin({ credentialSizeLimit: 30 })
  add(40)
  await rig.toEnd(feed)
  add(4, Date.now() - 2 * dayMs)
  sizes()
  await rig.toEnd(feed, 'rescan')
  expect(new Set(sizes())).toEqual(new Set([25]))
  const { feeds } = await expectConservation(rig.ledger)
  expect(feeds['leaks']).toMatchObject({ new: 44, late: 4 })
})

test('a gateway that gives up on the smallest page too is a failure that moves nothing', async () => {
  await begin({ credentialSizeLimit: 5 })
  add(3)
  expect(await rig.turn(feed)).toMatchObject({ status: 'failed', reason: 'unavailable' })
  expect(sizes()).toEqual([100, 50, 25, 10])
  expect((await openFeed(rig.ledger, 'leaks', 0)).scan).toBeUndefined()
})

test('older ones than the start are never sent', async () => {
  await begin()
  add(30, Date.now() - 10 * dayMs)
  add(20)
  await rig.toEnd(feed)
  await rig.toEnd(feed, 'rescan')
  expect(await known()).toBe(20)
  const { feeds, sinks } = await expectConservation(rig.ledger)
  expect(feeds['leaks']).toMatchObject({ new: 20, baseline: 0 })
  expect(sinks['soc']?.created).toBe(20)
})

/** One credential of this domain, imported just now. */
function leak(domain: string, importedAtMs = Date.now()): string {
  const identityName = `acme-admin@${domain}`
  const [made] = rig.sandbox.addCredentials(1, { importedAtMs, domain, identityName })
  return `credential/${made!.id}`
}

const keyword = { ...feed, query: { type: 'keyword', keyword: 'acme' } as const }

test('a new credential is seen in the next poll, whatever its domain: the search goes by domains, not by time', async () => {
  await begin({ endMode: 'empty' })
  const seen: string[] = []
  for (const domain of ['m.org', 'zebra.net', 'acme.com', 'acme.com', 'b.museum', 'a.aero']) {
    seen.push(leak(domain))
    await rig.toEnd(keyword)
    expect([...(await rig.records()).keys()].toSorted()).toEqual(seen.toSorted())
  }
  expect(rig.sandbox.violations().changedScans).toBe(0)
  const { sinks } = await expectConservation(rig.ledger)
  expect(sinks['soc']?.created).toBe(seen.length)
})

test('a poll reads from an hour before the poll before it, and a cursor is not kept beyond its window', async () => {
  await begin({ endMode: 'empty' })
  for (let i = 0; i < 120; i += 1) leak('acme.com', Date.now() - 2 * dayMs)
  await rig.toEnd(keyword)
  const first = searches().map(({ body }) => body as { from?: string })
  expect(first.map(({ from }) => from === undefined)).toEqual([true, false, false])
  const { scan: walk } = await openFeed(rig.ledger, 'leaks', 0)
  leak('acme.com', walk!.startedAtMs - hourMs + 1_000)
  leak('b.com', walk!.startedAtMs - 2 * hourMs) // for the rescan
  await rig.toEnd(keyword)
  const [poll, ...more] = searches().map(({ body }) => body as Record<string, unknown>)
  const { gte, lte } = (poll!['filters'] as { imported_at: Record<string, string> }).imported_at
  expect(Date.parse(gte!)).toBe(walk!.startedAtMs - hourMs)
  expect(Date.parse(lte!)).toBeGreaterThan(Date.now())
  expect(poll).not.toHaveProperty('from')
  expect(more).toHaveLength(1) // the empty page behind the last item
  expect(await known()).toBe(121)
  await rig.toEnd(keyword, 'rescan')
  expect(await known()).toBe(122)
})

test('a window that broke off goes on at its cursor; one whose cursor is refused is read again from its start', async () => {
  const old = { ...keyword, startMs: 30 * dayMs }
  await begin()
  for (let i = 0; i < 150; i += 1) leak('m.com', Date.now() - 20 * dayMs)
  leak('z.com')
  const strike = { on: '/firework/*', effect: 'status', withCursor: true, times: 1 } as const
  rig.sandbox.faults.add({ ...strike, status: 503 })
  expect(await rig.turn(old)).toMatchObject({ status: 'failed' })
  rig.sandbox.expireCursors()
  rig.asked()
  await rig.toEnd(old)
  expect(searches().map(({ body }) => 'from' in (body as object))).toEqual([true, false, true])
  expect((await openFeed(rig.ledger, 'leaks', 0)).scan?.reason).toBe('cursor_refused')
  expect(await known()).toBe(151)
})

test('where the reserve is reached nothing is asked, and after a day one search asks again', async () => {
  await begin({ searchQuota: { prefix: 'X-Any-', searches: 3 } })
  const careful = { ...feed, quotaReserve: 2 }
  await rig.replica.client.capabilities.refuse('astp_credentials')
  add(5)
  await rig.toEnd(careful)
  await until('the quota was noted', async () => (await rig.quota())?.remaining === 2)
  add(5)
  rig.asked()
  expect(await rig.turn(careful)).toEqual({ status: 'quota' })
  expect(await rig.turn(careful, 'rescan')).toEqual({ status: 'quota' })
  expect(rig.asked()).toEqual([])
  expect(await rig.turn(feed)).toEqual({ status: 'caught_up' })

  add(5)
  await rig.setQuota({ remaining: 2, atMs: Date.now() - dayMs + 60_000 })
  expect(await rig.turn(careful)).toEqual({ status: 'quota' })
  await rig.setQuota({ remaining: 2, atMs: Date.now() - dayMs })
  await rig.toEnd(careful)
  expect(await known()).toBe(15)
})

describe('where the account has the search without a quota', () => {
  const quota = { prefix: 'X-Any-', searches: 3 }
  const careful = { ...feed, quotaReserve: 2 }
  const astpPath = '/astp/v2/credentials/_search'

  function paths(): string[] {
    return rig.asked().map(({ path }) => path)
  }

  test('it costs nothing, and is used although the reserve is reached', async () => {
    await begin({ searchQuota: quota })
    rig.sandbox.faults.clear()
    await rig.setQuota({ remaining: 2, atMs: Date.now() })
    add(150)
    await rig.toEnd(careful)
    expect(await known()).toBe(150)
    expect(paths()).toEqual(Array.from({ length: 2 }, () => astpPath))
    await rig.toEnd(careful)
    await rig.toEnd(careful, 'rescan')
    expect(paths().every((path) => path === astpPath)).toBe(true)
    expect(await rig.quota()).toMatchObject({ remaining: 2 })
  })

  test('a key without the permission is told apart once, and searches as before', async () => {
    await begin({ searchQuota: quota })
    add(5)
    await rig.toEnd(feed)
    await rig.toEnd(feed)
    expect(paths().filter((path) => path === astpPath)).toHaveLength(1)
    expect(await known()).toBe(5)
  })

  test('an answer that makes no sense counts as a refusal for a day', async () => {
    await begin()
    rig.sandbox.faults.clear()
    rig.sandbox.faults.add({ on: '/astp/*', effect: 'wrong-shape' })
    add(5)
    await rig.toEnd(feed)
    await rig.toEnd(feed)
    expect(paths().filter((path) => path === astpPath)).toHaveLength(1)
    expect(await known()).toBe(5)
  })

  test('a refusal is remembered for a day, and holds no credential back', async () => {
    const others = await tests.redis.keys('*capability*')
    await begin()
    rig.sandbox.faults.clear()
    rig.sandbox.faults.add({ on: '/astp/*', effect: 'status', status: 403, times: 1 })
    add(5)
    await rig.toEnd(feed)
    expect(await known()).toBe(5)
    const names = await tests.redis.keys('*capability*')
    const [own = ''] = names.filter((name) => !others.includes(name))
    expect(await tests.redis.pttl(own)).toBeLessThanOrEqual(dayMs)
  })

  test('a refused search takes nothing of the reserve', async () => {
    await begin({ searchQuota: quota })
    await rig.setQuota({ remaining: 2, atMs: Date.now() })
    add(5)
    expect((await rig.turn(careful)).status).toBe('failed')
    expect(await rig.turn(careful)).toEqual({ status: 'quota' })
    expect(paths()).toEqual([astpPath])
  })

  test('a cursor of one search never goes to the other: a window begins again where the permission is lost', async () => {
    await begin()
    rig.sandbox.faults.clear()
    add(250)
    const lost = { on: '/astp/*', effect: 'status', status: 403 } as const
    rig.sandbox.faults.add({ ...lost, withCursor: true, times: 1 })
    await rig.toEnd(feed)
    const asked = rig.asked().map(({ path, body }) => [path, 'from' in (body as object)])
    const globally = '/firework/v4/credentials/global/_search'
    expect(asked).toEqual([
      [astpPath, false],
      [astpPath, true],
      [globally, false],
      [globally, true],
      [globally, true],
    ])
    expect(await known()).toBe(250)
    const { sinks } = await expectConservation(rig.ledger)
    expect(sinks['soc']?.created).toBe(250)
  })

  test('a window that was begun by the global search is read on there, though the permission has come', async () => {
    await begin()
    add(250)
    const strike = { on: '/firework/*', effect: 'status', status: 503 } as const
    rig.sandbox.faults.add({ ...strike, withCursor: true, times: 1 })
    expect(await rig.turn(feed)).toMatchObject({ status: 'failed' })
    await rig.replica.client.capabilities.allow('astp_credentials')
    paths()
    await rig.toEnd(feed)
    expect(paths()).not.toContain(astpPath)
    expect(await known()).toBe(250)
  })
})
