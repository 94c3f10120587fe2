/** When feeds are read by match time, and what turns them to the ladder for a day. */
import { describe, expect, test } from 'vitest'
import {
  checkMatchFilter,
  endsTooLate,
  isFilterIgnored,
  noteMatchRefusal,
  readMatchClock,
} from '../../../src/feeds/match-time.ts'
import type { PollerOptions, PollRun } from '../../../src/feeds/poll-run.ts'
import { beginRescan } from '../../../src/feeds/scan.ts'
import { createMetrics } from '../../../src/lib/metrics/metrics.ts'
import type { Scan } from '../../../src/store/feed-state.ts'
import type { RoutedEvent } from '../../../src/store/intake.ts'
import type { UpstreamClient } from '../../../src/upstream/client.ts'
import { UpstreamError } from '../../../src/upstream/error.ts'
import { callBy } from '../../support/call.ts'
import { aThreatEvent } from '../../support/events.ts'
import { scraped } from '../../support/feed-rig.ts'
import { aCredentialFeed, aFeed, aFeedState } from '../../support/feeds.ts'

const nowMs = Date.UTC(2026, 10, 1)
const [minuteMs, hourMs, dayMs] = [60_000, 3_600_000, 86_400_000]
const name = 'materialized_at events'
const feed = aFeed()
const state = aFeedState({ nowMs, newestMs: nowMs - hourMs })

/** A page with a cursor where more follow, or what the request fails with. */
type Answer = { items: unknown[]; next?: string } | Error

function failure(status: number): UpstreamError {
  return new UpstreamError('rejected', `it fails: ${status}`, { status })
}

interface Given {
  answer?: Answer
  isRefused?: boolean
  /** By how much the service's clock is ahead; undefined: no answer has said so. */
  skewMs?: number
}

function scene({ answer = { items: [] }, isRefused = false, skewMs }: Given = {}) {
  const asked: string[] = []
  const refused: unknown[] = []
  const metrics = createMetrics({ clock: { now: () => nowMs } as never })
  const search = (_name: string, body: { filters: object }): Promise<unknown> => {
    const { materialized_at: matched } = body.filters as Record<string, object>
    asked.push(Object.values(matched ?? {}).join('/'))
    if (answer instanceof Error) return Promise.reject(answer)
    return Promise.resolve({ page: { next: null, ...answer }, requestedAtMs: nowMs })
  }
  const client = { call: callBy(search), clockSkewMs: () => skewMs }
  const options = {
    client: () => client as unknown as UpstreamClient,
    capabilities: () => ({
      isRefused: (about: string) => Promise.resolve(isRefused && about === name),
      refuse: (about: string, { why }: { why: string }) =>
        Promise.resolve(void refused.push([about, why])),
    }),
    clock: { now: () => nowMs },
    metrics,
  } as unknown as PollerOptions
  const { signal } = new AbortController()
  const run = { feed, kind: 'rescan', signal, dueSinceMs: nowMs, refusals: { count: 0 } } as PollRun
  const doubted = () => scraped(metrics, 'match_time_doubted_total{feed="brand"}')
  return { options, run, asked, refused, doubted }
}

function aRescan(kind: 'matched' | 'whole' | 'rung', matchedToMs?: number): Scan {
  const span = { fromMs: nowMs - dayMs, toMs: nowMs - hourMs }
  const notes = { kind, lateBeforeMs: null, ...(matchedToMs !== undefined && { matchedToMs }) }
  return beginRescan(feed, state, { span, notes })
}

function anEvent(matchedAtMs: number | null): RoutedEvent {
  const event = aThreatEvent({ uid: `paste/x/${matchedAtMs}`, matchedAtMs, createdAtMs: nowMs })
  return { event, decisions: [], items: [], wantsDetail: false }
}

function because(found: string): unknown[] {
  return [[name, `${found}: late events are found by reading again meanwhile`]]
}

test('a feed that takes match times is read by them, unless the service has refused it', async () => {
  const read = (given: Given, of = feed) => readMatchClock(scene(given).options, of)
  expect(await read({ skewMs: 5_000 })).toBe(nowMs + 5_000)
  expect(await read({ isRefused: true })).toBeUndefined()
  expect(await read({}, aCredentialFeed() as never)).toBeUndefined()
  const { options } = scene()
  expect(await readMatchClock({ ...options, capabilities: undefined }, feed)).toBeUndefined()
})

test.each([
  [400, 'matched', true],
  [422, 'matched', true],
  [500, 'matched', false],
  [400, 'whole', false],
] as const)('a %i to a %s scan takes the filter back: %s', async (status, kind, isTaken) => {
  const { options, refused } = scene()
  await noteMatchRefusal(options, feed, aRescan(kind), failure(status))
  expect(refused).toEqual(isTaken ? because(`the service refuses it (${status})`) : [])
})

