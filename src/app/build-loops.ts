import type { AuditSchedule } from '../audit/audit-schedule.ts'
import type { Lanes } from '../feeds/lanes.ts'
import { createLoop, type Loop, type LoopOptions } from '../runtime/loop.ts'
import type { AccountWatch } from './build-accounts.ts'
import { confirmGeneration } from '../ledger/generation.ts'
import type { DeliveryParts } from './build-delivery.ts'
import type { KeepingParts } from './build-keeping.ts'
import type { NoticeParts } from './build-notices.ts'
import type { StateWatch } from './build-state.ts'
import type { Shared } from './shared.ts'

export interface NamedLoop {
  name: string
  loop: Loop
}

interface OtherParts extends KeepingParts {
  accounts: AccountWatch
  lanes: Lanes
  audits: AuditSchedule
  state: StateWatch
}

type Work = (...given: Parameters<LoopOptions['tick']>) => Promise<unknown>

/** The process' own loops; /healthz watches that they move. */
export function buildLoops(
  shared: Shared,
  { drains, silences, collecting, relief }: DeliveryParts,
  { accounts, lanes, audits, state, proofs, retention }: OtherParts,
  notices: NoticeParts | undefined,
): NamedLoop[] {
  const { redis, clock, logger, timings } = shared
  function named(name: string, everyMs: number, work: Work): NamedLoop {
    const tick: LoopOptions['tick'] = async (signal, alive) => {
      if (redis.status === 'ready') await work(signal, alive)
    }
    return { name, loop: createLoop({ name, everyMs, clock, logger, tick }) }
  }
  return [
    named('generation', timings.generationMs, () => confirmOnce(shared)),
    named('work', timings.hintsMs, () => drains.hearOnce()),
    named('leases', timings.claimLeaseMs / 4, () => drains.renewOnce()),
    named('due work', timings.healMs, (signal, alive) => drains.healOnce(signal, alive)),
    named('silences', timings.silencesMs, () => silences.refreshOnce()),
    named('collections', timings.groupsMs, () => collecting.flushOnce()),
    named('relief', timings.reliefMs, (signal, alive) => relief.relieveOnce(signal, alive)),
    named('accounts', timings.accountsMs, (signal, alive) => accounts.watchOnce(signal, alive)),
    named('state', timings.stateMs, (signal, alive) => state.passOnce(signal, alive)),
    named('lanes', timings.lanesMs, () => lanes.ensure()),
    named('audits', timings.housekeepingMs, (signal, alive) => audits.auditOnce(signal, alive)),
    named('ledger audits', timings.housekeepingMs, (signal, alive) =>
      proofs.proveOnce(signal, alive),
    ),
    named('retention', timings.housekeepingMs, (signal, alive) =>
      retention.retainOnce(signal, alive),
    ),
    ...(notices ? [named('notices', timings.housekeepingMs, () => notices.lookOnce())] : []),
  ]
}

/** Whether this configuration is the active one; it may have become so because the other one is gone. */
async function confirmOnce({ redis, keys, generation, metrics }: Shared): Promise<void> {
  const number = await confirmGeneration(redis, keys, generation.hash)
  generation.isActive = number !== undefined
  if (number === undefined) return
  generation.number = number
  metrics.configGeneration.set(number)
}
