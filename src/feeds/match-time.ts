/**
 * Whether the service filters a feed by match time (`materialized_at`, in the specification only). It is
 * asked once per account and type of feed, and the answer is remembered; what contradicts it later takes
 * it back, loudly.
 */
import type { RoutedEvent } from '../intake/intake.ts'
import type { FeedState, Walk } from '../ledger/feed-state.ts'
import { ServiceError } from '../service/service-error.ts'
import { typeOf } from './feed-types.ts'
import type { PolledFeed } from './polled-feed.ts'
import type { PollerOptions, PollTurn } from './poller.ts'
import { readNotes } from './rescan.ts'

const dayMs = 86_400_000

/** The service's clock where it filters this feed by match time; undefined where it does not. */
export async function matchedNow(
  options: PollerOptions,
  turn: PollTurn,
  state: FeedState,
): Promise<number | undefined> {
  const { capabilities, client, clock, logger } = options
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
  if (!has) return undefined
  return clock.now() + (client(feed.account).clockSkewMs() ?? 0)
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
  const future = { fromMs: state.nowMs + 365 * dayMs, toMs: state.nowMs + 366 * dayMs }
  const inFuture = type.matchBody?.(turn.feed, future)
  try {
    if ((await countItems(options, turn, inFuture)) > 0) return false
    if ((await countItems(options, turn, sinceEver)) > 0) return true
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
  return (await countItems(options, turn, unfiltered)) > 0 ? false : undefined
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

async function countItems(
  { client, clock }: PollerOptions,
  { feed, kind, signal, dueSinceMs }: PollTurn,
  body: Record<string, unknown> = {},
): Promise<number> {
  const walk: Walk = { fingerprint: '', body, cursor: null, reason: 'again', startedAtMs: 0 }
  const { page } = await typeOf(feed).fetch(feed, {
    client: client(feed.account),
    walk,
    turn: { kind, name: feed.name, dueSinceMs },
    signal,
    nowMs: clock.now(),
  })
  return page.items.length
}

/**
 * What a scan of the whole window finds new although the filter should have shown it proves that the
 * filter is not to be relied on: from then on the account is read by the ladder.
 */
export async function doubtMatchTime(
  { capabilities, metrics }: PollerOptions,
  feed: PolledFeed,
  state: FeedState,
  found: { walk: Walk; newEvents: readonly RoutedEvent[] },
): Promise<void> {
  const { kind, matchedToMs } = readNotes(found.walk)
  if (!capabilities || kind !== 'whole' || matchedToMs === undefined) return
  const missed = found.newEvents.find(({ event: { createdAtMs, matchedAtMs } }) => {
    const visibleMs = matchedAtMs ?? createdAtMs
    return visibleMs !== null && visibleMs >= state.floorMs && visibleMs < matchedToMs
  })
  if (!missed) return
  const why = `feed ${feed.name} was shown ${missed.event.uid} by its creation, and not by its match time: late events are found by reading again from now on`
  await capabilities(feed.account).demote(capabilityName(feed), why)
  metrics.matchTimeDoubtedTotal.inc({ feed: feed.name })
}
