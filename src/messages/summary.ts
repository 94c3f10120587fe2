/** What a message about several events says of all of them together; pure numbers and names. */
import type { Severity } from '../events/severity.ts'

/**
 * `group`: events of a likeness that came within a short window; `digest`: what a schedule collected;
 * `backlog`: what a feed's first poll found; `held`: what came during a mute that is over; `storm`:
 * more than the sink's readers could take singly.
 */
export type SummaryKind = 'group' | 'digest' | 'backlog' | 'held' | 'storm'

export interface Counted {
  name: string
  count: number
}

export interface Summary {
  kind: SummaryKind
  /** Events that the message stands for, shown or not. */
  total: number
  /** Most severe first, unknown severities before `critical`; only those that occur. */
  bySeverity: { severity: Severity; count: number }[]
  /** Most frequent first, at most ten; what is left out is in `{name: 'other'}` at the end. So below. */
  byType: Counted[]
  byFeed: Counted[]
  byIdentifier: Counted[]
  /** What a group has in common: `group_by` names with their values. */
  labels: Record<string, string>
  /** The route that decided the grouping; null for digests. */
  route: string | null
  /** When the first and the last of the events were fetched, ms. */
  firstAtMs: number
  lastAtMs: number
  digest?: DigestFacts
  /** The events could not be delivered to this sink: it comes to its fallback. All of them since then, ms. */
  undelivered?: { sink: string; sinceMs: number }
}

export interface AlreadySent {
  severity: Severity
  type: string
  uid: string
  sentAtMs: number
  /** Of its message; undefined where the event is no longer kept. */
  title?: string
  /** The message's `link`. What versions up to 0.4.0 froze under that name was not checked, and is not read. */
  serviceLink?: string | null
}

/** What a digest says besides its events, so that an empty one never reads as "all quiet". */
export interface DigestFacts {
  /** The window: what was collected after the first and up to the second, ms. */
  fromMs: number
  toMs: number
  /** When it was to be sent, ms; `isLate`: it was sent noticeably later. */
  dueAtMs: number
  isLate: boolean
  /** IANA name; the days and hours of the digest are read in it. */
  timeZone: string
  /** One entry for each local day of the window, oldest first, `2026-11-20`; at most 31. */
  perDay: { day: string; bySeverity: { severity: Severity; count: number }[] }[]
  /** Coverage: every feed; `isBehind`: it was not read to its end within its objective. */
  feeds: {
    feed: string
    lastCaughtUpMs: number | null
    isBehind: boolean
    /** Items that could not be read and were set aside: within the window, and all that are there still. */
    quarantined?: { fresh: number; open: number }
    /** Half or more of what it shows cannot be read. */
    isUnreadable?: boolean
    /** Its account is not configured any more: nothing more is read. */
    hasLeft?: boolean
  }[]
  /** Items of this destination that did not make it into the window's messages, by why. */
  held: number
  suppressed: number
  dead: number
  /** Went to another sink: to a fallback, or moved by hand. */
  diverted?: number
  /** Events that went out at once (`immediate`), not counted above: at most 50, and how many in all. */
  alreadySent: AlreadySent[]
  alreadySentTotal: number
  /** All of them, most severe first; undefined in a digest that an older version froze. */
  alreadySentBySeverity?: { severity: Severity; count: number }[]
}
