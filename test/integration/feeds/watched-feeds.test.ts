/** Feeds of what a tenant watches for as a whole, or by one identifier: events, and credentials. */
import { afterEach, describe, expect, test } from 'vitest'
import type { PolledFeed } from '../../../src/feed-types/feed-type.ts'
import type { SandboxOptions } from '../../../src/sandbox/options.ts'
import { openFeed } from '../../../src/store/feed-state.ts'
import { createLogger, type Logger } from '../../../src/lib/logger.ts'
import { aFeed, anIdentifierFeed, aTenantCredentialFeed, aTenantFeed } from '../../support/feeds.ts'
import { scraped, startFeedRig, type FeedRig } from '../../support/feed-rig.ts'
import { expectConservation, redisForTests } from '../../support/ledger.ts'

const tests = redisForTests()
const hourMs = 3_600_000
const dayMs = 24 * hourMs
const startMs = 4 * dayMs
const rescan = { everyMs: 1, backMs: 7 * dayMs }
const tenant = aTenantFeed({ startMs, rescan })
const identifier = anIdentifierFeed({ startMs, rescan, identifier: 77 })
const credentials = aTenantCredentialFeed({ startMs, rescan: { everyMs: 1, backMs: 0 } })

let rig: FeedRig

async function begin(sandbox: SandboxOptions = {}, logger?: Logger): Promise<FeedRig> {
  rig = await startFeedRig({ tests, sandbox, ...(logger && { logger }) })
  return rig
}

afterEach(() => rig.stop())

async function known(): Promise<string[]> {
  return [...(await rig.records()).keys()].toSorted()
}

function uidsOf(events: readonly { uid: string }[]): string[] {
  return events.map(({ uid }) => uid).toSorted()
}

/** Those that the feed is to show, of 45. */
function addEvents(feed: PolledFeed, count = 45): string[] {
  const [one, other] = [1042, 1043].map((groupId) =>
    rig.sandbox.addEvents(count, { groupIds: [groupId] }),
  )
  if (feed.type === 'tenant_events') return uidsOf([...one!, ...other!])
  return uidsOf(
    [...one!, ...other!].filter(({ identifiers }) => identifiers.some(({ id }) => id === 77)),
  )
}

describe.each([
  ['tenant_events', tenant],
  ['identifier_events', identifier],
])('a feed of type %s', (_type, feed) => {
  test('takes in every event of its scope once, over empty pages, late ones with the next rescan', async () => {
    await begin({ endMode: 'empty', shortPages: 0.3, emptyPages: 0.3 })
    const first = addEvents(feed)
    expect(first.length).toBeGreaterThan(10)
    await rig.toEnd(feed)
    expect(await known()).toEqual(first)
    const [late] = rig.sandbox.addEvents(1, {
      createdAtMs: Date.now() - 2 * dayMs,
      groupIds: [1042],
      identifiers: [{ id: 77, name: 'acme.com' }],
    })
    await rig.toEnd(feed)
    await rig.toEnd(feed, 'rescan')
    expect(await known()).toEqual([...first, late!.uid].toSorted())
    await expectConservation(rig.ledger)
    expect(rig.sandbox.violations().changedScans).toBe(0)
  })

  test('goes on at its cursor where it broke off, and with overlap where the cursor is refused', async () => {
    await begin()
    const all = addEvents(feed)
    const strike = { on: '/firework/*', effect: 'status', withCursor: true, times: 1 } as const
    rig.sandbox.faults.add({ ...strike, status: 503 })
    expect(await rig.turn(feed)).toMatchObject({ status: 'failed', reason: 'unavailable' })
    const { scan: walk } = await openFeed(rig.ledger, feed.name, 0)
    rig.asked()
    rig.sandbox.faults.add({ ...strike, status: 400 })
    await rig.toEnd(feed)
    const cursors = rig.asked().map(({ body }) => (body as { from?: string }).from)
    expect(cursors.slice(0, 2)).toEqual([walk!.cursor, undefined])
    expect(await known()).toEqual(all)
  })

  test('asks for no more than its filters say', async () => {
    await begin()
    rig.sandbox.addEvents(30, { groupIds: [1042], identifiers: [{ id: 77, name: 'acme.com' }] })
    const worst = { ...feed, filters: { severity: ['critical' as const] } }
    await rig.toEnd(worst)
    const wanted = rig.sandbox
      .events()
      .filter(({ severity, override }) => (override ?? severity) === 'critical')
    expect(await known()).toEqual(uidsOf(wanted))
  })

  test.each([
    [403, /needs access to/],
    [404, /no identifier 77|no the events|too old/],
    [405, /too old/],
  ])(
    'that the service refuses by %i stops, says why once, and asks again after a day',
    async (status, why) => {
      const logs: string[] = []
      const destination = { write: (line: string) => void logs.push(line) }
      await begin({}, createLogger({ level: 'warn', destination }))
      const fault = rig.sandbox.faults.add({
        on: '/firework/v4/events/*',
        effect: 'status',
        status,
      })
      expect(await rig.turn(feed)).toEqual({ status: 'refused' })
      expect(rig.asked()).toHaveLength(1)
      expect(await rig.turn(feed)).toEqual({ status: 'refused' })
      expect(await rig.turn(feed, 'rescan')).toEqual({ status: 'refused' })
      expect(rig.asked()).toEqual([])
      const { refused, trouble } = await openFeed(rig.ledger, feed.name, 0)
      expect(refused?.reason).toMatch(why)
      expect(trouble).toMatchObject({ count: 1, answer: expect.stringContaining(`(${status})`) })
      expect(trouble!.nextTryMs! - trouble!.lastMs).toBe(status === 403 ? dayMs / 24 : dayMs)
      expect(logs.filter((line) => line.includes('the feed stops'))).toHaveLength(1)
      const failed = 'feed_polls_failed_total{feed="brand",reason='
      const reason = status === 403 ? 'auth' : 'rejected'
      expect(await scraped(rig.metrics, `${failed}"${reason}"}`)).toBe(1)

      fault()
      const all = addEvents(feed, 3)
      await rig.forgetCapabilities((status === 403 ? dayMs / 24 : dayMs) - 60_000)
      expect(await rig.turn(feed)).toEqual({ status: 'refused' })
      await rig.forgetCapabilities(60_000)
      await rig.toEnd(feed)
      expect(await known()).toEqual(all)
      expect((await openFeed(rig.ledger, feed.name, 0)).refused).toBeUndefined()

      // what had been answered asks again sooner
      rig.sandbox.faults.add({ on: '/firework/v4/events/*', effect: 'status', status, times: 1 })
      expect(await rig.turn(feed)).toEqual({ status: 'refused' })
      await rig.forgetCapabilities(10 * 60_000)
      await rig.toEnd(feed)
    },
  )
})

