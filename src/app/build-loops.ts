import type { AuditSchedule } from '../audit/audit-schedule.ts'
import type { FeedJobs } from '../feeds/feed-jobs.ts'
import { createLoop, type Loop, type LoopOptions } from '../runtime/loop.ts'
import type { DeliveryParts } from './build-delivery.ts'
import type { NoticeParts } from './build-notices.ts'
import type { Shared } from './shared.ts'

export interface NamedLoop {
  name: string
  loop: Loop
}

type Work = (...given: Parameters<LoopOptions['tick']>) => Promise<unknown>

/** The process' own loops; /healthz watches that they move. */
export function buildLoops(
  { redis, clock, logger }: Shared,
  { reconciler, silences, collecting }: DeliveryParts,
  { feedJobs, audits }: { feedJobs: FeedJobs; audits: AuditSchedule },
  notices: NoticeParts | undefined,
): NamedLoop[] {
  function named(name: string, everyMs: number, work: Work): NamedLoop {
    const tick: LoopOptions['tick'] = async (signal, alive) => {
      if (redis.status === 'ready') await work(signal, alive)
    }
    return { name, loop: createLoop({ name, everyMs, clock, logger, tick }) }
  }
  return [
    named('reconcile', 2_000, () => reconciler.reconcileOnce()),
    named('silences', 2_000, () => silences.refreshOnce()),
    named('collections', 1_000, () => collecting.flushOnce()),
    named('feed jobs', 10_000, () => feedJobs.ensure()),
    named('audits', 15_000, (signal, alive) => audits.auditOnce(signal, alive)),
    ...(notices ? [named('notices', 15_000, () => notices.lookOnce())] : []),
  ]
}
