import type { AuditSchedule } from '../audit/audit-schedule.ts'
import type { FeedJobs } from '../feeds/feed-jobs.ts'
import { createLoop, type Loop, type LoopOptions } from '../runtime/loop.ts'
import type { DeliveryParts } from './build-delivery.ts'
import type { KeepingParts } from './build-keeping.ts'
import type { NoticeParts } from './build-notices.ts'
import type { Shared } from './shared.ts'

export interface NamedLoop {
  name: string
  loop: Loop
}

interface OtherParts extends KeepingParts {
  feedJobs: FeedJobs
  audits: AuditSchedule
}

type Work = (...given: Parameters<LoopOptions['tick']>) => Promise<unknown>

/** The process' own loops; /healthz watches that they move. */
export function buildLoops(
  { redis, clock, logger }: Shared,
  { reconciler, silences, collecting, relief }: DeliveryParts,
  { feedJobs, audits, proofs, keeper }: OtherParts,
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
    named('relief', 5_000, (signal, alive) => relief.relieveOnce(signal, alive)),
    named('feed jobs', 10_000, () => feedJobs.ensure()),
    named('audits', 15_000, (signal, alive) => audits.auditOnce(signal, alive)),
    named('ledger audits', 15_000, (signal, alive) => proofs.proveOnce(signal, alive)),
    named('retention', 15_000, (signal, alive) => keeper.keepOnce(signal, alive)),
    ...(notices ? [named('notices', 15_000, () => notices.lookOnce())] : []),
  ]
}
