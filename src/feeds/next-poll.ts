import type { PolledFeed } from './polled-feed.ts'
import type { PollOutcome } from './poller.ts'

/** When a feed polls again after a turn, wall clock ms. `failures`: in a row, this one included. */
export function nextPollMs(
  { everyMs }: Pick<PolledFeed, 'everyMs'>,
  outcome: PollOutcome,
  { startedMs, nowMs, failures }: { startedMs: number; nowMs: number; failures: number },
): number {
  switch (outcome.status) {
    case 'more':
    case 'stopped':
      return nowMs
    case 'superseded':
      return nowMs + Math.min(everyMs, supersededMs)
    case 'full':
      return nowMs + Math.min(everyMs, fullMs)
    case 'paused':
      return nowMs + Math.min(everyMs, pausedMs)
    case 'quota':
      return nowMs + lookMs
    case 'not_due':
      return Math.max(nowMs + 1_000, Math.min(outcome.untilMs ?? Infinity, nowMs + lookMs))
    case 'caught_up':
      return Math.max(nowMs, startedMs + everyMs)
    case 'failed':
      return nowMs + Math.max(outcome.retryAfterMs ?? 0, backoffMs(failures))
  }
}

/** Soon: the job is one for all replicas, and one of them has the configuration that polls. */
const supersededMs = 2_000

/** How soon a resumed feed is polled. */
const pausedMs = 5_000

/** How often it is looked whether something is due or allowed by now; asks the service nothing. */
const lookMs = 15_000

/** How often it is looked whether there is room again. */
const fullMs = 10_000

/** 5 s doubling to 5 min: a failing feed keeps asking, without eating its account's budget. */
function backoffMs(failures: number): number {
  return Math.min(5_000 * 2 ** Math.max(0, failures - 1), 300_000)
}
