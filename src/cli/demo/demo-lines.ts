import type { Clock } from '../../runtime/clock.ts'
import { clockTime } from './demo-arrival.ts'
import type { DemoView } from './demo-view.ts'

type Print = (line: string) => void

/** What comes beyond it within a second is counted instead. */
const linesPerSecond = 5

/** A line for each arrival, as many as a reader or a build log can bear. */
export function createDemoLines({ print, clock }: { print: Print; clock: Clock }): DemoView {
  let sinceMs = -Infinity
  let printed = 0
  let unsaid = 0

  function sayRest(): void {
    if (unsaid > 0) print(`… and ${unsaid} more`)
    unsaid = 0
  }

  function renew(): void {
    if (clock.monotonic() - sinceMs < 1_000) return
    sayRest()
    sinceMs = clock.monotonic()
    printed = 0
  }

  return {
    introduce: (lines) => lines.forEach((line) => print(line)),
    arrived({ atMs, sink, text }) {
      renew()
      if (printed < linesPerSecond) print(`${clockTime(atMs)} ${sink} ${text}`)
      else unsaid += 1
      printed += 1
    },
    update: renew,
    end: sayRest,
  }
}

/** One JSON value a line, every arrival. */
export function createDemoJson(print: Print): DemoView {
  return {
    introduce: () => {},
    arrived({ atMs, ...arrival }) {
      print(JSON.stringify({ kind: 'arrival', at: new Date(atMs).toISOString(), ...arrival }))
    },
    update: () => {},
    end: () => {},
  }
}
