/** Feeds of what a tenant watches for as a whole, or by one identifier: events, and credentials. */
import { afterEach, describe, expect, test } from 'vitest'
import type { PolledFeed } from '../../../src/feed-types/feed-type.ts'
import type { SandboxOptions } from '../../../src/sandbox/options.ts'
import { openFeed } from '../../../src/store/feed-state.ts'
import { aFeed, anIdentifierFeed, aTenantCredentialFeed, aTenantFeed } from '../../support/feeds.ts'
import { startFeedRig, type FeedRig } from '../../support/feed-rig.ts'
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

async function begin(sandbox: SandboxOptions = {}): Promise<FeedRig> {
  rig = await startFeedRig({ tests, sandbox })
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
  if (!('identifier' in feed) || feed.identifier === undefined) return uidsOf([...one!, ...other!])
  return uidsOf(
    [...one!, ...other!].filter(({ identifiers }) => identifiers.some(({ id }) => id === 77)),
  )
}

describe.each([
  ['a tenant', tenant],
  ['an identifier', identifier],
])('a feed of the events of %s', (_scope, feed) => {
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

  test.each([403, 404, 405])(
    'that the service refuses by %i fails, and goes on once it may',
    async (status) => {
      await begin()
      const mend = rig.sandbox.faults.add({ on: '/firework/v4/events/*', effect: 'status', status })
      expect(await rig.turn(feed)).toMatchObject({ status: 'failed' })
      const { trouble } = await openFeed(rig.ledger, feed.name, 0)
      expect(trouble).toMatchObject({ count: 1, answer: expect.stringContaining(`(${status})`) })
      mend()
      const all = addEvents(feed, 3)
      await rig.toEnd(feed)
      expect(await known()).toEqual(all)
    },
  )
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

describe('a feed of all credentials of a tenant', () => {
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

  test('takes in the credentials of all identifiers once, and reads on from the end', async () => {
    await begin({ endMode: 'empty', emptyPages: 0.2 })
    const first = addInTurn(70)
    await rig.toEnd(credentials)
    expect(await known()).toEqual(first.toSorted())
    cursors()
    const more = addInTurn(5)
    await rig.toEnd(credentials)
    expect(cursors().filter((cursor) => cursor === null)).toHaveLength(1)
    expect(await known()).toEqual([...first, ...more].toSorted())
    const { sinks } = await expectConservation(rig.ledger)
    expect(sinks['soc']?.created).toBe(75)
    expect(rig.sandbox.violations().changedScans).toBe(0)
  })

  test('begins at the start where the cursor is refused, and sends nothing again', async () => {
    await begin()
    addInTurn(45)
    await rig.toEnd(credentials)
    rig.sandbox.expireCursors()
    const more = addInTurn(3)
    cursors()
    await rig.toEnd(credentials)
    expect(cursors().slice(0, 3)).toEqual([null, expect.any(String), null])
    expect(await known()).toEqual(expect.arrayContaining(more))
    const { sinks } = await expectConservation(rig.ledger)
    expect(sinks['soc']?.created).toBe(48)
  })
})
