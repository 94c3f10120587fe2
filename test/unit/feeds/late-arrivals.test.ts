import { expect, test } from 'vitest'
import { createRescanBudget, describeLoad, planRescans } from '../../../src/feeds/rescan-plan.ts'
import { fieldsAtEnd, nextRescan, readNotes, type Rescan } from '../../../src/feeds/rescan.ts'
import { walkFor } from '../../../src/feeds/walk.ts'
import type { FeedState } from '../../../src/ledger/feed-state.ts'
import { aFeed, aFeedState } from '../../support/feeds.ts'

/*
 * How soon late events are found, and at which cost, in simulated time: the shipped code chooses what is
 * read when; only the service and the commit are played.
 */
const secondMs = 1_000
const minuteMs = 60_000
const hourMs = 3_600_000
const dayMs = 24 * hourMs
const weekMs = 7 * dayMs
const beginMs = Date.UTC(2026, 0, 5)
const feed = aFeed({ startMs: dayMs, sweep: { everyMs: undefined, backMs: weekMs } })

interface SimulatedEvent {
  createdMs: number
  visibleMs: number
  foundMs?: number
}

/** Deterministic numbers from 0 to 1. */
function numbers(seed: number): () => number {
  let state = seed
  return () => {
    state = (state * 1_664_525 + 1_013_904_223) % 2 ** 32
    return state / 2 ** 32
  }
}

/** Twenty probes of each lateness among `perWeek` punctual events, over nine days from the first poll. */
function history(perWeek: number, latenessMs: readonly number[], seed: number) {
  const random = numbers(seed)
  const all: SimulatedEvent[] = []
  for (let at = beginMs - weekMs; at < beginMs + 10 * dayMs; at += weekMs / perWeek) {
    const createdMs = at + random() * (weekMs / perWeek)
    all.push({ createdMs, visibleMs: createdMs })
  }
  const probes = latenessMs.map((lateMs) =>
    Array.from({ length: 20 }, () => {
      const visibleMs = beginMs + dayMs + random() * 8 * dayMs
      const probe: SimulatedEvent = { createdMs: visibleMs - lateMs, visibleMs }
      all.push(probe)
      return probe
    }),
  )
  return { all: all.toSorted((a, b) => a.createdMs - b.createdMs), probes }
}

/** Runs the feed's rescans for ten days; returns how many requests they took. */
function simulate(
  all: readonly SimulatedEvent[],
  { perWeek, isMatched }: { perWeek: number; isMatched: boolean },
): number {
  const plan = planRescans([{ ...describeLoad(feed), perWeek, isMatched }], 1)
  let state: FeedState = firstState()
  let requests = 0
  for (let steps = 0; state.nowMs < beginMs + 10 * dayMs; steps += 1) {
    if (steps > 200_000) throw new Error('the rescans do not come forward')
    const matchedNowMs = isMatched ? state.nowMs : undefined
    const next = nextRescan(feed, state, { plan, matchedNowMs })
    if ('rescan' in next) {
      requests += read(all, next.rescan, state.nowMs)
      state = ended(state, next.rescan)
      state = { ...state, nowMs: state.nowMs + secondMs }
    } else {
      const newestMs = state.nowMs // the tail reads in between
      state = { ...state, newestMs, nowMs: Math.max(state.nowMs + 1, next.dueMs ?? Infinity) }
    }
  }
  return requests
}

function firstState(): FeedState {
  const opened = aFeedState({ nowMs: beginMs, floorMs: beginMs - dayMs })
  const walk = walkFor(feed, opened)
  return { ...opened, walk, isEnded: true, lastCaughtUpMs: beginMs, newestMs: beginMs }
}

/** What a scan shows is found; ten items a page. */
function read(all: readonly SimulatedEvent[], { walk }: Rescan, nowMs: number): number {
  const { fromMs = 0, toMs = 0 } = walk.span ?? {}
  const isByMatch = readNotes(walk).kind === 'matched'
  let shown = 0
  for (const event of all) {
    const atMs = isByMatch ? event.visibleMs : event.createdMs
    if (!isByMatch && atMs > toMs) break
    if (event.visibleMs > nowMs || atMs < fromMs || atMs > toMs) continue
    shown += 1
    event.foundMs ??= nowMs
  }
  return Math.max(1, Math.ceil(shown / 10))
}

