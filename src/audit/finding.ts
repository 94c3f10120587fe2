import type { MalformedItem, RoutedEvent } from '../intake/intake.ts'

/** An event that the service shows and the ledger does not account for. */
export interface Finding {
  uid: string
  /** ms. */
  createdAtMs: number
  why:
    | 'never_taken_in'
    /** Known by its mark, but its record is gone: what became of it nobody can tell. */
    | 'record_gone'
    /** Not yet: the feed, or its sweep, has not passed its place since it may have become visible. */
    | 'awaited'
  /** What a repair takes in; left out of all but the first thousand, and where nobody repairs. */
  routed?: RoutedEvent
}

/** An event of the window that the ledger has and the service no longer shows. */
export interface Extra {
  uid: string
  firstSeenMs: number
  /** What people did with it at the service; undefined: nothing that is known. */
  closed: 'ignored' | 'remediated' | undefined
}

export interface AuditWindow {
  fromMs: number
  toMs: number
}

export interface AuditResult extends AuditWindow {
  feed: string
  /** Different events and malformed items that the service showed. */
  shown: number
  /** Of these: in the ledger as events. */
  accounted: number
  missing: Finding[]
  awaited: Finding[]
  extra: Extra[]
  /** Items that cannot be read and stand in the quarantine, or stood there: nobody was told of them. */
  quarantined: number
  /** Malformed items that are not in the quarantine, and that an earlier audit had seen. */
  malformed: MalformedItem[]
}