test('a feed that had been answered asks again after ten minutes: a gateway may have refused it', async () => {
  await begin()
  await rig.toEnd(tenant)
  rig.sandbox.faults.add({ on: '/firework/*', effect: 'status', status: 403, times: 1 })
  expect(await rig.turn(tenant)).toEqual({ status: 'refused' })
  await rig.forgetCapabilities(9 * 60_000)
  expect(await rig.turn(tenant)).toEqual({ status: 'refused' })
  await rig.forgetCapabilities(60_000)
  await rig.toEnd(tenant)
})

test('a second feed of what is refused says so itself, and does not stop in silence', async () => {
  await begin()
  const worst = { ...tenant, name: 'worst', filters: { severity: ['critical' as const] } }
  rig.sandbox.faults.add({ on: '/firework/v4/events/*', effect: 'status', status: 403 })
  expect(await rig.turn(tenant)).toEqual({ status: 'refused' })
  expect(await rig.turn(worst)).toEqual({ status: 'refused' })
  expect((await openFeed(rig.ledger, 'worst', 0)).refused?.reason).toMatch(/needs access to/)
  rig.asked()
  expect(await rig.turn(worst)).toEqual({ status: 'refused' })
  expect(rig.asked()).toEqual([])
})

test('a refusal says what is refused now, and ends when a feed of another type takes the name', async () => {
  await begin()
  const reason = async (): Promise<string | undefined> =>
    (await openFeed(rig.ledger, 'brand', 0)).refused?.reason
  const mend = rig.sandbox.faults.add({
    on: '/firework/v4/events/*',
    effect: 'status',
    status: 404,
  })
  const [first, second] = [77, 78].map((id) => ({ ...identifier, name: 'brand', identifier: id }))
  expect(await rig.turn(first!)).toEqual({ status: 'refused' })
  expect(await reason()).toContain('identifiers/77/')
  expect(await rig.turn(second!)).toEqual({ status: 'refused' })
  expect(await reason()).toContain('identifiers/78/')
  mend()
  await rig.toEnd(aFeed({ name: 'brand', startMs, rescan }))
  expect(await reason()).toBeUndefined()
})

test('a refused key refuses no feed: it asks again as soon as its account may', async () => {
  await begin()
  const all = uidsOf(rig.sandbox.addEvents(3, { groupIds: [1042] }))
  rig.sandbox.faults.add({ on: '/tokens/generate', effect: 'status', status: 403, times: 1 })
  expect(await rig.turn(tenant)).toMatchObject({ status: 'failed', reason: 'auth' })
  expect((await openFeed(rig.ledger, tenant.name, 0)).refused).toBeUndefined()
  await tests.redis.del(await tests.redis.keys('*account-pause*'))
  await rig.toEnd(tenant)
  expect(await known()).toEqual(all)
})

