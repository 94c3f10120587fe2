/**
 * A lane in simulated time: the shipped rule chooses what is read, the shipped poller reads scripted services
 * page by page into a real ledger whose scripts go by the same clock. Answers take no time.
 */
import type { CallOptions } from '../../src/upstream/call.ts'
import type { PolledFeed } from '../../src/feeds/types/polled-feed.ts'
import {
  chooseNext,
  minPollInterval,
  newFeedPlace,
  newFleetPlace,
  notePage,
} from '../../src/feeds/lanes/next-feed.ts'
import { nextPollMs } from '../../src/feeds/poll-run.ts'
import { createRescanBudget, rescanShare, type RescanBudget } from '../../src/feeds/rescan-plan.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { createMetrics, type Metrics } from '../../src/lib/metrics/metrics.ts'
import type { AccountLedger } from '../../src/store/account-ledger.ts'
import { type FeedState, openFeed } from '../../src/store/feed-state.ts'
import type { UpstreamClient } from '../../src/upstream/client.ts'
import type { UpstreamError } from '../../src/upstream/error.ts'
import { aFeed } from './feeds.ts'
import { committedUid, type RedisForTests } from './ledger.ts'
import { pollerOf } from './poller.ts'
import { ledgerInTime } from './script-clock.ts'
import { createScriptedService, type Habits } from './scripted-service.ts'

export interface Arrival {
  feed: number
  /** When the events become visible, ms from the beginning. */
  atMs: number
  /** How far their one date is ahead of that, ms; negative: they are late. */
  aheadMs: number
  count: number
}

export interface SeenEvent extends Arrival {
  /** When it was taken in, ms from the beginning. */
  foundAtMs: number
}

interface LaneScene {
  tests: RedisForTests
  feeds: number
  /** How a feed ends, in which order, and how short its pages are. */
  habits: Pick<Habits, 'end'> & Partial<Habits>
  arrivals: readonly Arrival[]
  /** The answer to such a request of a tail, ms from the beginning; undefined: as it should be. */
  failure?: (from: string | null, atMs: number) => UpstreamError | undefined
  /** How far the clocks of the service, and of its events, are ahead of all others. */
  skewMs?: number
  /** When reading ends though something was not found, ms from the beginning. */
  untilMs: number
}

export interface LaneReading {
  seen: SeenEvent[]
  budget: RescanBudget
  feeds: PolledFeed[]
  metrics: Metrics
  /** Requests for pages of tails. */
  requests: number
  state: (feed: number) => Promise<FeedState>
}

const beginMs = Date.UTC(2026, 10, 2)
/** Requests that the lane sends. */
export const perSecond = 0.7
const spacingMs = 1_000 / perSecond
const startMs = 3 * 86_400_000

