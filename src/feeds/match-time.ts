/**
 * Whether the service filters a feed by match time (`materialized_at`; docs/api-notes.md, Cursors and order).
 * Each account and type of feed is probed once; an item that disproves the answer revokes it, with a warning.
 */
import type { RoutedEvent } from '../store/intake.ts'
import type { FeedState, Walk } from '../store/feed-state.ts'
import { ServiceError } from '../upstream/error.ts'
import { typeOf } from '../feed-types/feed-types.ts'
import type { PolledFeed } from '../feed-types/feed-type.ts'
import { matchLagMs } from './rescan-plan.ts'
import { readNotes } from './rescan.ts'
import { advance } from './scan.ts'
import type { PollerOptions, PollTurn } from './poll-turn.ts'

const dayMs = 86_400_000

/** The service's clock where it filters this feed by match time; undefined where it does not. */
export async function matchedNow(
  options: PollerOptions,
  turn: PollTurn,
  state: FeedState,
): Promise<number | undefined> {
  const { capabilities, logger } = options
  const { feed } = turn
  // the same request without the filter must have shown something, or an empty answer means nothing
  if (!capabilities || !typeOf(feed).matchBody || state.newestMs === undefined) return undefined
  const known = capabilities(feed.account)
  const name = capabilityName(feed)
  let has = (await known.read(name))?.has
  if (has === undefined) {
    has = await probe(options, turn, state)
    if (has === undefined) return undefined
    await known.note(name, has)
    logger.info({ feed: feed.name, account: feed.account, has }, 'asked: filters by match time')
  }
  return has ? serviceNow(options, feed) : undefined
}

function serviceNow({ client, clock }: PollerOptions, { account }: PolledFeed): number {
  return clock.now() + (client(account).clockSkewMs() ?? 0)
}

function capabilityName(feed: PolledFeed): string {
  return `materialized_at ${feed.type}`
}

/**
 * A window in the future must be empty and one since ever must not; a refusal of the request, or any other
 * page, means that the filter is not honoured. undefined: nothing was learned, since the feed shows nothing at
 * all or the service failed; the ladder reads meanwhile.
 */
async function probe(
  options: PollerOptions,
  turn: PollTurn,
  state: FeedState,
): Promise<boolean | undefined> {
  const type = typeOf(turn.feed)
  const sinceEver = type.matchBody?.(turn.feed, { fromMs: 0, toMs: state.nowMs + dayMs })
  try {
    if (await ignoresFilter(options, turn, state)) return false
    if (await hasItems(options, turn, sinceEver)) return true
  } catch (error) {
    if (saysNo(error)) return false
    if (!(error instanceof ServiceError) || isForLater(error) || turn.signal.aborted) throw error
    const { name, account } = turn.feed
    const said = 'whether the service filters by match time could not be found out'
    const about = { feed: name, account, err: error }
    options.logger.repeated.warn(about, said, { cause: error.reason, list: 'feeds', name })
    return undefined
  }
  const unfiltered = type.body(turn.feed, { fromMs: 0 }, type.pageSizes[0])
  return (await hasItems(options, turn, unfiltered)) ? false : undefined
}

/** A window in the future must be empty, and not refused. */
async function ignoresFilter(
  options: PollerOptions,
  turn: PollTurn,
  { nowMs }: FeedState,
): Promise<boolean> {
  const future = { fromMs: nowMs + 365 * dayMs, toMs: nowMs + 366 * dayMs }
  try {
    const asked = typeOf(turn.feed).matchBody?.(turn.feed, future)
    return (await hasItems(options, turn, asked)) === true
  } catch (error) {
    if (saysNo(error)) return true
    throw error
  }
}

function saysNo(error: unknown): error is ServiceError {
  return error instanceof ServiceError && (error.status === 400 || error.status === 422)
}

/** Another request would fare no better just now. */
function isForLater({ reason }: ServiceError): boolean {
  return reason === 'rate_limited' || reason === 'auth'
}

/** After a scan by match time failed: a refusal takes the filter back. */
export async function noteMatchRefused(
  { capabilities }: PollerOptions,
  feed: PolledFeed,
  walk: Walk,
  error: unknown,
): Promise<void> {
  if (readNotes(walk).kind !== 'matched' || !saysNo(error)) return
  const why = `the service refuses it (${error.status}): late events are found by reading again from now on`
  await capabilities?.(feed.account).demote(capabilityName(feed), why)
}

/** A page without what is looked for is not yet the end. */
const mostPages = 5