test('a feed that was refused asks again at once where another, or a command, has been answered', async () => {
  await begin()
  const mend = rig.sandbox.faults.add({
    on: '/firework/v4/events/*',
    effect: 'status',
    status: 403,
  })
  expect(await rig.turn(tenant)).toEqual({ status: 'refused' })
  mend()
  expect(await rig.turn(tenant)).toEqual({ status: 'refused' })
  await rig.replica.client.capabilities.allow('events/tenant')
  await rig.toEnd(tenant)
})

test.each([
  [403, 3_600_000],
  [404, dayMs],
])('what was refused by a %i is asked again after %i ms', async (status, ttlMs) => {
  await begin()
  const others = await tests.redis.keys('*:capability:*')
  rig.sandbox.faults.add({ on: '/firework/v4/events/*', effect: 'status', status })
  expect(await rig.turn(tenant)).toEqual({ status: 'refused' })
  const names = await tests.redis.keys('*:capability:*')
  const [own = ''] = names.filter((name) => !others.includes(name))
  const leftMs = await tests.redis.pttl(own)
  expect(leftMs).toBeGreaterThan(ttlMs * 0.9)
  expect(leftMs).toBeLessThanOrEqual(ttlMs)
  await tests.redis.del(own) // as its end does
  rig.asked()
  await rig.turn(tenant)
  expect(rig.asked()).toHaveLength(1)
})

test('one event that a group and its tenant show reaches a destination once', async () => {
  await begin()
  const group = aFeed({ name: 'group', startMs, rescan })
  const own = uidsOf(rig.sandbox.addEvents(12, { groupIds: [1042] }))
  const others = uidsOf(rig.sandbox.addEvents(3, { groupIds: [1043] }))
  await rig.toEnd(group)
  await rig.toEnd(tenant)
  const records = await rig.records()
  expect([...records.keys()].toSorted()).toEqual([...own, ...others].toSorted())
  for (const uid of own) {
    expect(records.get(uid)!.sightings.map(({ feed }) => feed)).toEqual(['group', 'brand'])
    expect(records.get(uid)!.items).toHaveLength(1)
  }
  const { sinks } = await expectConservation(rig.ledger)
  expect(sinks['soc']?.created).toBe(15)
})

describe('a feed of type tenant_credentials', () => {
  /** So many more, one after the other, the last one now, by turns of two identifiers. */
  function addInTurn(count: number): string[] {
    const nowMs = Date.now()
    const wanted = Array.from({ length: count }, (_, i) => ({
      importedAtMs: nowMs - count + i + 1,
      identifierIds: [i % 2 === 0 ? 77 : 78],
    }))
    return rig.sandbox.addCredentials(wanted).map(({ id }) => `credential/${id}`)
  }

  function cursors(): unknown[] {
    return rig.asked().map(({ query }) => query['from'] ?? null)
  }

  test('takes in the credentials of all identifiers once, and resumes what proved to be ascending', async () => {
    await begin({ endMode: 'empty', emptyPages: 0.2 })
    const first = addInTurn(70)
    await rig.toEnd(credentials)
    expect(await known()).toEqual(first.toSorted())
    cursors()
    const more = addInTurn(5)
    await rig.toEnd(credentials)
    expect(cursors()).not.toContain(null)
    expect(await known()).toEqual([...first, ...more].toSorted())
    const { sinks } = await expectConservation(rig.ledger)
    expect(sinks['soc']?.created).toBe(75)
    expect(rig.sandbox.violations().changedScans).toBe(0)
  })

  test('finds by a rescan what a new identifier brings in from before', async () => {
    await begin()
    addInTurn(45)
    await rig.toEnd(credentials)
    rig.sandbox.addCredentials(2, { importedAtMs: Date.now() - 2 * dayMs })
    await rig.toEnd(credentials)
    expect(await known()).toHaveLength(45)
    await rig.toEnd(credentials, 'rescan')
    expect(await known()).toHaveLength(47)
  })

  test('begins at the start where the cursor is refused, and sends nothing again', async () => {
    await begin()
    addInTurn(45)
    await rig.toEnd(credentials)
    rig.sandbox.expireCursors()
    const more = addInTurn(3)
    cursors()
    await rig.toEnd(credentials)
    expect(cursors().slice(0, 2)).toEqual([expect.any(String), null])
    expect(await known()).toEqual(expect.arrayContaining(more))
    const { sinks } = await expectConservation(rig.ledger)
    expect(sinks['soc']?.created).toBe(48)
  })

  test('stops where the server does not have it', async () => {
    await begin()
    rig.sandbox.faults.add({ on: '/firework/v2/me/*', effect: 'status', status: 404 })
    expect(await rig.turn(credentials)).toEqual({ status: 'refused' })
    const { refused } = await openFeed(rig.ledger, credentials.name, 0)
    expect(refused?.reason).toContain('GET /firework/v2/me/feed/credentials')
    const { capabilities } = rig.replica.client // commands ask it, too
    expect(await capabilities.isRefused('tenant_credentials')).toBe(true)
  })
})
