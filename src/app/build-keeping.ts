import { createProofSchedule, type ProofSchedule } from '../proof/proof-schedule.ts'
import { createRetention, type Retention } from '../store/retention.ts'
import type { Shared } from './shared.ts'

/** What looks after the ledger as a whole: that it adds up, and that it stays within its size. */
export interface KeepingParts {
  proofs: ProofSchedule
  retention: Retention
}

export function buildKeeping(shared: Shared): KeepingParts {
  const { config, metrics } = shared
  const isActive = (): boolean => shared.generation.isActive
  return {
    proofs: createProofSchedule({ ...shared, isActive }),
    retention: createRetention({
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
