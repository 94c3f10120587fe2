/** What metrics and log say of a page that was taken in. */
import { expect, test } from 'vitest'
import { countPage, observeDelays } from '../../../src/feeds/announce.ts'
import type { PollerOptions } from '../../../src/feeds/poll-run.ts'
import type { FeedState } from '../../../src/store/feed-state.ts'
import type { CommitResult, Page, RoutedEvent } from '../../../src/store/intake.ts'
import type { StoredDecision } from '../../../src/store/records.ts'
import { systemClock } from '../../../src/lib/clock.ts'
import { createLogger } from '../../../src/lib/logger.ts'
import { createMetrics } from '../../../src/lib/metrics/metrics.ts'
import type { ThreatEvent } from '../../../src/event.ts'
import { aThreatEvent } from '../../support/events.ts'

const nowMs = Date.UTC(2026, 10, 1)
const nothing: CommitResult['counts'] = {
  fetched: 0,
  new: 0,
  duplicate: 0,
  quarantined: 0,
  baseline: 0,
  late: 0,
  ahead: 0,
  raised: 0,
}

function event(overrides: Partial<ThreatEvent>, ...paths: string[][]): RoutedEvent {
  const decisions: StoredDecision[] = paths.map((path) => ({
    route: path.join('/'),
    path,
    why: [],
  }))
  return { event: aThreatEvent(overrides), decisions, items: [], wantsDetail: false }
}

/** The samples of this feed that are not 0, buckets aside, and the log's lines without their time. */
async function countedOf(
  page: Partial<Page>,
  counts: Partial<CommitResult['counts']>,
  newEvents: RoutedEvent[],
): Promise<{ samples: Record<string, number>; lines: Record<string, unknown>[] }> {
  const metrics = createMetrics({ clock: systemClock })
  const lines: Record<string, unknown>[] = []
  const write = (line: string): void => {
    const { time: _time, ...fields } = JSON.parse(line) as Record<string, unknown>
    lines.push(fields)
  }
  const logger = createLogger({ destination: { write } })
  const whole: Page = {
    feed: 'brand',
    labels: {},
    sequence: 1,
    generation: 1,
    scan: { fingerprint: 'f', body: {}, cursor: 'c', reason: 'again', startedAtMs: nowMs },
    requestedAtMs: nowMs,
    isCaughtUp: true,
    isBackfilling: false,
    events: [],
    malformed: [],
    ...page,
  }
  const committed = { counts: { ...nothing, ...counts }, isEnded: true, changes: [], newEvents }
  countPage({ metrics, logger }, { name: 'brand' }, whole, { status: 'committed', ...committed })
  const { body } = await metrics.render()
  const found = [
    ...body.matchAll(
      /^tocsin_((?:events?|feed|rescan|unknown)_\w+(?<!_bucket)(?:\{[^}]*\})?) (\S+)$/gmu,
    ),
  ]
  const samples = found.map(([, name = '', value]) => [name.replaceAll('"', ''), Number(value)])
  return { samples: Object.fromEntries(samples.filter(([, value]) => value !== 0)), lines }
}

test('each count of a page has its metric, and what cannot be read a warning', async () => {
  const counts = {
    fetched: 64,
    new: 1,
    duplicate: 2,
    quarantined: 4,
    baseline: 8,
    late: 16,
    raised: 32,
    ahead: 64,
  }
  const malformed = [{ uid: null, problem: 'metadata.uid: there is none', raw: '{}' }]
  const { samples, lines } = await countedOf({ malformed }, counts, [])
  expect(samples).toEqual({
    'feed_pages_total{feed=brand}': 1,
    'events_fetched_total{feed=brand}': 64,
    'events_duplicate_total{feed=brand}': 2,
    'events_quarantined_total{feed=brand}': 4,
    'events_unreadable_total{feed=brand}': 1,
    'events_baseline_total{feed=brand}': 8,
    'events_severity_raised_total{feed=brand}': 32,
    'rescan_late_events_total{feed=brand}': 16,
    'events_dated_ahead_total{feed=brand}': 64,
  })
  expect(lines).toEqual([
    {
      level: 'warn',
      feed: 'brand',
      quarantined: 4,
      fetched: 64,
      problem: 'metadata.uid: there is none',
      remedy: 'tocsin items list --state quarantined',
      msg: 'items cannot be read and are quarantined: nobody is told of them',
    },
  ])
})

