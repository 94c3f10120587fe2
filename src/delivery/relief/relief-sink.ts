import type { Gathering } from '../../ledger/collecting.ts'
import type { MoveTarget } from '../../ledger/redirect.ts'
import type { Severity } from '../../events/severity.ts'

/** A sink as it is relieved. */
export interface ReliefSink {
  name: string
  /** Where its items go when it takes none; undefined: they wait. */
  fallback: string | undefined
  /** How long its circuit must have been open before that. */
  fallbackAfterMs: number
  /** Where the fallback gets an item of this severity. */
  targets: (severity: Severity) => MoveTarget[]
  pendingMax: number
  /** The longest that a send to it may take. */
  sendTimeoutMs: number
  batchWaitMs: number | undefined
  /** By destination: where people's items wait for company; empty for machines. */
  keptPlaces: Readonly<Record<string, Gathering>>
}
