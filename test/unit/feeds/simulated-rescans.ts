/**
 * How soon late events are found, and at which cost, in simulated time: the shipped code chooses what is
 * read when; only the service and the commit are played.
 */
import { toRescanLoad, planRescans, type RescanPlan } from '../../../src/feeds/rescan-plan.ts'
import { fieldsAtEnd, nextRescan, readNotes, type Rescan } from '../../../src/feeds/rescan.ts'
import { tailScan } from '../../../src/feeds/scan.ts'
import type { FeedState } from '../../../src/store/feed-state.ts'
import { aFeed, aFeedState } from '../../support/feeds.ts'

export const secondMs = 1_000
export const minuteMs = 60_000
const hourMs = 3_600_000
export const dayMs = 24 * hourMs
export const weekMs = 7 * dayMs
export const beginMs = Date.UTC(2026, 0, 5)
export const feed = aFeed({ startMs: dayMs, rescan: { everyMs: undefined, backMs: weekMs } })
export const lateness = [
  10 * secondMs,
  2 * minuteMs,
  10 * minuteMs,
  hourMs,
  6 * hourMs,
  dayMs,
  3 * dayMs,
]

export interface SimulatedEvent {
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
export function history(
  perWeek: number,
  latenessMs: readonly number[],
  seed: number,
): { all: SimulatedEvent[]; probes: SimulatedEvent[][] } {
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

export interface RescanScene {
  perWeek: number
  isMatched: boolean
  /** Feeds that share the tier, each with as many events. */
  feeds: number
}

export function planOf({ perWeek, isMatched, feeds }: RescanScene): RescanPlan {
  const load = { ...toRescanLoad(feed), perWeek, isMatched }
  return planRescans(
    Array.from({ length: feeds }, () => load),
    1,
  )
}

/** Runs one feed's rescans for ten days; returns how many requests they took. */
export function simulate(all: readonly SimulatedEvent[], scene: RescanScene): number {
  const { isMatched } = scene
  const plan = planOf(scene)
  const byVisible = all.toSorted((a, b) => a.visibleMs - b.visibleMs)
  let state: FeedState = firstState()
  let requests = 0
  for (let steps = 0; state.nowMs < beginMs + 10 * dayMs; steps += 1) {
    if (steps > 200_000) throw new Error('the rescans do not come forward')
    const matchedNowMs = isMatched ? state.nowMs : undefined
    const next = nextRescan(feed, state, { plan, matchClockMs: matchedNowMs })
    if ('rescan' in next) {
      requests += read({ all, byVisible }, next.rescan, state.nowMs)
      state = ended(state, next.rescan)
      state = { ...state, nowMs: state.nowMs + secondMs }
    } else {
      const newestMs = state.nowMs // the tail reads in between
      state = { ...state, newestMs, nowMs: Math.max(state.nowMs + 1, next.dueMs ?? Infinity) }
    }
  }
  return requests
}

export function firstState(): FeedState {
  const opened = aFeedState({ nowMs: beginMs, startBoundMs: beginMs - dayMs })
  const walk = tailScan(feed, opened)
  return { ...opened, scan: walk, isEnded: true, lastCaughtUpMs: beginMs, newestMs: beginMs }
}

/** What a scan shows is found; ten items a page. */
function read({ all, byVisible }: Orders, { scan: walk }: Rescan, nowMs: number): number {
  const { fromMs = 0, toMs = 0 } = walk.span ?? {}
  const isByMatch = readNotes(walk).kind === 'matched'
  const [events, time] = isByMatch
    ? ([byVisible, 'visibleMs'] as const)
    : ([all, 'createdMs'] as const)
  let shown = 0
  for (let at = firstFrom(events, time, fromMs); at < events.length; at += 1) {
    const event = events[at]!
    if (event[time] > toMs) break
    if (event.visibleMs > nowMs) continue
    shown += 1
    event.foundMs ??= nowMs
  }
  return Math.max(1, Math.ceil(shown / 10))
}

/** The same events, by when they were created and by when they are shown. */
interface Orders {
  all: readonly SimulatedEvent[]
  byVisible: readonly SimulatedEvent[]
}

/** The place of the first event whose `time` is no earlier. */
function firstFrom(
  events: readonly SimulatedEvent[],
  time: 'createdMs' | 'visibleMs',
  fromMs: number,
): number {
  let [low, high] = [0, events.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if (events[middle]![time] < fromMs) low = middle + 1
    else high = middle
  }
  return low
}

/** The state as the commit of a scan's last page leaves it. */
export function ended(state: FeedState, { place, scan: walk }: Rescan): FeedState {
  const fields = Object.fromEntries(fieldsAtEnd(walk))
  const rungMs = [...state.rescans.rungMs]
  for (const [name, value] of Object.entries(fields)) {
    if (name.startsWith('rung:')) rungMs[Number(name.slice(5))] = Number(value)
  }
  const { matched, per_week: perWeek } = fields
  return {
    ...state,
    [place]: { ...state[place], scan: walk, isDone: true },
    rescans: {
      ...state.rescans,
      rungMs,
      perWeek: perWeek === undefined ? state.rescans.perWeek : Number(perWeek),
      snapshotId: fields['snapshot_of'] ?? state.rescans.snapshotId,
      matched:
        matched === undefined
          ? state.rescans.matched
          : (JSON.parse(matched) as FeedState['rescans']['matched']),
    },
  }
}

export function delays(probes: readonly SimulatedEvent[]): { meanMs: number; mostMs: number } {
  const all = probes.map(({ visibleMs, foundMs = Infinity }) => foundMs - visibleMs)
  return { meanMs: all.reduce((sum, ms) => sum + ms, 0) / all.length, mostMs: Math.max(...all) }
}