export async function readInTime(scene: LaneScene): Promise<LaneReading> {
  const { tests, arrivals, skewMs = 0, untilMs } = scene
  await tests.redis.flushdb()
  let nowMs = beginMs
  const clock = { ...systemClock, now: () => nowMs }
  const feeds = Array.from({ length: scene.feeds }, (_none, at) =>
    aFeed({
      name: `feed-${at}`,
      identifierGroup: at,
      startMs,
      longestMs: undefined,
      rescan: { everyMs: undefined, backMs: 7 * 86_400_000 },
    }),
  )
  const services = feeds.map((_feed, seed) =>
    createScriptedService({ ...usualHabits, ...scene.habits, seed }, clock.now),
  )
  const found = new Map<string, number>()
  function noteFound(uid: string): void {
    if (found.has(uid)) throw new Error(`${uid} was taken in twice`)
    found.set(uid, nowMs - beginMs)
  }
  const ledger = ledgerInTime(await tests.ledger(), clock.now)
  const metrics = createMetrics({ clock })
  const budget = createRescanBudget(
    feeds,
    () => 'lane',
    () => perSecond,
  )
  const client = {
    ...services[0]!.client,
    clockSkewMs: () => skewMs,
    call: ((operation: never, request: { identifier_group_id: number }, asked: CallOptions) =>
      services[request.identifier_group_id]!.client.call(
        operation,
        request as never,
        asked,
      )) as UpstreamClient['call'],
  }
  const noting: AccountLedger = {
    ...ledger,
    async runJson<T>(script: string, ...args: (string | number)[]) {
      const answer = await ledger.runJson<T>(script, ...args)
      const page = JSON.parse(String(args[0])) as { feed: string }
      for (const place of (answer as { fresh?: number[] }).fresh ?? [])
        noteFound(`${page.feed} ${committedUid(args, place)}`)
      return answer
    },
  }
  const poller = pollerOf(
    { client, ledger: noting },
    { plan: () => ({ decisions: [], items: [] }), rescanBudget: budget, clock, metrics },
  )
  const minIntervalMs = minPollInterval(feeds, perSecond)
  const fleet = newFleetPlace(nowMs)
  const lane = feeds.map((config, at) => ({
    config,
    feed: { id: String(at) },
    place: newFeedPlace(),
    rescan: { atMs: nowMs, pages: 0 },
  }))
  const { signal } = new AbortController()
  const onePage = { signal, mayContinue: () => Promise.resolve(false) }
  let rescansFreeAtMs = 0
  let requests = 0

  async function readTail({ config, place }: (typeof lane)[number]): Promise<void> {
    const askedAtMs = nowMs
    await poller.pollOnce(config, {
      kind: 'feed',
      ...onePage,
      onPage: (page) => notePage(place, fleet, { askedAtMs, ...page }),
    })
    requests += 1
    nowMs += spacingMs
  }

  async function readRescan({ config, rescan }: (typeof lane)[number]): Promise<void> {
    const outcome = await poller.pollOnce(config, {
      kind: 'rescan',
      ...onePage,
      pagesBefore: rescan.pages,
      onPage: () => (rescan.pages += 1),
    })
    rescan.atMs = nextPollMs(outcome, { nowMs, failures: 0 })
    if (outcome.status === 'not_due') {
      rescan.atMs += Math.max(1_000, Math.min((outcome.untilMs ?? Infinity) - nowMs, 15_000))
      return // without a request
    }
    rescansFreeAtMs = nowMs + spacingMs / rescanShare
    nowMs += spacingMs
  }

  const waiting = arrivals.toSorted((a, b) => a.atMs - b.atMs)
  const shown: { event: Arrival; uid: string }[] = []
  while (nowMs < beginMs + untilMs && (waiting.length > 0 || found.size < shown.length)) {
    while (waiting[0] && waiting[0].atMs <= nowMs - beginMs) {
      const event = waiting.shift()!
      const service = services[event.feed]!
      for (let one = 0; one < event.count; one += 1) {
        service.insert(Math.round(beginMs + skewMs + event.atMs + event.aheadMs))
        shown.push({ event, uid: `feed-${event.feed} paste/x/${service.items.length}` })
      }
    }
    const choice = chooseNext(lane, fleet, { perSecond, minIntervalMs }, nowMs)
    const owed = lane.toSorted((a, b) => a.rescan.atMs - b.rescan.atMs)[0]!
    const isTailDue = 'feed' in choice
    if (owed.rescan.atMs <= nowMs && (rescansFreeAtMs <= nowMs || !isTailDue))
      await readRescan(owed)
    else if (isTailDue) await readTail(lane[Number(choice.feed)]!)
    else nowMs = Math.max(nowMs + 1, Math.min(choice.atMs, owed.rescan.atMs))
  }
  return {
    seen: shown.map(({ event, uid }) => ({ ...event, foundAtMs: found.get(uid) ?? Infinity })),
    budget,
    feeds,
    metrics,
    requests,
    state: (at) => openFeed(ledger, `feed-${at}`, startMs),
  }
}

const usualHabits: Omit<Habits, 'end' | 'seed'> = {
  order: 'byTime',
  repeats: false,
  sizeLimit: 1_000,
  readable: 1_000,
  ignoresTimes: false,
  places: Infinity,
}
