/** What is asked of a service to learn whether it filters by match time, and what its pages prove. */
import { callBy } from '../../support/call.ts'
import { describe, expect, test } from 'vitest'
import type { PolledFeed } from '../../../src/feed-types/feed-type.ts'
import {
  checkMatchFilter,
  isPageCredible,
  readMatchClock,
  noteMatchRefusal,
} from '../../../src/feeds/match-time.ts'
import {
  createShortPages,
  noLastPage,
  type PollerOptions,
  type PollRun,
} from '../../../src/feeds/poll-run.ts'
import { beginRescan } from '../../../src/feeds/scan.ts'
import { createLogger } from '../../../src/lib/logger.ts'
import { createMetrics } from '../../../src/lib/metrics.ts'
import type { Scan } from '../../../src/store/feed-state.ts'
import type { RoutedEvent } from '../../../src/store/intake.ts'
import type { UpstreamClient } from '../../../src/upstream/client.ts'
import { UpstreamError, type UpstreamReason } from '../../../src/upstream/error.ts'
import { aThreatEvent } from '../../support/events.ts'
import { scraped } from '../../support/feed-rig.ts'
import { aCredentialFeed, aFeed, aFeedState } from '../../support/feeds.ts'

const nowMs = Date.UTC(2026, 10, 1)
const [minuteMs, hourMs, dayMs] = [60_000, 3_600_000, 86_400_000]
const name = 'materialized_at events'
const state = aFeedState({ nowMs, newestMs: nowMs - hourMs })

/** The items of a page, with a cursor where more follow, or what the request fails with. */
type Answer = { items: unknown[]; next?: string } | Error

const empty: Answer = { items: [] }
const shown: Answer = { items: [{}] }

function failure(status: number, reason: UpstreamReason = 'rejected'): UpstreamError {
  return new UpstreamError(reason, `it fails: ${status}`, { status })
}

interface Given {
  answers?: readonly Answer[]
  /** What is remembered of the service; left out: nothing. */
  has?: boolean
  /** By how much the service's clock is ahead; undefined: no answer has said so. */
  skewMs?: number
  isAborted?: boolean
  of?: PolledFeed
}

/** The service answers in this order. */
function scene({ answers = [], has, skewMs, isAborted, of = aFeed() }: Given = {}) {
  const left = [...answers]
  const asked: string[] = []
  const noted: unknown[] = []
  const lines: string[] = []
  const metrics = createMetrics({ clock: { now: () => nowMs } as never })
  const aborting = new AbortController()
  const search = (_name: string, body: { from?: string; filters: object }): Promise<unknown> => {
    const { estimated_created_at: created, materialized_at: matched } = body.filters as Record<
      string,
      { gte: string; lte?: string }
    >
    const { gte = '', lte } = matched ?? created ?? {}
    const from = body.from === undefined ? '' : ` after ${body.from}`
    asked.push(`${matched ? 'matched' : 'created'} ${gte}/${lte ?? ''}${from}`)
    if (isAborted) aborting.abort()
    const answer = left.shift() ?? empty
    if (answer instanceof Error) return Promise.reject(answer)
    return Promise.resolve({
      page: { items: answer.items, next: answer.next ?? null },
      requestedAtMs: nowMs,
    })
  }
  const options = {
    client: () =>
      ({
        call: callBy(search),
        clockSkewMs: () => skewMs,
      }) as unknown as UpstreamClient,
    capabilities: () => ({
      read: () => Promise.resolve(has === undefined ? undefined : { has, atMs: 0 }),
      note: (about: string, found: boolean) => Promise.resolve(void noted.push([about, found])),
      demote: (about: string, why: string) => Promise.resolve(void noted.push([about, why])),
    }),
    clock: { now: () => nowMs },
    logger: createLogger({ destination: { write: (line: string) => void lines.push(line) } }),
    metrics,
  } as unknown as PollerOptions
  const turn: PollRun = {
    feed: of,
    kind: 'sweep',
    signal: aborting.signal,
    dueSinceMs: nowMs,
    shortPages: createShortPages(),
    lastPage: noLastPage(),
    refusals: { count: 0 },
  }
  const doubted = () => scraped(metrics, 'match_time_doubted_total{feed="brand"}')
  return { options, turn, asked, noted, lines, doubted }
}

const future = 'matched 2027-11-01T00:00:00.000Z/2027-11-02T00:00:00.000Z'
const sinceEver = 'matched 1970-01-01T00:00:00.000Z/2026-11-02T00:00:00.000Z'
const unfiltered = 'created 1970-01-01T00:00:00.000Z/'

