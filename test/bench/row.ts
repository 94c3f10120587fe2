import type { Span } from './stopwatch.ts'

/** One line of the report: figures by name, and what measuring them cost. */
export interface Row {
  key: string
  label: string
  figures: Partial<Record<Figure, number>>
  span: Span
}

/**
 * `ofCeiling`, and where a poller alone was measured `polledOfCeiling`, are shares of the bare fetch
 * loop's events a second; `daysAtOne` and `hoursAtForty` say how far back `retention.max_bytes: 1GiB` reaches at
 * so many events a second; `shareOfBudget` is the share of one request a second that `pages` an hour take.
 */
export type Figure =
  | 'events'
  | 'eventsPerSecond'
  | 'ofCeiling'
  | 'polledOfCeiling'
  | 'pages'
  | 'pagesPerSecond'
  | 'shareOfBudget'
  | 'commitsPerSecond'
  | 'bytes'
  | 'daysAtOne'
  | 'hoursAtForty'
