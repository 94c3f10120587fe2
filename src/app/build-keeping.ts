import { createKeeper, type Keeper } from '../keeping/keeper.ts'
import { createProofSchedule, type ProofSchedule } from '../proof/proof-schedule.ts'
import type { Shared } from './shared.ts'

/** What looks after the ledger as a whole: that it adds up, and that it stays within its size. */
export interface KeepingParts {
  proofs: ProofSchedule
  keeper: Keeper
}

export function buildKeeping(shared: Shared): KeepingParts {
  const { config, metrics } = shared
  const isActive = (): boolean => shared.generation.isActive
  return {
    proofs: createProofSchedule({ ...shared, isActive }),
    keeper: createKeeper({
      ...shared,
      maxBytes: config.ledger.maxBytes,
      isActive,
      onTrimmed({ stories, payloads, quarantined }) {
        metrics.retentionTrimmedTotal.inc({ what: 'story' }, stories)
        metrics.retentionTrimmedTotal.inc({ what: 'payload' }, payloads)
        metrics.retentionTrimmedTotal.inc({ what: 'quarantine' }, quarantined)
      },
    }),
  }
}