describe('whether a service filters by match time', () => {
  async function ask(given: Given, at = state) {
    const { options, turn, ...rest } = scene(given)
    const now = await readMatchClock(options, turn, at).catch((error: unknown) => error)
    return { now, ...rest }
  }

  test.each([
    ['yes: nothing in a year’s time, something since ever', [empty, shown], 2, true],
    ['no: it shows something in a year’s time', [shown], 1, false],
    ['no: it refuses a time to come (400)', [failure(400)], 1, false],
    ['no: it refuses a time to come (422)', [failure(422)], 1, false],
    ['no: it refuses all time', [empty, failure(400)], 2, false],
    ['no: it shows something only without the filter', [empty, empty, shown], 3, false],
    ['nobody knows: it shows nothing at all', [empty, empty, empty], 3, undefined],
    ['nobody knows: it fails', [empty, failure(500, 'unavailable')], 2, undefined],
    ['nobody knows: it fails in a year’s time', [failure(404)], 1, undefined],
  ])('%s', async (_what, answers, requests, has) => {
    const { now, asked, noted } = await ask({ answers })
    expect(asked).toEqual([future, sinceEver, unfiltered].slice(0, requests))
    expect(noted).toEqual(has === undefined ? [] : [[name, has]])
    expect(now).toBe(has ? nowMs : undefined)
  })

  test('is not asked before the feed has shown an event, nor of a feed that takes no match time', async () => {
    const nothing = { now: undefined, asked: [] }
    expect(await ask({ has: true }, aFeedState({ nowMs }))).toMatchObject(nothing)
    expect(await ask({ has: true, of: aCredentialFeed() })).toMatchObject(nothing)
    const { options, turn } = scene({ has: true })
    expect(
      await readMatchClock({ ...options, capabilities: undefined }, turn, state),
    ).toBeUndefined()
  })

  test('is learned from five pages at most, each after the one before', async () => {
    const more = (next: string): Answer => ({ items: [], next })
    const answers = [empty, more('a'), more('b'), more('c'), more('d'), more('e'), shown]
    const { asked, noted } = await ask({ answers })
    const pages = ['', ' after a', ' after b', ' after c', ' after d'].map((at) => sinceEver + at)
    expect(asked).toEqual([future, ...pages, unfiltered])
    expect(noted).toEqual([[name, false]])
    expect((await ask({ answers: [empty, more('a'), shown] })).noted).toEqual([[name, true]])
  })

  test.each([
    ['the limit is reached', failure(429, 'rate_limited')],
    ['the key is refused', failure(401, 'auth')],
    ['it is no answer of the service', new Error('bug')],
  ])('is left for later without a word where %s', async (_why, error) => {
    const { now, lines, noted } = await ask({ answers: [empty, error] })
    expect([now, lines, noted]).toEqual([error, [], []])
  })

  test('is left for later where the daemon stops, and else said once with its cause', async () => {
    const error = failure(500, 'unavailable')
    expect((await ask({ answers: [error], isAborted: true })).now).toBe(error)
    const { lines } = await ask({ answers: [error] })
    expect(lines).toHaveLength(1)
    expect(JSON.parse(lines[0]!)).toMatchObject({
      feed: 'brand',
      account: 'main',
      err: { message: 'it fails: 500' },
    })
  })
})

function aRescan(kind: 'matched' | 'whole' | 'rung', matchedToMs?: number): Scan {
  const span = { fromMs: nowMs - dayMs, toMs: nowMs - hourMs }
  const notes = { kind, lateBeforeMs: null, ...(matchedToMs !== undefined && { matchedToMs }) }
  return beginRescan(aFeed(), state, { span, notes })
}

function anEvent(matchedAtMs: number | null, createdAtMs: number | null = nowMs): RoutedEvent {
  const event = aThreatEvent({ uid: `paste/x/${matchedAtMs}`, matchedAtMs, createdAtMs })
  return { event, decisions: [], items: [], wantsDetail: false }
}

test.each([
  [400, 'matched', true],
  [422, 'matched', true],
  [500, 'matched', false],
  [400, 'whole', false],
] as const)('a %i to a %s scan takes the filter back: %s', async (status, kind, isTaken) => {
  const { options, turn, noted } = scene()
  await noteMatchRefusal(options, turn.feed, aRescan(kind), failure(status))
  const why = `the service refuses it (${status}): late events are found by reading again from now on`
  expect(noted).toEqual(isTaken ? [[name, why]] : [])
})

