import { afterEach, expect, test } from 'vitest'
import type { SandboxOptions } from '../../../src/sandbox/options.ts'
import { openFeed } from '../../../src/store/feed-state.ts'
import { aCredentialFeed } from '../../support/feeds.ts'
import { startFeedRig, type FeedRig } from '../../support/feed-rig.ts'
import { expectConservation, redisForTests } from '../../support/ledger.ts'

const tests = redisForTests()
const hourMs = 3_600_000
const feed = aCredentialFeed({ startMs: 96 * hourMs, rescan: { everyMs: 1, backMs: 0 } })

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

test('what arrives late, deep in the feed, is found by the rescan and counted as late', async () => {
  await begin({ credentialOrder: 'newest' })
  addInTurn(60)
  rig.sandbox.addCredentials(40, { importedAtMs: Date.now() - 60 * hourMs })
  await rig.toEnd(feed)
  rig.sandbox.addCredentials(3, { importedAtMs: Date.now() - 50 * hourMs })
  await rig.toEnd(feed)
  expect(await known()).toHaveLength(100)
  await rig.toEnd(feed, 'rescan')
  expect(await known()).toHaveLength(103)
  expect((await expectConservation(rig.ledger)).feeds['staff']).toMatchObject({ new: 103, late: 3 })
  const { whole } = await openFeed(rig.ledger, 'staff', 0)
  expect(whole).toMatchObject({ isDone: true })
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
