import { defaultTimings, type Timings } from '../runtime/timings.ts'
import type { PolledFeed } from './polled-feed.ts'
import type { PollOutcome } from './poller.ts'

/** When a feed polls again after a turn, wall clock ms. `failures`: in a row, this one included. */
export function nextPollMs(
  { everyMs }: Pick<PolledFeed, 'everyMs'>,
  outcome: PollOutcome,
  { startedMs, nowMs, failures }: { startedMs: number; nowMs: number; failures: number },
  timings: Timings = defaultTimings,
): number {
  switch (outcome.status) {
    case 'more':
    case 'stopped':
      return nowMs
    case 'superseded':
      return nowMs + Math.min(everyMs, timings.supersededLookMs)
    case 'full':
      return nowMs + Math.min(everyMs, timings.fullLookMs)
    case 'paused':
      return nowMs + Math.min(everyMs, timings.pausedLookMs)
    case 'quota':
    case 'refused':
      return nowMs + timings.notDueLookMs
    case 'not_due':
      return Math.max(
        nowMs + 1_000,
        Math.min(outcome.untilMs ?? Infinity, nowMs + timings.notDueLookMs),
      )
    case 'caught_up':
      return Math.max(nowMs, startedMs + everyMs)
    case 'failed':
      return nowMs + Math.max(outcome.retryAfterMs ?? 0, backoffMs(failures, timings))
  }
}

/** A failing feed keeps asking, without eating its account's budget. */
function backoffMs(failures: number, { pollBackoffMs }: Timings): number {
  return pollBackoffMs * Math.min(2 ** Math.max(0, failures - 1), 60)
}