describe('a page by match time', () => {
  const { fromMs = 0, toMs = 0 } = aRescan('matched').span ?? {}

  async function judge(events: RoutedEvent[], given: Given = {}, asked = aRescan('matched')) {
    const { options, turn, ...rest } = scene(given)
    return { isTaken: await isPageCredible(options, turn, state, { asked, events }), ...rest }
  }

  test.each([
    ['from an hour before its window on', anEvent(fromMs - hourMs), false],
    ['earlier than that', anEvent(fromMs - hourMs - 1), true],
    ['until an hour after its window', anEvent(toMs + hourMs), false],
    ['later than that', anEvent(toMs + hourMs + 1), true],
    ['at no time, and created at the start bound', anEvent(null, state.startBoundMs), false],
    ['at no time, and created before the start bound', anEvent(null, state.startBoundMs - 1), true],
    ['and created at no time', anEvent(null, null), false],
  ])('is doubted where it shows what was matched %s: %s', async (_when, odd, isDoubted) => {
    const ignored = await judge([anEvent(toMs), odd], { answers: [shown] })
    expect(ignored.asked).toEqual(isDoubted ? [future] : [])
    expect(ignored.isTaken).toBe(!isDoubted)
    expect(ignored.noted).toHaveLength(isDoubted ? 1 : 0)
    expect(await ignored.doubted()).toBe(isDoubted ? 1 : 0)
    const heeded = await judge([odd], { answers: [empty] })
    expect([heeded.isTaken, heeded.noted]).toEqual([true, []])
  })

  test('is not taken in where the window ends within half a minute of the service’s clock', async () => {
    const [early, late] = [-hourMs + minuteMs / 2, -hourMs + minuteMs / 2 - 1]
    expect((await judge([], { skewMs: early })).isTaken).toBe(true)
    expect((await judge([], { skewMs: late })).isTaken).toBe(false)
    const second = { ...aRescan('matched'), cursor: 'a' }
    expect((await judge([], { skewMs: late }, second)).isTaken).toBe(true)
  })
})

describe('what a scan of the whole window finds new', () => {
  const matchedToMs = nowMs - hourMs
  const raw = (uid: string): Answer => ({
    items: [{ metadata: { uid, type: 'paste', severity: 'low' } }],
  })

  async function find(newEvents: RoutedEvent[], given: Given = {}, walk?: Scan) {
    const { options, turn, ...rest } = scene(given)
    const found = { scan: walk ?? aRescan('whole', matchedToMs), newEvents }
    await checkMatchFilter(options, turn, state, found)
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
    const atMs = nowMs - 2 * hourMs
    const { asked, noted, doubted } = await find([anEvent(atMs)], { answers: [raw('paste/x/1')] })
    expect(asked).toEqual(['matched 2026-10-31T21:59:00.000Z/2026-10-31T22:01:00.000Z'])
    const why = `feed brand was shown paste/x/${atMs} by its creation, and not by its match time: late events are found by reading again from now on`
    expect(noted).toEqual([[name, why]])
    expect(await doubted()).toBe(1)
  })

  test('proves nothing where that shows it, or cannot be asked', async () => {
    const atMs = nowMs - 2 * hourMs
    const page = raw(`paste/x/${atMs}`)
    expect((await find([anEvent(atMs)], { answers: [page] })).noted).toEqual([])
    expect((await find([anEvent(atMs)], { answers: [failure(500)] })).noted).toEqual([])
    await expect(find([anEvent(atMs)], { answers: [new Error('bug')] })).rejects.toThrow('bug')
  })

  test('is asked for three times a page at most', async () => {
    const times = [1, 2, 3, 4].map((at) => matchedToMs - at * minuteMs)
    const answers = times.slice(0, 3).map((atMs) => raw(`paste/x/${atMs}`))
    const all = await find(
      times.map((atMs) => anEvent(atMs)),
      { answers },
    )
    expect([all.asked.length, all.noted]).toEqual([3, []])
    const third = await find(
      times.map((atMs) => anEvent(atMs)),
      { answers: answers.slice(0, 2) },
    )
    expect([third.asked.length, third.noted.length]).toEqual([3, 1])
  })

  test('is nothing to doubt by where no scan by match time came before, or the scan is another', async () => {
    const late = [anEvent(nowMs - 2 * hourMs)]
    expect((await find(late, {}, aRescan('whole'))).asked).toEqual([])
    expect((await find(late, {}, aRescan('rung', matchedToMs))).asked).toEqual([])
  })
})
