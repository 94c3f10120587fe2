import type { Config } from '../config/config.ts'
import type { FeedConfig } from '../feed-types/config.ts'
import { typeOf } from '../feed-types/feed-types.ts'
import { feedId, loadLane } from '../feeds/lane-store.ts'
import {
  chooseNext,
  type FeedPlace,
  newPlace,
  pollFloor,
  rateOf,
  shareAt,
} from '../feeds/next-feed.ts'
import { readsAll } from '../feeds/scan.ts'
import { redisNow } from '../redis/scripts.ts'
import type { FeedState, Unreadable, Walk } from '../store/feed-state.ts'
import type { Organizations } from '../upstream/organizations.ts'
import { type CommonOptions, type Context, loadConfigFile, print } from './context.ts'
import {
  type FeedReport,
  knownOrganizations,
  type LeftFeed,
  reportFeeds,
  reportLeftFeeds,
} from './feed-report.ts'
import { askedJson, boundsInWords, feedInWords } from './feed-words.ts'
import { type OpenLedger, withLedger } from './open-ledger.ts'
import { counted, harmless, isoTime, spanInWords, timeInWords } from './terminal.ts'

export interface ListOptions extends CommonOptions {
  why?: true
}

export async function listFeeds(context: Context, options: ListOptions): Promise<void> {
  const { config } = loadConfigFile(context, options.config)
  const { reports, left, whys } = await withLedger(config, async (ledger) => ({
    reports: await reportFeeds(ledger, config),
    left: await reportLeftFeeds(ledger, config),
    whys: options.why && (await explainFeeds(ledger, config)),
  }))
  print(context, options, {
    json: [
      ...reports.map((report) => ({ ...feedJson(report), ...whyJson(whys?.get(report.feed)) })),
      ...left.map(leftFeedJson),
    ],
    lines: () => [
      ...reports.flatMap((report) => [
        ...feedLines(context, report),
        ...whyLines(context, whys?.get(report.feed)),
      ]),
      ...left.flatMap((feed) => leftFeedLines(context, feed)),
    ],
  })
}

function whyJson(why: FeedWhy | undefined): Record<string, unknown> {
  if (!why) return {}
  const { isNext, words, place, eventsPerHour, share } = why
  return {
    polling: {
      is_next: isNext,
      why: words,
      read_at: isoTime(place.readAtMs),
      interval_seconds: place.intervalMs === undefined ? null : place.intervalMs / 1000,
      events_per_hour: eventsPerHour,
      share,
    },
  }
}

function whyLines({ terminal }: Context, why: FeedWhy | undefined): string[] {
  if (!why) return []
  return [`  ${why.isNext ? terminal.paint('green', why.words) : why.words}`]
}

function leftFeedJson({ name, account, state, counts }: LeftFeed): Record<string, unknown> {
  return {
    feed: name,
    account,
    is_configured: false,
    last_success: isoTime(state?.lastSuccessMs),
    last_caught_up: isoTime(state?.lastCaughtUpMs),
    newest_event: isoTime(state?.newestMs),
    counts,
  }
}

function leftFeedLines(
  { terminal }: Context,
  { name, account, state, counts }: LeftFeed,
): string[] {
  const head = terminal.paint('bold', harmless(name))
  return [
    `${head} (account ${account}): ${terminal.paint('yellow', 'not configured any more, not read')}`,
    `  last success ${time(state?.lastSuccessMs)}, last caught up ${time(state?.lastCaughtUpMs)}`,
    `  ${counts.fetched} fetched, ${counts.new} of them new; "tocsin accounts list" shows what waits`,
  ]
}

function feedJson({
  feed,
  state,
  lagMs,
  lagObjectiveMs,
  counts,
  quarantined,
  bounds,
}: FeedReport): Record<string, unknown> {
  const { walk, paused, refused, unreadable } = state ?? {}
  return {
    feed: feed.name,
    type: feed.type,
    ...askedJson(feed),
    account: feed.account,
    is_configured: true,
    has_polled: state !== undefined,
    paused: paused ? { reason: paused.reason, since: isoTime(paused.sinceMs) } : null,
    refused: refused ? { reason: refused.reason, since: isoTime(refused.sinceMs) } : null,
    lag_seconds: lagMs === undefined ? null : lagMs / 1000,
    lag_objective_seconds: lagObjectiveMs / 1000,
    last_success: isoTime(state?.lastSuccessMs),
    last_caught_up: isoTime(state?.lastCaughtUpMs),
    newest_event: isoTime(state?.newestMs),
    floor: isoTime(state?.floorMs),
    is_backfilling: state?.isBackfilling ?? false,
    walk: walk
      ? {
          reason: walk.reason,
          started_at: isoTime(walk.startedAtMs),
          has_cursor: walk.cursor !== null,
        }
      : null,
    remark: remarkOn({ feed, state }) ?? null,
    sweep: sweepJson({ feed, state, bounds }),
    lateness: state?.lateness ?? {},
    quarantined,
    unreadable: unreadable
      ? {
          since: isoTime(unreadable.sinceMs),
          shown: unreadable.shown,
          unread: unreadable.unread,
          problem: unreadable.problem,
        }
      : null,
    counts: counts ?? null,
  }
}

