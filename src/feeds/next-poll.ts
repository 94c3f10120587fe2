import { defaultTimings, type Timings } from '../runtime/timings.ts'
import type { PollOutcome } from './poller.ts'

/**
 * Until when a feed is left alone after a run, wall clock ms. `failures`: in a row, this one included. When a
 * feed that was read is read again, the rule decides (next-feed.ts).
 */
export function nextPollMs(
  outcome: PollOutcome,
  { nowMs, failures }: { nowMs: number; failures: number },
  timings: Timings = defaultTimings,
): number {
  switch (outcome.status) {
    case 'more':
    case 'stopped':
    case 'caught_up':
      return nowMs
    case 'superseded':
      return nowMs + timings.supersededLookMs
    case 'full':
      return nowMs + timings.fullLookMs
    case 'paused':
      return nowMs + timings.pausedLookMs
    case 'quota':
    case 'refused':
      return nowMs + timings.notDueLookMs
    case 'not_due':
      return Math.max(
        nowMs + 1_000,
        Math.min(outcome.untilMs ?? Infinity, nowMs + timings.notDueLookMs),
      )
    case 'failed':
      return nowMs + Math.max(outcome.retryAfterMs ?? 0, backoffMs(failures, timings))
  }
}

/** A failing feed keeps asking, without eating its account's budget. */
function backoffMs(failures: number, { pollBackoffMs }: Timings): number {
  return pollBackoffMs * Math.min(2 ** Math.max(0, failures - 1), 60)
}