/** undefined: not on the first pages. */
async function hasItems(
  { client, clock }: PollerOptions,
  { feed, kind, signal, dueSinceMs }: PollTurn,
  body: Record<string, unknown> = {},
  isWanted: (item: unknown) => boolean = () => true,
): Promise<boolean | undefined> {
  let walk: Walk = { fingerprint: '', body, cursor: null, reason: 'again', startedAtMs: 0 }
  for (let read = 0; read < mostPages; read += 1) {
    const { page } = await typeOf(feed).fetch(feed, {
      client: client(feed.account),
      walk,
      turn: { kind, name: feed.name, dueSinceMs },
      signal,
      nowMs: clock.now(),
    })
    if (page.items.some(isWanted)) return true
    const moved = advance(walk, page)
    if (!moved.hasMore) return false
    walk = moved.walk
  }
  return undefined
}

/**
 * Whether a page may be taken in: by match time only what was matched within its window, or what a service
 * shows that still heeds the filter. One that no longer does would tell all that stood below the start bound.
 */
export async function isCredible(
  options: PollerOptions,
  turn: PollTurn,
  state: FeedState,
  { asked, events }: { asked: Walk; events: readonly RoutedEvent[] },
): Promise<boolean> {
  const { feed } = turn
  const { fromMs = 0, toMs = Infinity } = asked.span ?? {}
  if (readNotes(asked).kind !== 'matched') return true
  // this machine's clock was ahead when the window was chosen, as the answer has shown
  if (asked.cursor === null && toMs > serviceNow(options, feed) - matchLagMs / 2) return false
  const odd = events.find(({ event: { matchedAtMs, createdAtMs } }) =>
    matchedAtMs === null
      ? (createdAtMs ?? Infinity) < state.floorMs
      : matchedAtMs < fromMs - inexactMs || matchedAtMs > toMs + inexactMs,
  )
  if (!odd || !(await ignoresFilter(options, turn, state))) return true
  await doubt(options, feed, `feed ${feed.name} was shown ${odd.event.uid} whatever its match time`)
  return false
}

/** By how much an item's own match time may differ from what the filter goes by. */
const inexactMs = 3_600_000

async function doubt(
  { capabilities, metrics }: PollerOptions,
  feed: PolledFeed,
  shown: string,
): Promise<void> {
  const why = `${shown}: late events are found by reading again from now on`
  await capabilities?.(feed.account).demote(capabilityName(feed), why)
  metrics.matchTimeDoubtedTotal.inc({ feed: feed.name })
}

/**
 * What a scan of the whole window finds new, though it was matched in time that was read by match time, and
 * which the filter does not show even now, proves that the filter is not to be relied on: from then on the
 * account is read by the ladder. What it does show has come into the feed since, as by a raised severity.
 */
export async function doubtMatchTime(
  options: PollerOptions,
  turn: PollTurn,
  { floorMs }: FeedState,
  found: { walk: Walk; newEvents: readonly RoutedEvent[] },
): Promise<void> {
  const { feed } = turn
  const { kind, matchedToMs } = readNotes(found.walk)
  if (kind !== 'whole' || matchedToMs === undefined) return
  const asked = found.newEvents.flatMap(({ event: { uid, matchedAtMs } }) => {
    const isRead = matchedAtMs !== null && matchedAtMs >= floorMs && matchedAtMs < matchedToMs
    return isRead ? [{ uid, matchedAtMs }] : []
  })
  for (const { uid, matchedAtMs } of asked.slice(0, mostAsked)) {
    if (await isShown(options, turn, { uid, matchedAtMs })) continue
    const missed = `feed ${feed.name} was shown ${uid} by its creation, and not by its match time`
    return doubt(options, feed, missed)
  }
}

/** Of one page: people may let hundreds back into a feed at once, and each costs a request. */
const mostAsked = 3

/** Whether the filter shows an event now; also where that could not be asked. */
async function isShown(
  options: PollerOptions,
  turn: PollTurn,
  { uid, matchedAtMs }: { uid: string; matchedAtMs: number },
): Promise<boolean> {
  const type = typeOf(turn.feed)
  const around = { fromMs: matchedAtMs - 60_000, toMs: matchedAtMs + 60_000 }
  const isIt = (item: unknown): boolean => {
    const parsed = type.parse(item, turn.feed)
    return parsed.ok && parsed.event.uid === uid
  }
  try {
    return (await hasItems(options, turn, type.matchBody?.(turn.feed, around), isIt)) !== false
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error
    return true
  }
}
