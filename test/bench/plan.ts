/** How much of everything a run measures. */
export interface Plan {
  /** Delivered once before anything is measured: warms the code and tells how fast this machine is. */
  warmUpEvents: number
  /** About how long a slow round may take; the number of events follows from it. */
  roundSeconds: number
  mostEvents: number
  fetchSeconds: number
  /** Events, and credentials, that a feed of each type finds. */
  polledItems: number
  /** Of these events, how many the legacy search finds: the sandbox looks through them for each page. */
  legacyItems: number
  /** Events in the window of a sweep; growing. */
  windows: readonly number[]
  intakeSeconds: number
  /** Marks in each week of the intake's ledger. */
  marksPerWeek: number
  records: number
  jobs: number
}

/** The promise is said for so many uids, so it is measured with so many, in a quick run too. */
export const rememberedUids = 1_000_000

export const mostBytesPerUid = 16

export const fullPlan: Plan = {
  warmUpEvents: 500,
  roundSeconds: 15,
  mostEvents: 10_000,
  fetchSeconds: 5,
  polledItems: 5_000,
  legacyItems: 1_000,
  windows: [1_000, 5_000, 20_000],
  intakeSeconds: 6,
  marksPerWeek: 50_000,
  records: 5_000,
  jobs: 10_000,
}

export const quickPlan: Plan = {
  warmUpEvents: 100,
  roundSeconds: 1,
  mostEvents: 400,
  fetchSeconds: 0.5,
  polledItems: 200,
  legacyItems: 50,
  windows: [50, 100, 200],
  intakeSeconds: 0.5,
  marksPerWeek: 2_000,
  records: 500,
  jobs: 5_000,
}