test('a new event is counted by severity, by its routes, and where the root alone took it', async () => {
  const newEvents = [
    event({ severity: 'low' }, ['root']),
    event({ severity: 'high' }, ['root'], ['root', 'leaks']),
    event({ severity: 'dire', unread: ['tags', 'notes'] }, ['root', 'leaks']),
    event({ severity: 'low', unread: ['tags'] }, ['root']),
  ]
  const { samples, lines } = await countedOf({}, { fetched: 4, new: 4 }, newEvents)
  expect(samples).toMatchObject({
    'events_new_total{feed=brand}': 4,
    'events_new_by_severity_total{severity=low}': 2,
    'events_new_by_severity_total{severity=unknown}': 1,
    'unknown_severity_total{feed=brand}': 1,
    'events_routed_total{route=root}': 3,
    'events_routed_total{route=root/leaks}': 2,
    'events_unrouted_total{severity=low}': 2,
    'event_fields_unread_total{feed=brand,field=tags}': 2,
    'event_fields_unread_total{feed=brand,field=notes}': 1,
  })
  expect(Object.keys(samples).filter((name) => name.startsWith('events_unrouted'))).toHaveLength(1)
  expect(lines).toEqual([
    {
      level: 'warn',
      feed: 'brand',
      fields: ['notes', 'tags'],
      msg: 'fields of new events cannot be read',
    },
  ])
})

test('how soon a new event was fetched is measured from its match, or else its creation, and never below 0', async () => {
  const newEvents = [
    event({ createdAtMs: nowMs - 90_000, matchedAtMs: nowMs - 2_000 }),
    event({ createdAtMs: nowMs - 40_000, matchedAtMs: null }),
    event({ createdAtMs: null, matchedAtMs: null }),
    event({ createdAtMs: null, matchedAtMs: nowMs + 9_000 }), // clocks differ
  ]
  const { samples } = await countedOf({}, { new: 4 }, newEvents)
  expect(samples).toMatchObject({
    event_match_to_fetch_seconds_count: 3,
    event_match_to_fetch_seconds_sum: 42,
  })
  expect(samples).not.toHaveProperty(['event_lateness_seconds_count'])
})

test('of what a rescan finds behind the tail is measured how late it came, and not how soon', async () => {
  const rescan = { place: 'whole', isSnapshot: false, fieldsAtEnd: [] } as const
  const newEvents = [
    event({ createdAtMs: nowMs - 70_000 }),
    event({ createdAtMs: nowMs - 60_000 }),
    event({ createdAtMs: null }),
  ]
  const late = { ...rescan, fieldsAtEnd: [], lateBeforeMs: nowMs - 60_000 }
  const { samples } = await countedOf({ rescan: late }, { new: 3 }, newEvents)
  expect(samples).toMatchObject({
    event_lateness_seconds_count: 1,
    event_lateness_seconds_sum: 70,
  })
  expect(samples).not.toHaveProperty(['event_match_to_fetch_seconds_count'])
  const ahead = { ...late, lateBeforeMs: nowMs + 60_000 }
  const before = await countedOf({ rescan: ahead }, { new: 1 }, [event({ createdAtMs: nowMs + 9 })])
  expect(before.samples).toHaveProperty(['event_lateness_seconds_count'], 1)
  expect(before.samples).not.toHaveProperty(['event_lateness_seconds_sum'])
  const all = await countedOf({ rescan: { ...late, lateBeforeMs: undefined } }, {}, newEvents)
  expect(all.samples).not.toHaveProperty(['event_lateness_seconds_count'])
})

test('a new event has waited between its own request and the one that read to the end before', async () => {
  const given = { page: { requestedAtMs: nowMs - 7_000 } as Page, aheadMs: 1_000, count: 2 }
  const boundsOf = async (lastCaughtUpMs: number | undefined): Promise<number[]> => {
    const clock = { ...systemClock, now: () => nowMs - 1_000 }
    const metrics = createMetrics({ clock })
    const state = { lastCaughtUpMs } as FeedState
    observeDelays({ metrics, clock } as PollerOptions, { ...given, state })
    const { body } = await metrics.render()
    const sums = [...body.matchAll(/_detection_(?:upper|lower)_bound_seconds_sum (\S+)$/gmu)]
    return sums.map(([, sum]) => Number(sum)).toSorted((a, b) => a - b)
  }
  expect(await boundsOf(nowMs - 40_000)).toEqual([2 * 7, 2 * 40])
  expect(await boundsOf(nowMs)).toEqual([2 * 7, 2 * 7]) // clocks differ
  expect(await boundsOf(undefined)).toEqual([0, 0]) // nobody knows how long they had been there
})
