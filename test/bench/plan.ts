/** How much of everything a run measures. */
export interface Plan {
  /** Delivered once before anything is measured: warms the code and tells how fast this machine is. */
  warmUpEvents: number
  /** About how long a slow round may take; the number of events follows from it. */
  roundSeconds: number
  mostEvents: number
  fetchSeconds: number
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
  intakeSeconds: 0.5,
  marksPerWeek: 2_000,
  records: 500,
  jobs: 5_000,
}
