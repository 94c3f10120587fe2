/** What the flushes of groups and digests need. */
import type { Clock } from '../lib/clock.ts'
import type { Logger } from '../lib/logger.ts'
import type { PageAddress } from '../messages/page-links.ts'
import type { DigestFacts } from '../messages/summary.ts'
import type { AccountLedger, Standing } from '../store/account-ledger.ts'
import type { Suppression } from '../store/records.ts'
import type { Outlet } from './placement.ts'
import type { SuppressionRules } from './suppression-rules.ts'

export interface FlushContext {
  ledgers: readonly AccountLedger[]
  sinks: ReadonlyMap<string, Outlet>
  rules: SuppressionRules
  /** The least time between two messages of a route's groups, ms. */
  intervalMs: (route: string | null) => number
  /** Whether nothing can be sent to a sink's destination just now; its groups keep collecting. */
  isBlocked: (sink: string, destination: string) => Promise<boolean>
  standing: Standing
  /** Reads of all feeds how far they were read, for the digests of a pass. */
  readCoverage: () => Promise<CoverageReading>
  pageAddress: PageAddress
  /** Announces that an account has something due for a sink, with its severity rank; default 4. */
  announce: (account: string, work: { sink: string; rank?: number }[]) => void
  /** Counts a suppressed item for the metrics. */
  onSuppressed: (sink: string, severity: string, reason: Suppression) => void
  clock: Clock
  logger: Logger
}

/**
 * For every feed whose events may reach a sink, when it was last read to its end, and what could
 * not be read. Tenants do not learn of each other's.
 */
export type CoverageReading = (sink: string) => DigestFacts['feeds']
