import { secondsInWords, spreadInWords } from './in-words.ts'
import { complaintsOf, type Figures } from './run-chaos.ts'

/** What a run found, for a terminal. */
export function renderFigures(figures: Figures): string {
  const { verdict, recoveryMs, struck } = figures
  const complaints = complaintsOf(figures)
  const strikes = Object.entries(struck).map(([name, times]) => `  ${times} × ${name}`)
  return `${[
    `${figures.name}: ${figures.replicas} replicas, Redis ${figures.store}, seed ${figures.seed}, ${figures.seconds} s`,
    ...strikes,
    `  events ${figures.events}, deliveries due ${verdict.expected}, received ${verdict.received}`,
    `  lost ${verdict.lost.length}, repeated ${verdict.repeated}, explained ${verdict.explained}, unexplained ${verdict.unexplained.length}`,
    `  work of killed replicas (${recoveryMs.samples} pieces) free again after ${spreadInWords(recoveryMs.free)}, taken up after ${spreadInWords(recoveryMs.taken)}`,
    `  all settled ${secondsInWords(figures.settledAfterMs)} after the last disturbance; late exits ${figures.lateExits}, crashes ${figures.crashes}`,
    `  the ledger compared with itself ${figures.ledgerChecks.made} times meanwhile, findings ${figures.ledgerChecks.findings.length}`,
    ...complaints.slice(0, 30).map((line) => `  ${line}`),
  ].join('\n')}\n`
}

export function sayFigures(figures: Figures): void {
  process.stdout.write(renderFigures(figures))
}
