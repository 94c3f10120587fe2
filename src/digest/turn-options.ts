import type { Book } from '../ledger/book.ts'
import type { Suppression } from '../ledger/records.ts'
import type { DigestFacts } from '../messages/summary.ts'
import type { ServiceLink } from '../messages/message-subject.ts'
import type { Clock } from '../runtime/clock.ts'
import type { Logger } from '../runtime/logger.ts'
import type { Gate } from './gate.ts'
import type { CollectingSink } from './placement.ts'

/** What the turns of collections work with. */
export interface TurnOptions {
  books: readonly Book[]
  sinks: ReadonlyMap<string, CollectingSink>
  gate: Gate
  /** How far apart the messages of a route's groups are at least, ms. */
  intervalMs: (route: string | null) => number
  /** Whether nothing can be sent to a sink just now: what is collected goes on collecting. */
  isBlocked: (sink: string) => Promise<boolean>
  /** Whether this configuration may call a sink unknown. */
  mayHold: () => boolean
  /** Every feed's last time at its end, and what of it could not be read, as a digest has to tell it. */
  coverage: (fromMs: number) => Promise<DigestFacts['feeds']>
  serviceLink: ServiceLink
  /** Says that an account has something due for a sink, of the rank of its severity; left out: 4. */
  tell: (account: string, work: { sink: string; rank?: number }[]) => Promise<void>
  /** What was kept from being sent, for the metrics. */
  onSuppressed: (sink: string, severity: string, reason: Suppression) => void
  clock: Clock
  logger: Logger
}
