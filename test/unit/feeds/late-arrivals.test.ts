import { expect, test } from 'vitest'
import { createRescanBudget, maxFindDelayMs, rungWindows } from '../../../src/feeds/rescan-plan.ts'
import { nextRescan, readNotes } from '../../../src/feeds/rescan.ts'
import {
  beginMs,
  dayMs,
  delays,
  ended,
  feed,
  firstState,
  history,
  lateness,
  minuteMs,
  planOf,
  secondMs,
  simulate,
  weekMs,
} from './simulated-rescans.ts'
import { aFeed } from '../../support/feeds.ts'
import { isLongRun } from '../../support/runs.ts'

function minutes(ms: number): string {
  return `${(ms / minuteMs).toFixed(1)} min`
}

test.each([
  { perWeek: 1_000, feeds: 1, isMatched: false, share: 0.05 },
  { perWeek: 5_000, feeds: 1, isMatched: false, share: 0.1 },
  ...(isLongRun ? [{ perWeek: 20_000, feeds: 1, isMatched: false, share: 0.1 }] : []),
  { perWeek: 1_000, feeds: 60, isMatched: false, share: 0.11 },
  { perWeek: 1_000, feeds: 1, isMatched: true, share: 0.03 },
  { perWeek: 20_000, feeds: 1, isMatched: true, share: 0.1 },
])(
  'what comes late is found in time and within the share of rescans: %o',
  ({ perWeek, feeds, isMatched, share }) => {
    const { all, probes } = history(perWeek, lateness, perWeek + (isMatched ? 1 : 0))
    const scene = { perWeek, isMatched, feeds }
    const requests = feeds * simulate(all, scene)
    const plan = planOf(scene)
    const windows = rungWindows(weekMs)
    const lines = lateness.map((lateMs, at) => {
      const { meanMs, mostMs } = delays(probes[at] ?? [])
      const boundMs = isMatched
        ? 2 * minuteMs + 5 * secondMs
        : maxFindDelayMs(windows, plan, lateMs) + 5 * secondMs
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
      const { place, scan: walk } = found.rescan
      const items = (perWeek * (walk.span!.toMs! - walk.span!.fromMs)) / weekMs
      const fetched = (readNotes(walk).fetched ?? 0) + Math.min(10, items)
      const read = { place, scan: { ...walk, notes: { ...walk.notes, fetched } } }
      const isDone = fetched >= items
      if (isDone && readNotes(walk).kind === 'whole') readWhole.add(one.name)
      const running = { ...state, [place]: { ...state[place], scan: read.scan, isDone: false } }
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
