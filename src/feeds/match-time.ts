/**
 * Learns whether the API filters a feed by match time (`materialized_at`; docs/api-notes.md,
 * Cursors and order). Each account and feed type is probed once; an item that disproves the answer
 * revokes it, with a warning.
 */
import type { RoutedEvent } from '../store/intake.ts'
import type { FeedState, Scan } from '../store/feed-state.ts'
import { UpstreamError } from '../upstream/error.ts'
import { findFeedType } from '../feed-types/feed-types.ts'
import type { PolledFeed } from '../feed-types/feed-type.ts'
import { matchLagMs } from './rescan-plan.ts'
import { readNotes } from './rescan.ts'
import { advance } from './scan.ts'
import type { PollerOptions, PollRun } from './poll-run.ts'

const dayMs = 86_400_000

/** The API's clock, ms, where it filters this feed by match time; undefined where it does not. */
export async function readMatchClock(
  options: PollerOptions,
  run: PollRun,
  state: FeedState,
): Promise<number | undefined> {
  const { capabilities, logger } = options
  const { feed } = run
  // an empty answer means nothing unless the same request without the filter has shown something
  if (!capabilities || !findFeedType(feed).matchBody || state.newestMs === undefined)
    return undefined
  const memory = capabilities(feed.account)
  const name = capabilityName(feed)
  let has = (await memory.read(name))?.has
  if (has === undefined) {
    has = await probeMatchFilter(options, run, state)
    if (has === undefined) return undefined
    await memory.note(name, has)
    logger.info({ feed: feed.name, account: feed.account, has }, 'asked: filters by match time')
  }
  return has ? upstreamNowMs(options, feed) : undefined
}

/** The service's clock by its last answer, ms; this machine's where no answer has stated the time. */
export function upstreamNowMs({ client, clock }: PollerOptions, { account }: PolledFeed): number {
  return clock.now() + (client(account).clockSkewMs() ?? 0)
}

function capabilityName(feed: PolledFeed): string {
  return `materialized_at ${feed.type}`
}

/**
 * Probes the filter: a window in the future must be empty and a window over all time must not. A
 * refused request, or any other page, means that the filter is not honoured. undefined: nothing was
 * learned, because the feed shows nothing at all or the API failed; the ladder is used meanwhile.
 */
async function probeMatchFilter(
  options: PollerOptions,
  run: PollRun,
  state: FeedState,
): Promise<boolean | undefined> {
  const type = findFeedType(run.feed)
  const sinceEver = type.matchBody?.(run.feed, { fromMs: 0, toMs: state.nowMs + dayMs })
  try {
    if (await ignoresFilter(options, run, state)) return false
    if (await hasItems(options, run, sinceEver)) return true
  } catch (error) {
    if (isRequestRefused(error)) return false
    if (!(error instanceof UpstreamError) || blocksAllRequests(error) || run.signal.aborted)
      throw error
    const { name, account } = run.feed
    const message = 'whether the service filters by match time could not be found out'
    const about = { feed: name, account, err: error }
    options.logger.repeated.warn(about, message, { cause: error.reason, list: 'feeds', name })
    return undefined
  }
  const unfiltered = type.body(run.feed, { fromMs: 0 }, type.pageSizes[0])
  return (await hasItems(options, run, unfiltered)) ? false : undefined
}

/** Whether a window in the future has items or is refused. */
async function ignoresFilter(
  options: PollerOptions,
  run: PollRun,
  { nowMs }: FeedState,
): Promise<boolean> {
  const future = { fromMs: nowMs + 365 * dayMs, toMs: nowMs + 366 * dayMs }
  try {
    const body = findFeedType(run.feed).matchBody?.(run.feed, future)
    return (await hasItems(options, run, body)) === true
  } catch (error) {
    if (isRequestRefused(error)) return true
    throw error
  }
}

function isRequestRefused(error: unknown): error is UpstreamError {
  return error instanceof UpstreamError && (error.status === 400 || error.status === 422)
}

/** Whether another request would fail the same way right now. */
export function blocksAllRequests({ reason }: UpstreamError): boolean {
  return reason === 'rate_limited' || reason === 'auth'
}

/** Called after a scan by match time failed: a refused request revokes the capability. */
export async function noteMatchRefusal(
  { capabilities }: PollerOptions,
  feed: PolledFeed,
  scan: Scan,
  error: unknown,
): Promise<void> {
  if (readNotes(scan).kind !== 'matched' || !isRequestRefused(error)) return
  const why = `the service refuses it (${error.status}): late events are found by reading again from now on`
  await capabilities?.(feed.account).demote(capabilityName(feed), why)
}

/** Pages read before giving up: a page without a wanted item need not be the last. */
const maxPages = 5

/**
 * Whether the request shows a wanted item; undefined when the first `maxPages` pages do not decide
 * it. Each page counts in the lane's share. The run does not count as queued meanwhile, because a
 * queued run is aborted at the end of the hold, and a question of several requests would never end
 * where slots are rare.
 */
