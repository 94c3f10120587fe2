import { afterEach, expect, test } from 'vitest'
import type { CredentialOrder, SandboxOptions } from '../../../src/sandbox/options.ts'
import { openFeed } from '../../../src/store/feed-state.ts'
import { aCredentialFeed } from '../../support/feeds.ts'
import { startFeedRig, type FeedRig } from '../../support/feed-rig.ts'
import { expectConservation, redisForTests } from '../../support/ledger.ts'

const tests = redisForTests()
const hourMs = 3_600_000
const feed = aCredentialFeed({ startMs: 96 * hourMs, sweep: { everyMs: 1, backMs: 0 } })

let rig: FeedRig

async function begin(sandbox: SandboxOptions = {}): Promise<FeedRig> {
  rig = await startFeedRig({ tests, sandbox })
  return rig
}

afterEach(() => rig.stop())

/** So many more, one after the other, the last one now. */
function addInTurn(count: number): string[] {
  const nowMs = Date.now()
  const wanted = Array.from({ length: count }, (_, i) => ({ importedAtMs: nowMs - count + i + 1 }))
  return rig.sandbox.addCredentials(wanted).map(({ id }) => `credential/${id}`)
}

async function known(): Promise<string[]> {
  return [...(await rig.records()).keys()].toSorted()
}

/** The cursor of each request since the last look; null: from the start. */
function cursors(): unknown[] {
  return rig.asked().map(({ query }) => query['from'] ?? null)
}

test.each<CredentialOrder>(['newest', 'ascending', 'shuffled'])(
  'in the order "%s" every credential is taken in once, at the latest by the next sweep',
  async (credentialOrder) => {
    await begin({ credentialOrder, endMode: 'empty', shortPages: 0.2, emptyPages: 0.2 })
    const first = addInTurn(45)
    await rig.toEnd(feed)
    expect(await known()).toEqual(first.toSorted())
    const more = addInTurn(23)
    await rig.toEnd(feed)
    await rig.toEnd(feed, 'sweep')
    expect(await known()).toEqual([...first, ...more].toSorted())
    const { feeds, sinks } = await expectConservation(rig.ledger)
    expect(feeds['staff']).toMatchObject({ new: 68, baseline: 0 })
    expect(sinks['soc']?.created).toBe(68)
    for (const record of (await rig.records()).values()) expect(record.severity).toBe('high')
    expect(rig.sandbox.violations().changedScans).toBe(0)
  },
)

test('newest first, a quiet poll costs one request, and what is new costs no more than its pages', async () => {
  await begin({ credentialOrder: 'newest' })
  addInTurn(100)
  await rig.toEnd(feed)
  cursors()
  await rig.toEnd(feed)
  expect(cursors()).toEqual([null])
  addInTurn(25)
  await rig.toEnd(feed)
  expect(cursors()).toHaveLength(3)
  expect(await known()).toHaveLength(125)
})

test('a feed that proved to be ascending is resumed at its cursor', async () => {
  await begin({ credentialOrder: 'ascending' })
  addInTurn(100)
  await rig.toEnd(feed)
  const [start, ...rest] = cursors()
  expect([start, rest.length]).toEqual([null, 4])
  await rig.toEnd(feed)
  expect(cursors()).toEqual([rest.at(-1)])
  addInTurn(5)
  await rig.toEnd(feed)
  expect(cursors()).not.toContain(null)
  expect(await known()).toHaveLength(105)
})

test('ascending, the first one beyond a full page is found by the next poll, not by the next sweep', async () => {
  await begin({ credentialOrder: 'ascending' })
  addInTurn(20)
  await rig.toEnd(feed)
  addInTurn(1)
  await rig.toEnd(feed)
  expect(await known()).toHaveLength(21)
})

test('a feed whose ids stop growing is read from the start again, and misses nothing', async () => {
  await begin({ credentialOrder: 'ascending' })
  addInTurn(45)
  await rig.toEnd(feed)
  cursors()
  const nowMs = Date.now() + 1_000
  rig.sandbox.addCredentials([{ importedAtMs: nowMs + 2 }, { importedAtMs: nowMs + 1 }])
  await rig.toEnd(feed)
  expect(cursors()).not.toContain(null)
  await rig.toEnd(feed)
  expect(cursors()[0]).toBeNull()
  await rig.toEnd(feed, 'sweep')
  expect(await known()).toHaveLength(47)
  await expectConservation(rig.ledger)
})

test('a refused cursor in the middle begins at the start again', async () => {
  await begin({ credentialOrder: 'ascending' })
  addInTurn(45)
  await rig.toEnd(feed)
  rig.sandbox.expireCursors()
  addInTurn(5)
  cursors()
  await rig.toEnd(feed)
  expect(cursors()[1]).toBeNull()
  expect(await known()).toHaveLength(50)
})

test('what is older than the start is marked and counted, and never sent', async () => {
  await begin({ credentialOrder: 'newest' })
  const young = addInTurn(30)
  const nowMs = Date.now()
  rig.sandbox.addCredentials(25, { importedAtMs: nowMs - 97 * hourMs })
  await rig.toEnd(feed)
  await rig.toEnd(feed, 'sweep')
  rig.sandbox.addCredentials(2, { importedAtMs: nowMs - 500 * hourMs })
  await rig.toEnd(feed, 'sweep')
  expect(await known()).toEqual(young.toSorted())
  const { feeds, sinks } = await expectConservation(rig.ledger)
  expect(feeds['staff']).toMatchObject({ new: 30, baseline: 27, late: 0 })
  expect(sinks['soc']?.created).toBe(30)
})

test('what arrives late, deep in the feed, is found by the sweep and counted as late', async () => {
  await begin({ credentialOrder: 'newest' })
  addInTurn(60)
  await rig.toEnd(feed)
  rig.sandbox.addCredentials(3, { importedAtMs: Date.now() - 50 * hourMs })
  await rig.toEnd(feed)
  expect(await known()).toHaveLength(60)
  await rig.toEnd(feed, 'sweep')
  expect(await known()).toHaveLength(63)
  expect((await expectConservation(rig.ledger)).feeds['staff']).toMatchObject({ new: 63, late: 3 })
  const { sweep } = await openFeed(rig.ledger, 'staff', 0)
  expect(sweep).toMatchObject({ isDone: true })
})

test('a record without an id is set aside, and the rest of its page is taken in', async () => {
  await begin({ credentialOrder: 'newest' })
  addInTurn(3)
  rig.sandbox.addCredentials(1, { raw: { identity_name: 'no id' } })
  await rig.toEnd(feed)
  await rig.toEnd(feed)
  const { feeds } = await expectConservation(rig.ledger)
  expect(feeds['staff']).toMatchObject({ new: 3, quarantined: 1 })
})
