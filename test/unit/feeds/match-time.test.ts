/** When feeds are read by match time, and what turns them to the ladder for a day. */
import { describe, expect, test } from 'vitest'
import {
  checkMatchFilter,
  findDisproof,
  noteMatchRefusal,
  readMatchClock,
} from '../../../src/feeds/match-time.ts'
import type { PolledAccount, PollerOptions, PollRun } from '../../../src/feeds/poll-run.ts'
import { beginRescan } from '../../../src/feeds/scan.ts'
import { createMetrics } from '../../../src/lib/metrics/metrics.ts'
import type { Scan } from '../../../src/store/feed-state.ts'
import type { RoutedEvent } from '../../../src/store/intake.ts'
import { UpstreamError } from '../../../src/upstream/error.ts'
import { aThreatEvent } from '../../support/events.ts'
import { scraped } from '../../support/feed-rig.ts'
import { aCredentialFeed, aFeed, aFeedState } from '../../support/feeds.ts'

const nowMs = Date.UTC(2026, 10, 1)
const [hourMs, dayMs] = [3_600_000, 86_400_000]
const name = 'materialized_at events'
const feed = aFeed()
const state = aFeedState({ nowMs, newestMs: nowMs - hourMs })

function failure(status: number): UpstreamError {
  return new UpstreamError('rejected', `it fails: ${status}`, { status })
}

interface Given {
  isRefused?: boolean
  /** By how much the service's clock is ahead; undefined: no answer has said so. */
  skewMs?: number
}

function scene({ isRefused = false, skewMs }: Given = {}) {
  const refused: unknown[] = []
  const metrics = createMetrics({ clock: { now: () => nowMs } as never })
  const account = {
    client: { clockSkewMs: () => skewMs },
    capabilities: {
      isRefused: (about: string) => Promise.resolve(isRefused && about === name),
      refuse: (about: string, why: string) => Promise.resolve(void refused.push([about, why])),
    },
  } as unknown as PolledAccount
  const options = {
    clock: { now: () => nowMs },
    metrics,
  } as unknown as PollerOptions
  const doubted = () => scraped(metrics, 'match_time_doubted_total{feed="brand"}')
  const run = (of: PollRun['feed'] = feed) => ({ feed: of, account }) as PollRun
  return { options, account, run, refused, doubted }
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
  const read = (given: Given, of = feed) => {
    const { options, run } = scene(given)
    return readMatchClock(options, run(of))
  }
  expect(await read({ skewMs: 5_000 })).toBe(nowMs + 5_000)
  expect(await read({ isRefused: true })).toBeUndefined()
  expect(await read({}, aCredentialFeed() as never)).toBeUndefined()
  const { options, account, run } = scene({ skewMs: 5_000 })
  account.capabilities = undefined
  expect(await readMatchClock(options, run())).toBeUndefined()
})

test.each([
  [400, 'matched', true],
  [422, 'matched', true],
  [500, 'matched', false],
  [400, 'whole', false],
] as const)('a %i to a %s scan takes the filter back: %s', async (status, kind, isTaken) => {
  const { run, refused } = scene()
  await noteMatchRefusal(run(), aRescan(kind), failure(status))
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
  ])('disproves the filter where it shows what was matched %s: %s', (...given) => {
    const [_when, matchedAtMs, isDisproof] = given
    const events = [anEvent(toMs), anEvent(matchedAtMs)]
    const found = `shown paste/x/${matchedAtMs} whatever its match time`
    expect(findDisproof(aRescan('matched'), nowMs, events)).toBe(isDisproof ? found : undefined)
    expect(findDisproof(aRescan('whole'), nowMs, events)).toBeUndefined()
  })

  test('disproves it where it shows what was never matched, from before the start bound', () => {
    expect(findDisproof(aRescan('matched'), nowMs + 1, [anEvent(null)])).toBeDefined()
  })
})

describe('what a scan of the whole window finds new', () => {
  const matchedToMs = nowMs - hourMs

  async function find(event: RoutedEvent, scan = aRescan('whole', matchedToMs)) {
    const { options, run, ...rest } = scene()
    await checkMatchFilter(options, run(), state, { scan, newEvents: [anEvent(null), event] })
    return rest
  }

  test.each([
    ['before the start bound', state.startBoundMs - 1, false],
    ['at the start bound', state.startBoundMs, true],
    ['just before what was read by match time ends', matchedToMs - 1, true],
    ['where it ends', matchedToMs, false],
    ['at no time', null, false],
  ])('takes the filter back if it was matched %s: %s', async (_when, matchedAtMs, isDoubted) => {
    const { refused, doubted } = await find(anEvent(matchedAtMs))
    const found = `feed brand was shown paste/x/${matchedAtMs} by its creation, not by its match time`
    expect(refused).toEqual(isDoubted ? because(found) : [])
    expect(await doubted()).toBe(isDoubted ? 1 : 0)
  })

  test('proves nothing where its severity was changed, or no scan by match time came before, or the scan is another', async () => {
    const late = anEvent(matchedToMs - 1)
    const raised = { ...late, event: { ...late.event, originalSeverity: 'low' } }
    for (const { refused } of [
      await find(raised),
      await find(late, aRescan('whole')),
      await find(late, aRescan('rung', matchedToMs)),
    ])
      expect(refused).toEqual([])
  })
})
