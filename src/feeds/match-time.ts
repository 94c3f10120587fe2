/**
 * Reading by match time (`materialized_at`; docs/api-notes.md, Cursors and order). The public
 * documents state the filter, so it is used. A refusal, or an event that disproves it, turns all
 * feeds of the type to the ladder of windows for a day (docs/decisions/rescans.md).
 */
import type { PolledFeed } from './types/polled-feed.ts'
import { findFeedType } from './types/feed-types.ts'
import type { FeedState, Scan } from '../store/feed-state.ts'
import type { RoutedEvent } from '../store/intake.ts'
import { UpstreamError } from '../upstream/error.ts'
import type { PollerOptions, PollRun } from './poll-run.ts'
import { readNotes } from './rescan.ts'

/**
 * The API's clock, ms, where this feed is read by match time. undefined where it is not, and until
 * an answer has stated the time. Else what is matched in a gap of the clocks would be passed over.
 */
export async function readMatchClock(
  options: PollerOptions,
  run: PollRun,
): Promise<number | undefined> {
  const { feed } = run
  const { client, capabilities } = run.account
  const memory = findFeedType(feed).matchBody && capabilities
  if (client.clockSkewMs() === undefined) return undefined
  if (!memory || (await memory.isRefused(capabilityName(feed)))) return undefined
  return upstreamNowMs(options, run)
}

/** The service's clock by its last answer, ms; this machine's where no answer has stated the time. */
export function upstreamNowMs({ clock }: PollerOptions, { account }: PollRun): number {
  return clock.now() + (account.client.clockSkewMs() ?? 0)
}

function capabilityName(feed: PolledFeed): string {
  return `materialized_at ${feed.type}`
}

async function turnToLadder({ account, feed }: PollRun, found: string): Promise<void> {
  const why = `${found}: late events are found by reading again meanwhile`
  await account.capabilities?.refuse(capabilityName(feed), why)
}

/** Called after a scan failed. */
export async function noteMatchRefusal(run: PollRun, scan: Scan, error: unknown): Promise<void> {
  const { status = 0 } = error instanceof UpstreamError ? error : {}
  if (readNotes(scan).kind !== 'matched' || ![400, 422].includes(status)) return
  await turnToLadder(run, `the service refuses it (${status})`)
}

/** Whether another request would fail the same way right now. */
export function blocksAllRequests({ reason }: UpstreamError): boolean {
  return reason === 'rate_limited' || reason === 'auth'
}

/** How far an item's own match time may differ from the time that the filter uses. */
const matchToleranceMs = 3_600_000

/**
 * How a page disproves the filter by match time: it shows an event that its window leaves out, or one
 * without match time from before the start bound. Undefined where it does not. Such a page is not taken in.
 */
export function findDisproof(
  scan: Scan,
  startBoundMs: number,
  events: readonly RoutedEvent[],
): string | undefined {
  const { fromMs = 0, toMs = Infinity } = scan.span ?? {}
  if (readNotes(scan).kind !== 'matched') return undefined
  const outside = events.find(({ event: { matchedAtMs, createdAtMs } }) => {
    if (matchedAtMs === null) return (createdAtMs ?? Infinity) < startBoundMs
    return matchedAtMs < fromMs - matchToleranceMs || matchedAtMs > toMs + matchToleranceMs
  })
  return outside && `shown ${outside.event.uid} whatever its match time`
}

/** Reads the feeds of this type without the filter for a day. `shown`: what disproves it. */
export async function doubtFilter(
  { metrics }: PollerOptions,
  run: PollRun,
  shown: string,
): Promise<void> {
  await turnToLadder(run, `feed ${run.feed.name} was ${shown}`)
  metrics.matchTimeDoubtedTotal.inc({ feed: run.feed.name })
}

/**
 * Checks the new finds of a whole rescan: an event that was matched in a period already read by
 * match time disproves the filter. One whose severity was changed entered the feed later.
 */
export async function checkMatchFilter(
  options: PollerOptions,
  run: PollRun,
  { startBoundMs }: FeedState,
  found: { scan: Scan; newEvents: readonly RoutedEvent[] },
): Promise<void> {
  const { kind, matchedToMs } = readNotes(found.scan)
  if (kind !== 'whole' || matchedToMs === undefined) return
  const missed = found.newEvents.find(
    ({ event: { matchedAtMs, originalSeverity } }) =>
      originalSeverity === null &&
      matchedAtMs !== null &&
      matchedAtMs >= startBoundMs &&
      matchedAtMs < matchedToMs,
  )
  if (!missed) return
  const shown = `shown ${missed.event.uid} by its creation, not by its match time`
  await doubtFilter(options, run, shown)
}
