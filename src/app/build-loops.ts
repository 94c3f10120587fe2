import type { FeedJobs } from '../feeds/feed-jobs.ts'
import { createLoop, type Loop } from '../runtime/loop.ts'
import type { DeliveryParts } from './build-delivery.ts'
import type { NoticeParts } from './build-notices.ts'
import type { Shared } from './shared.ts'

export interface NamedLoop {
  name: string
  loop: Loop
}

/** The process' own loops; /healthz watches that they move. */
export function buildLoops(
  { redis, clock, logger }: Shared,
  { reconciler, silences, collecting }: DeliveryParts,
  feedJobs: FeedJobs,
  notices: NoticeParts | undefined,
): NamedLoop[] {
  function named(name: string, everyMs: number, work: () => Promise<unknown>): NamedLoop {
    const tick = async (): Promise<void> => {
      if (redis.status === 'ready') await work()
    }
    return { name, loop: createLoop({ name, everyMs, clock, logger, tick }) }
  }
  return [
    named('reconcile', 2_000, () => reconciler.reconcileOnce()),
    named('silences', 2_000, () => silences.refreshOnce()),
    named('collections', 1_000, () => collecting.flushOnce()),
    named('feed jobs', 10_000, () => feedJobs.ensure()),
    ...(notices ? [named('notices', 15_000, () => notices.lookOnce())] : []),
  ]
}
