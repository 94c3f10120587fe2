/**
 * What stands between an item and a message: silences, inhibition and mutes, judged when the item is
 * about to enter one and not before. Every verdict but `send` names its rule.
 */
import type { ThreatEvent } from '../events/threat-event.ts'
import type { Book } from '../ledger/book.ts'
import type { Suppression } from '../ledger/records.ts'

export type Verdict =
  | { act: 'send' }
  | { act: 'suppress'; reason: Suppression; rule: string }
  | { act: 'hold'; rule: string; untilMs: number }

/** One item, as its rules see it. */
export interface Judged {
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

export interface Gate {
  /** One verdict for each, in their order. */
  judge(book: Book, items: readonly Judged[]): Promise<Verdict[]>
  /** Whether no rule could keep anything from a sink just now: then nothing need be judged for it. */
  isIdleFor(sink: string): boolean
}