describe('a page by match time', () => {
  const { fromMs = 0, toMs = 0 } = aRescan('matched').span ?? {}

  test.each([
    ['from an hour before its window on', fromMs - hourMs, false],
    ['earlier than that', fromMs - hourMs - 1, true],
    ['until an hour after its window', toMs + hourMs, false],
    ['later than that', toMs + hourMs + 1, true],
    ['at no time', null, false],
  ])('takes the filter back where it shows what was matched %s: %s', async (...given) => {
    const [_when, matchedAtMs, isIgnored] = given
    const { options, refused, doubted } = scene()
    const events = [anEvent(toMs), anEvent(matchedAtMs)]
    const asked = { scan: aRescan('matched'), startBoundMs: nowMs }
    expect(await isFilterIgnored(options, feed, asked, events)).toBe(isIgnored)
    const found = `feed brand was shown paste/x/${matchedAtMs} whatever its match time`
    expect(refused).toEqual(isIgnored ? because(found) : [])
    expect(await doubted()).toBe(isIgnored ? 1 : 0)
    const whole = { scan: aRescan('whole'), startBoundMs: nowMs }
    expect(await isFilterIgnored(options, feed, whole, events)).toBe(false)
  })

  test('takes the filter back where it shows what was never matched, from before the start bound', async () => {
    const { options } = scene()
    const asked = { scan: aRescan('matched'), startBoundMs: nowMs + 1 }
    expect(await isFilterIgnored(options, feed, asked, [anEvent(null)])).toBe(true)
  })

  test('is read again where its window ends within half a minute of the service’s clock', () => {
    const isLate = (skewMs: number, asked = aRescan('matched')) =>
      endsTooLate(scene({ skewMs }).options, feed, asked)
    const [early, late] = [-hourMs + minuteMs / 2, -hourMs + minuteMs / 2 - 1]
    expect([isLate(early), isLate(late)]).toEqual([false, true])
    expect(isLate(late, { ...aRescan('matched'), cursor: 'a' })).toBe(false)
    expect(isLate(late, aRescan('whole'))).toBe(false)
  })
})

describe('what a scan of the whole window finds new', () => {
  const matchedToMs = nowMs - hourMs
  const atMs = nowMs - 2 * hourMs
  const raw = (uid: string) => ({ items: [{ metadata: { uid, type: 'paste', severity: 'low' } }] })

  async function find(newEvents: RoutedEvent[], given: Given = {}, scan?: Scan) {
    const { options, run, ...rest } = scene(given)
    const found = { scan: scan ?? aRescan('whole', matchedToMs), newEvents }
    await checkMatchFilter(options, run, state, found)
    return rest
  }

  test.each([
    ['before the start bound', state.startBoundMs - 1, 0],
    ['at the start bound', state.startBoundMs, 1],
    ['just before what was read by match time ends', matchedToMs - 1, 1],
    ['where it ends', matchedToMs, 0],
    ['at no time', null, 0],
  ])('is asked for by match time if it was matched %s', async (_when, matchedAtMs, requests) => {
    expect((await find([anEvent(matchedAtMs)])).asked).toHaveLength(requests)
  })

  test('takes the filter back where that does not show it even now', async () => {
    const { asked, refused, doubted } = await find([anEvent(atMs)], { answer: raw('paste/x/1') })
    expect(asked).toEqual(['2026-10-31T21:59:00.000Z/2026-10-31T22:01:00.000Z'])
    const found = `feed brand was shown paste/x/${atMs} by its creation, not by its match time`
    expect(refused).toEqual(because(found))
    expect(await doubted()).toBe(1)
  })

  test.each([
    ['shows it', raw(`paste/x/${atMs}`)],
    ['has more pages', { ...raw('paste/x/1'), next: 'a' }],
    ['cannot be asked', failure(500)],
  ])('proves nothing where that %s', async (_what, answer) => {
    expect((await find([anEvent(atMs)], { answer })).refused).toEqual([])
  })

  test('is asked for once a page', async () => {
    const events = [1, 2, 3].map((at) => anEvent(matchedToMs - at * minuteMs))
    expect((await find(events)).asked).toHaveLength(1)
  })

  test('is nothing to doubt by where no scan by match time came before, or the scan is another', async () => {
    const late = [anEvent(atMs)]
    expect((await find(late, {}, aRescan('whole'))).asked).toEqual([])
    expect((await find(late, {}, aRescan('rung', matchedToMs))).asked).toEqual([])
  })
})