function sweepJson({
  feed,
  state,
  bounds,
}: Pick<FeedReport, 'feed' | 'state' | 'bounds'>): object | null {
  if (feed.sweep === undefined) return null
  return {
    every_seconds: feed.sweep.everyMs === undefined ? null : feed.sweep.everyMs / 1000,
    last_completed: isoTime(state?.sweep.lastCompletedMs),
    running_since: isoTime(runningSweep(state)?.startedAtMs),
    by_match_time: bounds?.isMatched ?? false,
    found_within_seconds: bounds && bounds.soonMs / 1000,
    whole_within_seconds: bounds && bounds.wholeMs / 1000,
  }
}

function runningSweep(state: FeedReport['state']): Walk | undefined {
  return state?.sweep.isDone ? undefined : state?.sweep.walk
}

function feedLines(context: Context, report: FeedReport): string[] {
  const { terminal } = context
  const { feed, state, counts } = report
  const head = `${terminal.paint('bold', feed.name)} (${harmless(feedInWords(feed))}, account ${feed.account})`
  if (state === undefined) return [`${head}: has not polled yet`]
  const paused = state.paused && terminal.paint('yellow', pauseInWords(state.paused))
  const unreadable = state.unreadable && terminal.paint('red', unreadableInWords(state.unreadable))
  const { fetched = 0, duplicate = 0, quarantined = 0, baseline = 0 } = counts ?? {}
  return [
    `${head}: ${[paused, unreadable, lagInWords(context, report)].find(Boolean)}`,
    ...(paused && unreadable ? [`  ${unreadable}`] : []),
    ...(paused || unreadable ? [`  ${lagInWords(context, report)}`] : []),
    ...quarantineLines(context, report),
    ...refusalLines(context, state),
    `  last success ${time(state.lastSuccessMs)}, last caught up ${time(state.lastCaughtUpMs)}${state.isBackfilling ? ', working off a backlog' : ''}`,
    `  newest event ${time(state.newestMs)}, floor ${time(state.floorMs)}`,
    `  ${walkInWords(report)}`,
    ...remarkLines(context, report),
    `  ${sweepInWords(report)}`,
    `  ${fetched} fetched: ${counts?.new ?? 0} new, ${duplicate} known, ${quarantined} quarantined, ${baseline} older than the floor`,
    `  of these ${lateInWords(report)}, ${counts?.raised ?? 0} were raised in severity`,
  ]
}

function time(ms: number | undefined): string {
  return ms === undefined ? 'never' : timeInWords(ms)
}

function pauseInWords({ reason, sinceMs }: { reason: string; sinceMs: number }): string {
  return `paused since ${timeInWords(sinceMs)}: ${harmless(reason)}`
}

function refusalLines({ terminal }: Context, { refused }: FeedState): string[] {
  if (!refused) return []
  const since = `stopped since ${timeInWords(refused.sinceMs)}`
  return [`  ${terminal.paint('red', `${since}: ${harmless(refused.reason)}`)}`]
}

function unreadableInWords({ sinceMs, shown, unread, problem }: Unreadable): string {
  const page = `${unread} of ${shown} items of its last page`
  return `unreadable since ${timeInWords(sinceMs)}: ${page}, ${harmless(problem, 200)}`
}

function quarantineLines({ terminal }: Context, { feed, quarantined }: FeedReport): string[] {
  if (quarantined === 0) return []
  const said = `${counted(quarantined, 'item')} in the quarantine, which nobody was told of`
  return [`  ${terminal.paint('yellow', said)}: tocsin quarantine list --feed ${feed.name}`]
}

function lagInWords(
  { terminal }: Context,
  { lagMs = 0, lagObjectiveMs, state }: FeedReport,
): string {
  const isBad = lagMs > lagObjectiveMs || state?.unreadable !== undefined
  const lag = `lag ${spanInWords(lagMs)}, objective ${spanInWords(lagObjectiveMs)}`
  return terminal.paint(isBad ? 'red' : 'green', lag)
}

function walkInWords({ state }: FeedReport): string {
  if (state?.isRewound) return 'rewound: a new walk begins with the next poll'
  if (!state?.walk) return 'no walk yet'
  const { reason, startedAtMs, cursor } = state.walk
  const place = cursor === null ? 'at its beginning' : 'with a cursor'
  return `walk since ${timeInWords(startedAtMs)} (${reason.replaceAll('_', ' ')}), ${place}`
}

function remarkLines({ terminal }: Context, report: FeedReport): string[] {
  const remark = remarkOn(report)
  return remark === undefined ? [] : [`  ${terminal.paint('yellow', remark)}`]
}

function remarkOn({ feed, state }: Pick<FeedReport, 'feed' | 'state'>): string | undefined {
  return state?.walk && typeOf(feed).unordered?.remark?.(state.walk, feed)
}

const ages = { '1m': 'a minute', '10m': '10 min', '1h': 'an hour', '1d': 'a day', '7d': '7 days' }

