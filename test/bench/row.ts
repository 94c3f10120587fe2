import type { Span } from './stopwatch.ts'

/** One line of the report: figures by name, and what measuring them cost. */
export interface Row {
  key: string
  label: string
  figures: Partial<Record<Figure, number>>
  span: Span
}

/** `ofCeiling` is a share of the bare fetch loop's events a second. */
export type Figure = 'events' | 'eventsPerSecond' | 'ofCeiling' | 'commitsPerSecond' | 'bytes'
