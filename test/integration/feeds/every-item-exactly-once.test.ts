import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { PolledFeed } from '../../../src/feeds/types/polled-feed.ts'
import {
  aCookieFeed,
  aCredentialFeed,
  aCredentialSearch,
  aFeed,
  anEventSearch,
} from '../../support/feeds.ts'
import { expectConservation, redisForTests } from '../../support/ledger.ts'
import { openFeed } from '../../../src/store/feed-state.ts'
import { recordsOf } from '../../support/feed-rig.ts'
import { createHistory, startMs, type Step } from '../../support/feed-history.ts'
import type { Habits } from '../../support/scripted-service.ts'
import { runs, seeded } from '../../support/runs.ts'

/*
 * Any history that a service and an operator may have: after enough turns each item at or above the start
 * bound was taken in exactly once, and so was what appeared below it once all that stood there was read;
 * nothing else from below the start bound has left. Requests are counted, not seconds.
 * With TOCSIN_HISTORIES=2000 so many of each type are drawn, other ones each time.
 */
const tests = redisForTests()
const hourMs = 3_600_000
const wanted = process.env['TOCSIN_HISTORIES']
const histories = Number(wanted ?? runs({ short: 5, long: 25 }))

/**
 * Above the floor or below it, never so near that the time of the first poll decides; or dated ahead of now,
 * also by less than the history takes.
 */
const ageMs = fc.oneof(
  fc.oneof(
    fc.integer({ min: -2_000, max: -1 }),
    fc.integer({ min: -10_000 * hourMs, max: -hourMs }),
  ),
  fc.integer({ min: 1, max: 600_000 }),
  fc.integer({ min: 1, max: startMs - hourMs }),
  fc.integer({ min: startMs + hourMs, max: 2 * startMs }),
)
const ages = fc.array(ageMs, { minLength: 1, maxLength: 12 })
const incident = fc.oneof(
  { weight: 2, arbitrary: fc.record({ what: fc.constant('insert' as const), ageMs }) },
  fc.record({ what: fc.constantFrom('fail', 'crash', 'crash-after-commit', 'stop', 'expire') }),
)
const incidents = fc.array(fc.tuple(fc.integer({ min: 1, max: 6 }), incident), { maxLength: 2 })

function stepsOf(orders: Habits['order'][]): fc.Arbitrary<Step[]> {
  const kinds = fc.constantFrom<('feed' | 'rescan')[]>(
    ['feed'],
    ['rescan'],
    ['feed', 'feed'],
    ['rescan', 'rescan'],
    ['feed', 'rescan'],
  )
  const step: fc.Arbitrary<Step> = fc.oneof(
    { weight: 2, arbitrary: fc.record({ do: fc.constant('insert' as const), ages }) },
    { weight: 4, arbitrary: fc.record({ do: fc.constant('turns' as const), kinds, incidents }) },
    fc.record({ do: fc.constant('expire' as const) }),
    fc.record({ do: fc.constant('reorder' as const), order: fc.constantFrom(...orders) }),
  )
  return fc.array(step, { minLength: 1, maxLength: 14 })
}

function habitsOf(given: Partial<Record<keyof Habits, fc.Arbitrary<unknown>>>) {
  return fc.record({
    order: fc.constant('byTime'),
    end: fc.constantFrom('null', 'absent', 'blank', 'echo', 'inclusive'),
    repeats: fc.boolean(),
    sizeLimit: fc.constant(1_000),
    readable: fc.constantFrom(0, 1, 2, 1_000, 1_000),
    ignoresTimes: fc.constant(false),
    places: fc.constantFrom(1, 3, 10, 40),
    seed: fc.nat(1_000_000),
    ...given,
  }) as fc.Arbitrary<Habits>
}

const rescan = { everyMs: 1, backMs: 7 * 24 * hourMs }
const unordered: Habits['order'][] = ['newest', 'ascending', 'shuffled']
const kinds: { feed: PolledFeed; habits: fc.Arbitrary<Habits>; orders: Habits['order'][] }[] = [
  {
    feed: aFeed({ startMs, rescan }),
    habits: habitsOf({ ignoresTimes: fc.boolean() }),
    orders: ['byTime'],
  },
  {
    feed: aCredentialFeed({ startMs, rescan: { everyMs: 1, backMs: 0 } }),
    habits: habitsOf({ order: fc.constantFrom(...unordered, 'byTime') }),
    orders: [...unordered, 'byTime'],
  },
  {
    feed: aCredentialSearch({ startMs, rescan, everyMs: 1 }),
    habits: habitsOf({
      order: fc.constantFrom(...unordered, 'byTime'),
      sizeLimit: fc.constantFrom(10, 30, 60, 1_000),
      ignoresTimes: fc.boolean(),
    }),
    orders: [...unordered, 'byTime'],
  },
  {
    feed: aCookieFeed({ startMs, rescan, everyMs: 1 }),
    habits: habitsOf({
      order: fc.constantFrom(...unordered, 'byTime'),
      sizeLimit: fc.constantFrom(10, 30, 60, 1_000),
      ignoresTimes: fc.boolean(),
    }),
    orders: [...unordered, 'byTime'],
  },
  {
    feed: anEventSearch({ startMs, rescan }),
    habits: habitsOf({ ignoresTimes: fc.boolean() }),
    orders: ['byTime'],
  },
]

/** The others take no times, or show them in no order: what is older than the start is never sent. */
function learnsBaseline({ type }: PolledFeed): boolean {
  return !type.includes('credential') && type !== 'cookies'
}

function showsOlder({ type }: PolledFeed, { ignoresTimes }: Habits): boolean {
  return !['credential_search', 'cookies'].includes(type) || ignoresTimes
}

test.each(kinds)(
  'whatever happened, a feed of type $feed.type has each item exactly once in the end',
  async ({ feed, habits, orders }) => {
    await fc.assert(
      fc.asyncProperty(habits, ages, stepsOf(orders), async (given, first, steps) => {
        await tests.redis.flushdb() // a scan reads every key that is there
        const ledger = await tests.ledger()
        const history = createHistory({ ledger: ledger, feed, habits: given })
        for (const step of [{ do: 'insert', ages: first } as const, ...steps]) {
          await history.go(step)
        }
        await history.settle()
        const { startBoundMs: floorMs } = await openFeed(ledger, feed.name, feed.startMs)
        const { items } = history.service
        const records = await recordsOf(ledger)
        const taken = new Set(records.map(({ uid }) => uid))
        const isBelow = ({ createdMs }: (typeof items)[number]): boolean => createdMs < floorMs
        for (const item of items) {
          const sight = history.sightOf(item)
          if (isBelow(item) && sight === 'either') continue
          const isNew = !isBelow(item) || (sight === 'new' && learnsBaseline(feed))
          expect([item.id, taken.has(history.uidOf(item))]).toEqual([item.id, isNew])
        }
        for (const record of records) {
          expect(record.items).toHaveLength(1)
          expect(record.sightings).toHaveLength(1)
        }
        const { feeds, sinks } = await expectConservation(ledger)
        expect(feeds[feed.name]).toMatchObject({
          new: taken.size,
          baseline: showsOlder(feed, given) ? items.length - taken.size : 0,
          late: history.late(),
          quarantined: 0,
          raised: 0,
        })
        expect(sinks['soc']?.created ?? 0).toBe(taken.size)
      }),
      { numRuns: histories, ...(wanted === undefined && seeded()) },
    )
  },
  300_000 * histories, // for what hangs
)
