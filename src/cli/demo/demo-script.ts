/**
 * What the demo has happen besides the events that arrive by themselves: leaked credentials, and one
 * event that arrives too late for any cursor.
 */
import type { DemoSandbox } from './demo-sandbox.ts'

export interface DemoScript {
  /** A few times a second. `isCaughtUp`: every feed was read to its end since the run began. */
  step(elapsedMs: number, isCaughtUp: boolean): void
  readonly isLateShown: boolean
}

const credentialsEveryMs = 8_000
const credentialsAtOnce = 3

/**
 * Within `sweep.back` of the demo's feeds, and behind every cursor: the last page is read again at each
 * poll, and in a first run its ten events reach back half a day.
 */
const lateAgeMs = 20 * 3_600_000

export function createDemoScript(
  sandbox: Pick<DemoSandbox, 'showLate' | 'showCredentials'>,
): DemoScript {
  let nextCredentialsMs = 0
  let isLateShown = false
  return {
    get isLateShown() {
      return isLateShown
    },
    step(elapsedMs, isCaughtUp) {
      if (elapsedMs >= nextCredentialsMs) {
        sandbox.showCredentials(credentialsAtOnce)
        nextCredentialsMs = elapsedMs + credentialsEveryMs
      }
      if (isCaughtUp && !isLateShown) {
        sandbox.showLate(lateAgeMs)
        isLateShown = true
      }
    },
  }
}
