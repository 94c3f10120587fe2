import { afterEach, expect, test } from 'vitest'
import type { SandboxOptions } from '../../../src/sandbox/options.ts'
import { openFeed } from '../../../src/store/feed-state.ts'
import { aCredentialSearch } from '../../support/feeds.ts'
import { startFeedRig, type FeedRig } from '../../support/feed-rig.ts'
import { redisForTests } from '../../support/ledger.ts'
import { until } from '../../support/rehearsal.ts'

const tests = redisForTests()
const hourMs = 3_600_000
const dayMs = 24 * hourMs
const feed = aCredentialSearch({ startMs: 4 * dayMs, rescan: { everyMs: 1, backMs: 7 * dayMs } })

let rig: FeedRig

async function begin(sandbox: SandboxOptions = {}): Promise<FeedRig> {
  rig = await startFeedRig({ tests, sandbox })
  return rig
}

afterEach(() => rig.stop())

function add(count: number, importedAtMs = Date.now()): void {
  rig.sandbox.addCredentials(count, { importedAtMs, domain: 'example.com' })
}

/** Global searches since the last look. */
function searches() {
  return rig.asked().filter(({ path }) => path.startsWith('/firework/'))
}

async function known(): Promise<number> {
  return (await rig.records()).size
}

/** One credential of this domain, imported just now. */
function leak(domain: string, importedAtMs = Date.now()): string {
  const identityName = `acme-admin@${domain}`
  const [made] = rig.sandbox.addCredentials(1, { importedAtMs, domain, identityName })
  return `credential/${made!.id}`
}

const keyword = { ...feed, query: { type: 'keyword', keyword: 'acme' } as const }

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

test('where the reserve is reached nothing is asked, and after a day one search asks again', async () => {
  await begin({ searchQuota: 3 })
  const careful = { ...feed, quotaReserve: 2 }
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