/** The state as the commit of a scan's last page leaves it. */
function ended(state: FeedState, { place, walk }: Rescan): FeedState {
  const fields = Object.fromEntries(fieldsAtEnd(walk))
  const rungMs = [...state.rescans.rungMs]
  for (const [name, value] of Object.entries(fields)) {
    if (name.startsWith('rung:')) rungMs[Number(name.slice(5))] = Number(value)
  }
  const { matched, per_week: perWeek } = fields
  return {
    ...state,
    [place]: { ...state[place], walk, isDone: true },
    rescans: {
      ...state.rescans,
      rungMs,
      perWeek: perWeek === undefined ? state.rescans.perWeek : Number(perWeek),
      snapshotOf: fields['snapshot_of'] ?? state.rescans.snapshotOf,
      matched:
        matched === undefined
          ? state.rescans.matched
          : (JSON.parse(matched) as FeedState['rescans']['matched']),
    },
  }
}

const lateness = [10 * secondMs, 2 * minuteMs, 10 * minuteMs, hourMs, 6 * hourMs, dayMs, 3 * dayMs]

function delays(probes: readonly SimulatedEvent[]): { meanMs: number; mostMs: number } {
  const all = probes.map(({ visibleMs, foundMs = Infinity }) => foundMs - visibleMs)
  return { meanMs: all.reduce((sum, ms) => sum + ms, 0) / all.length, mostMs: Math.max(...all) }
}

function minutes(ms: number): string {
  return `${(ms / minuteMs).toFixed(1)} min`
}

test.each([
  { perWeek: 1_000, isMatched: false, share: 0.05 },
  { perWeek: 5_000, isMatched: false, share: 0.1 },
  { perWeek: 20_000, isMatched: false, share: 0.1 },
  { perWeek: 1_000, isMatched: true, share: 0.03 },
  { perWeek: 20_000, isMatched: true, share: 0.1 },
])(
  'what comes late is found in time and within the share of rescans: %o',
  ({ perWeek, isMatched, share }) => {
    const { all, probes } = history(perWeek, lateness, perWeek + (isMatched ? 1 : 0))
    const requests = simulate(all, { perWeek, isMatched })
    const { stretch } = planRescans([{ ...describeLoad(feed), perWeek, isMatched }], 1)
    const lines = lateness.map((lateMs, at) => {
      const { meanMs, mostMs } = delays(probes[at] ?? [])
      const boundMs = isMatched
        ? 2 * minuteMs + 5 * secondMs
        : Math.max(2.5 * minuteMs, 0.62 * lateMs) * stretch + 5 * secondMs
      expect(mostMs, `late by ${minutes(lateMs)}`).toBeLessThanOrEqual(Math.max(boundMs, 0))
      return `${minutes(lateMs)}: mean ${minutes(meanMs)}, at most ${minutes(mostMs)}`
    })
    const used = requests / ((10 * dayMs) / secondMs)
    process.stdout.write(
      `${perWeek} a week, ${isMatched ? 'by match time' : 'by ladder'}: ${(100 * used).toFixed(1)} % of 1 request/s; ${lines.join('; ')}\n`,
    )
    expect(used).toBeLessThanOrEqual(share * 1.1)
  },
)

/** As many feeds of one tier, page by page, at a tenth of a request a second; how many were read whole. */
function readTogether(count: number, { perWeek, days }: { perWeek: number; days: number }) {
  const feeds = Array.from({ length: count }, (_none, at) => aFeed({ ...feed, name: `feed-${at}` }))
  const budget = createRescanBudget(
    feeds,
    () => 'one',
    () => 1,
  )
  const states = feeds.map(firstState)
  const pagesOfTurn = feeds.map(() => 0)
  const readWhole = new Set<string>()
  let next = 0
  for (let nowMs = beginMs; nowMs < beginMs + days * dayMs; nowMs += 10 * secondMs) {
    for (let tries = 0; tries < count; tries += 1, next += 1) {
      const at = next % count
      const [one, state] = [feeds[at]!, { ...states[at]!, nowMs, newestMs: nowMs }]
      const { perWeek: known } = state.rescans
      const plan = budget.plan(one, { perWeek: known, isMatched: false })
      const found = nextRescan(one, state, { plan }, pagesOfTurn[at])
      pagesOfTurn[at] = 'rescan' in found ? pagesOfTurn[at]! + 1 : 0
      if (!('rescan' in found)) continue
      const { place, walk } = found.rescan
      const items = (perWeek * (walk.span!.toMs! - walk.span!.fromMs)) / weekMs
      const fetched = (readNotes(walk).fetched ?? 0) + Math.min(10, items)
      const read = { place, walk: { ...walk, notes: { ...walk.notes, fetched } } }
      const isDone = fetched >= items
      if (isDone && readNotes(walk).kind === 'whole') readWhole.add(one.name)
      const running = { ...state, [place]: { ...state[place], walk: read.walk, isDone: false } }
      states[at] = isDone ? ended(state, read) : running
      next += 1
      break
    }
  }
  return readWhole.size
}

test('the whole window of each feed is read, though the short ones alone could use up all', () => {
  expect(readTogether(5, { perWeek: 50_000, days: 14 })).toBe(5)
})
