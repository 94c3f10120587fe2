import type { ThreatEvent } from '../event.ts'
import type { Clock } from '../lib/clock.ts'
import type { Logger } from '../lib/logger.ts'
import type { LinkFilter } from '../messages/message.ts'
import type { DigestFacts } from '../messages/summary.ts'
import type { AccountLedger } from '../store/account-ledger.ts'
import type { Suppression } from '../store/records.ts'
import type { GroupingSink } from './placement.ts'

/** What the turns of collections work with. */
export interface FlushContext {
  ledgers: readonly AccountLedger[]
  sinks: ReadonlyMap<string, GroupingSink>
  rules: SuppressionRules
  /** How far apart the messages of a route's groups are at least, ms. */
  intervalMs: (route: string | null) => number
  /** Whether nothing can be sent to a sink just now: what is collected goes on collecting. */
  isBlocked: (sink: string) => Promise<boolean>
  /** Whether this configuration may call a sink unknown. */
  mayHold: () => boolean
  /** Every feed's last time at its end, and what of it could not be read, as a digest has to tell it. */
  coverage: (fromMs: number) => Promise<DigestFacts['feeds']>
  serviceLink: LinkFilter
  /** Says that an account has something due for a sink, of the rank of its severity; left out: 4. */
  announce: (account: string, work: { sink: string; rank?: number }[]) => Promise<void>
  /** What was kept from being sent, for the metrics. */
  onSuppressed: (sink: string, severity: string, reason: Suppression) => void
  clock: Clock
  logger: Logger
}

/**
 * What stands between an item and a message: silences, inhibition and mutes, judged when the item is
 * about to enter one and not before. Every verdict but `send` names its rule.
 */

export type Verdict =
  | { act: 'send' }
  | { act: 'suppress'; reason: Suppression; rule: string }
  | { act: 'hold'; rule: string; untilMs: number }

/** One item, as its rules see it. */
export interface SuppressionInput {
  recordId: string
  sink: string
  /** The first decides about muting. */
  routes: readonly string[]
  feed: string
  labels: Readonly<Record<string, string>>
  event: ThreatEvent
  /** What people did with it at the service since it was taken in. */
  closed: 'ignored' | 'remediated' | undefined
}

export interface SuppressionRules {
  /** One verdict for each, in their order. */
  decide(book: AccountLedger, items: readonly SuppressionInput[]): Promise<Verdict[]>
  /** Whether no rule could keep anything from a sink just now: then nothing need be judged for it. */
  allowsAll(sink: string): boolean
}
