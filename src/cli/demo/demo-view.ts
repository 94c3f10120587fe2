/** What a run of the demo shows while it goes on. */
import type { Arrival } from './demo-arrival.ts'
import type { DemoSink } from './demo-evidence.ts'

export interface DemoView {
  /** What runs where, once, at the start. */
  introduce(lines: readonly string[]): void
  arrived(arrival: Arrival): void
  /** A few times a second. */
  update(reading: DemoReading): void
  /** Leaves the cursor where printing may go on. */
  end(): void
}

/** Of this run, except for lag and pending items. */
export interface DemoReading {
  /** Where the run stands, e.g. "ends in 12 s". */
  stage: string
  /** Until when every feed was read to its end, wall clock ms; 0: one never was. */
  caughtUpMs: number
  feeds: FeedReading[]
  sinks: SinkReading[]
}

export interface FeedReading {
  name: string
  /** As `team=brand`. */
  labels: string
  fetched: number
  new: number
  /** Of the new ones: found by a sweep. */
  late: number
  duplicate: number
  /** undefined: it never caught up. */
  lagMs: number | undefined
  lagObjectiveMs: number
}

export interface SinkReading {
  name: DemoSink
  /** Events, and the messages that they came in. */
  arrived: number
  messages: number
  /** Items that wait for their group or digest, and all others that are on their way. */
  collected: number
  pending: number
}
