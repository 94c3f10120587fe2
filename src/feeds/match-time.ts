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
import { matchLagMs } from './rescan-plan.ts'
import { readNotes } from './rescan.ts'

/** The API's clock, ms, where this feed is read by match time; undefined where it is not. */
export async function readMatchClock(
  options: PollerOptions,
  feed: PolledFeed,
): Promise<number | undefined> {
  const memory = findFeedType(feed).matchBody && options.capabilities?.(feed.account)
  if (!memory || (await memory.isRefused(capabilityName(feed)))) return undefined
  return upstreamNowMs(options, feed)
}

/** The service's clock by its last answer, ms; this machine's where no answer has stated the time. */
export function upstreamNowMs({ client, clock }: PollerOptions, { account }: PolledFeed): number {
  return clock.now() + (client(account).clockSkewMs() ?? 0)
}

function capabilityName(feed: PolledFeed): string {
  return `materialized_at ${feed.type}`
}

async function turnToLadder(
  { capabilities }: PollerOptions,
  feed: PolledFeed,
  found: string,
): Promise<void> {
  const why = `${found}: late events are found by reading again meanwhile`
  await capabilities?.(feed.account).refuse(capabilityName(feed), { why })
}

/** Called after a scan failed. */
export async function noteMatchRefusal(
  options: PollerOptions,
  feed: PolledFeed,
  scan: Scan,
  error: unknown,
): Promise<void> {
  const { status = 0 } = error instanceof UpstreamError ? error : {}
  if (readNotes(scan).kind !== 'matched' || ![400, 422].includes(status)) return
  await turnToLadder(options, feed, `the service refuses it (${status})`)
}

/** Whether another request would fail the same way right now. */
export function blocksAllRequests({ reason }: UpstreamError): boolean {
  return reason === 'rate_limited' || reason === 'auth'
}

/** Whether an answer has shown that this machine's clock was ahead when the window was chosen. */
export function endsTooLate(options: PollerOptions, feed: PolledFeed, asked: Scan): boolean {
  if (readNotes(asked).kind !== 'matched' || asked.cursor !== null) return false
  return (asked.span?.toMs ?? 0) > upstreamNowMs(options, feed) - matchLagMs / 2
}

/** How far an item's own match time may differ from the time that the filter uses. */
const matchToleranceMs = 3_600_000

/**
 * Whether a page by match time shows an event that its window leaves out, or one without match time
 * from before the start bound. Such a page is not taken in: it would alert about all of these.
 */
export async function isFilterIgnored(
  options: PollerOptions,
  feed: PolledFeed,
  { scan, startBoundMs }: { scan: Scan; startBoundMs: number },
  events: readonly RoutedEvent[],
): Promise<boolean> {
  const { fromMs = 0, toMs = Infinity } = scan.span ?? {}
  if (readNotes(scan).kind !== 'matched') return false
  const outside = events.find(({ event: { matchedAtMs, createdAtMs } }) => {
    if (matchedAtMs === null) return (createdAtMs ?? Infinity) < startBoundMs
    return matchedAtMs < fromMs - matchToleranceMs || matchedAtMs > toMs + matchToleranceMs
  })
  if (!outside) return false
  await doubtFilter(options, feed, `shown ${outside.event.uid} whatever its match time`)
  return true
}

async function doubtFilter(options: PollerOptions, feed: PolledFeed, shown: string): Promise<void> {
  await turnToLadder(options, feed, `feed ${feed.name} was ${shown}`)
  options.metrics.matchTimeDoubtedTotal.inc({ feed: feed.name })
}

/**
 * Checks the new finds of a whole rescan. An event that was matched in a period already read by
 * match time disproves the filter, unless the filter shows it now: then it has entered the feed
 * since, for example because its severity was raised. One event a page is asked for.
 */
export async function checkMatchFilter(
  options: PollerOptions,
  run: PollRun,
  { startBoundMs }: FeedState,
  found: { scan: Scan; newEvents: readonly RoutedEvent[] },
): Promise<void> {
  const { kind, matchedToMs } = readNotes(found.scan)
  if (kind !== 'whole' || matchedToMs === undefined) return
  for (const { event } of found.newEvents) {
    const { uid, matchedAtMs } = event
    const isRead = matchedAtMs !== null && matchedAtMs >= startBoundMs && matchedAtMs < matchedToMs
    if (!isRead) continue
    if (!(await isShownByMatch(options, run, { uid, matchedAtMs })))
      await doubtFilter(options, run.feed, `shown ${uid} by its creation, not by its match time`)
    return
  }
}

/** Whether the filter shows an event now; true when one page does not decide it. */
async function isShownByMatch(
  { client, clock }: PollerOptions,
  { feed, kind, signal, dueSinceMs, onSlot }: PollRun,
  { uid, matchedAtMs }: { uid: string; matchedAtMs: number },
): Promise<boolean> {
  const type = findFeedType(feed)
  const span = { fromMs: matchedAtMs - 60_000, toMs: matchedAtMs + 60_000 }
  const body = type.matchBody?.(feed, span) ?? {}
  const scan: Scan = { fingerprint: '', body, cursor: null, reason: 'again', startedAtMs: 0 }
  const slot = { kind, name: feed.name, dueSinceMs, onSlot }
  try {
    const request = { client: client(feed.account), scan, slot, signal, nowMs: clock.now() }
    const { page } = await type.fetch(feed, request)
    const isShown = page.items.some((item) => {
      const parsed = type.parse(item, feed)
      return parsed.ok && parsed.event.uid === uid
    })
    return isShown || Boolean(page.next)
  } catch (error) {
    if (!(error instanceof UpstreamError)) throw error
    return true
  }
}