async function hasItems(
  { client, clock }: PollerOptions,
  { feed, kind, signal, dueSinceMs, onSlot }: PollRun,
  body: Record<string, unknown> = {},
  isWanted: (item: unknown) => boolean = () => true,
): Promise<boolean | undefined> {
  let scan: Scan = { fingerprint: '', body, cursor: null, reason: 'again', startedAtMs: 0 }
  for (let read = 0; read < maxPages; read += 1) {
    const { page } = await findFeedType(feed).fetch(feed, {
      client: client(feed.account),
      scan,
      slot: { kind, name: feed.name, dueSinceMs, onSlot },
      signal,
      nowMs: clock.now(),
    })
    if (page.items.some(isWanted)) return true
    const advanced = advance(scan, page)
    if (!advanced.hasMore) return false
    scan = advanced.scan
  }
  return undefined
}

/**
 * Whether a page may be taken in. A page by match time is credible when all its events were matched
 * within its window, or when the API still honours the filter. If it no longer did, the page would
 * alert about everything below the start bound.
 */
export async function isPageCredible(
  options: PollerOptions,
  run: PollRun,
  state: FeedState,
  { asked, events }: { asked: Scan; events: readonly RoutedEvent[] },
): Promise<boolean> {
  const { feed } = run
  const { fromMs = 0, toMs = Infinity } = asked.span ?? {}
  if (readNotes(asked).kind !== 'matched') return true
  // the answer has shown that this machine's clock was ahead when the window was chosen
  if (asked.cursor === null && toMs > upstreamNowMs(options, feed) - matchLagMs / 2) return false
  const outOfWindow = events.find(({ event: { matchedAtMs, createdAtMs } }) =>
    matchedAtMs === null
      ? (createdAtMs ?? Infinity) < state.startBoundMs
      : matchedAtMs < fromMs - matchToleranceMs || matchedAtMs > toMs + matchToleranceMs,
  )
  if (!outOfWindow || !(await ignoresFilter(options, run, state))) return true
  await demoteMatchFilter(
    options,
    feed,
    `feed ${feed.name} was shown ${outOfWindow.event.uid} whatever its match time`,
  )
  return false
}

/** How far an item's own match time may differ from the time that the filter uses. */
const matchToleranceMs = 3_600_000

async function demoteMatchFilter(
  { capabilities, metrics }: PollerOptions,
  feed: PolledFeed,
  shown: string,
): Promise<void> {
  const why = `${shown}: late events are found by reading again from now on`
  await capabilities?.(feed.account).demote(capabilityName(feed), why)
  metrics.matchTimeDoubtedTotal.inc({ feed: feed.name })
}

/**
 * Checks the new finds of a whole rescan. An event that was matched in a period already read by
 * match time, and that the filter does not show even now, proves the filter unreliable: from then
 * on the account is read by the ladder. An event that the filter does show has entered the feed
 * since, for example because its severity was raised.
 */
export async function checkMatchFilter(
  options: PollerOptions,
  run: PollRun,
  { startBoundMs }: FeedState,
  found: { scan: Scan; newEvents: readonly RoutedEvent[] },
): Promise<void> {
  const { feed } = run
  const { kind, matchedToMs } = readNotes(found.scan)
  if (kind !== 'whole' || matchedToMs === undefined) return
  const toCheck = found.newEvents.flatMap(({ event: { uid, matchedAtMs } }) => {
    const isRead = matchedAtMs !== null && matchedAtMs >= startBoundMs && matchedAtMs < matchedToMs
    return isRead ? [{ uid, matchedAtMs }] : []
  })
  for (const { uid, matchedAtMs } of toCheck.slice(0, maxChecked)) {
    if (await isShownByMatch(options, run, { uid, matchedAtMs })) continue
    const missed = `feed ${feed.name} was shown ${uid} by its creation, and not by its match time`
    return demoteMatchFilter(options, feed, missed)
  }
}

/**
 * Per page: an operator may let hundreds of events back into a feed at once, and each check costs a
 * request.
 */
const maxChecked = 3

/** Whether the filter shows an event now; true when the API could not answer. */
async function isShownByMatch(
  options: PollerOptions,
  run: PollRun,
  { uid, matchedAtMs }: { uid: string; matchedAtMs: number },
): Promise<boolean> {
  const type = findFeedType(run.feed)
  const around = { fromMs: matchedAtMs - 60_000, toMs: matchedAtMs + 60_000 }
  const isSameEvent = (item: unknown): boolean => {
    const parsed = type.parse(item, run.feed)
    return parsed.ok && parsed.event.uid === uid
  }
  try {
    return (await hasItems(options, run, type.matchBody?.(run.feed, around), isSameEvent)) !== false
  } catch (error) {
    if (!(error instanceof UpstreamError)) throw error
    return true
  }
}