/** How old late events were when they were found: whether the vendor is late can be read here. */
function lateInWords({ state, counts }: FeedReport): string {
  const { lateness = {} } = state ?? {}
  const known = Object.entries(ages).flatMap(([age, words]) => {
    const count = lateness[age] ?? 0
    return count > 0 ? [`${count} by up to ${words}`] : []
  })
  const longer = lateness['more'] ? [`${lateness['more']} by more`] : []
  const parts = [...known, ...longer]
  return `${counts?.late ?? 0} came late${parts.length > 0 ? ` (${parts.join(', ')})` : ''}`
}

function sweepInWords(report: FeedReport): string {
  const { feed, state } = report
  if (feed.sweep === undefined) return 'sweeps are switched off'
  if (state && readsAll(feed, state)) return 'each poll reads all there is: no sweeps are needed'
  const last = `last sweep ended ${time(state?.sweep.lastCompletedMs)}`
  const running = runningSweep(state)
  const said = running ? `${last}, one runs since ${timeInWords(running.startedAtMs)}` : last
  return report.bounds ? `${said}; ${boundsInWords(feed, report.bounds)}` : said
}

/** Which feed of each organization and tier is read next, and why, by what the replicas handed over last. */

/** Why a feed is read next, or not yet. */
interface FeedWhy {
  /** As the daemon would choose now. */
  isNext: boolean
  words: string
  place: FeedPlace
  eventsPerHour: number
  /** The part of the limit that feeds may use now. */
  share: number
}

async function explainFeeds(
  ledger: OpenLedger,
  { accounts, feeds, limits }: Pick<Config, 'accounts' | 'feeds' | 'limits'>,
): Promise<ReadonlyMap<FeedConfig, FeedWhy>> {
  const nowMs = await redisNow(ledger)
  const organizations = await knownOrganizations(ledger, accounts)
  const lanes = new Map<string, FeedConfig[]>()
  for (const feed of feeds) {
    const { organization, tier } = organizations.laneOf(feed.account, feed.tier)
    const id = `${organization}.${tier}`
    lanes.set(id, [...(lanes.get(id) ?? []), feed])
  }
  const whys = new Map<FeedConfig, FeedWhy>()
  const floorMs = pollFloor(feeds, limits.pollsPerSecond)
  for (const polled of lanes.values()) {
    const about = { organizations, floorMs, nowMs }
    for (const [feed, why] of await explainLane(ledger, polled, about)) {
      whys.set(feed, why)
    }
  }
  return whys
}

async function explainLane(
  { redis, keys }: OpenLedger,
  feeds: readonly FeedConfig[],
  about: { organizations: Organizations; floorMs: number; nowMs: number },
): Promise<[FeedConfig, FeedWhy][]> {
  const { organizations, floorMs, nowMs } = about
  const [first] = feeds
  if (!first) return []
  const lane = organizations.laneOf(first.account, first.tier)
  const { state, places } = await loadLane(redis, keys, lane, { generation: undefined, nowMs })
  const share = shareAt(state.share, organizations.shareOf(lane), nowMs)
  const budget = { perSecond: organizations.limitOf(lane) * share, floorMs }
  const candidates = feeds.map((feed) => {
    const { everyMs, longestMs } = feed
    const place = places.get(feedId(feed)) ?? newPlace()
    return { config: feed, feed: { id: feedId(feed), everyMs, longestMs }, place }
  })
  const choice = chooseNext(candidates, state.fleet, budget, nowMs)
  return candidates.map(({ config, place }) => {
    const isNext = 'feed' in choice && choice.feed === feedId(config)
    const why = isNext ? choice.why : undefined
    const eventsPerHour = rateOf(place, state.fleet) * 3_600
    const words = whyInWords(place, { why, eventsPerHour, nowMs, everyMs: config.everyMs })
    return [config, { isNext, words, place, eventsPerHour, share }]
  })
}

const reasons = {
  overdue: 'it has waited longest, and for long enough',
  more: 'more pages wait',
  rate: 'most waits there, by its rate and its age',
} as const

function whyInWords(
  place: FeedPlace,
  about: {
    why: keyof typeof reasons | undefined
    eventsPerHour: number
    nowMs: number
    everyMs: number | undefined
  },
): string {
  const { why, eventsPerHour, nowMs, everyMs } = about
  const { readAtMs, wait, intervalMs } = place
  if (wait && wait.untilMs > nowMs) {
    const left = spanInWords(wait.untilMs - nowMs)
    return `left alone for ${left}: ${harmless(wait.why)}`
  }
  const next = why === undefined ? 'others come first' : `read next: ${reasons[why]}`
  if (readAtMs === undefined) return `${next}; not read to its end yet`
  const ago = `read ${spanInWords(Math.max(0, nowMs - readAtMs))} ago`
  if (everyMs !== undefined) return `${next}; ${ago}, every ${spanInWords(everyMs)}`
  const interval = intervalMs === undefined ? '' : `, lately every ${spanInWords(intervalMs)}`
  return `${next}; ${ago}${interval}, about ${eventsPerHour.toFixed(1)} new events an hour`
}
