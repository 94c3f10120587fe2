/** One result of `doctor`, and the time that the check behind it may take. */
import { withTimeout } from '../../lib/clock.ts'
import type { Environment } from '../../config/config.ts'
import { errorMessage } from '../../lib/errors.ts'
import type { Outbound } from '../../lib/outbound-config.ts'
import { formatDuration, Interruption } from '../terminal.ts'

/** `note`: nothing is wrong, and somebody may want to know. */
export type Status = 'ok' | 'note' | 'warning' | 'problem'

export interface DoctorFinding {
  check: string
  /** What was looked at: a sink, an account, a place. */
  subject: string
  status: Status
  detail: string
  /** What to do; null: nothing. */
  remedy: string | null
}

/** What a check is about; it makes the findings of one subject. */
export interface Subject {
  good(detail: string): DoctorFinding
  bad(status: Exclude<Status, 'ok'>, detail: string, remedy: string): DoctorFinding
}

export function about(check: string, subject: string): Subject {
  return {
    good: (detail) => ({ check, subject, status: 'ok', detail, remedy: null }),
    bad: (status, detail, remedy) => ({ check, subject, status, detail, remedy }),
  }
}

/** A sentence as it follows a semicolon: "Check the host." becomes "check the host". */
export function toClause(sentence: string): string {
  const clause = sentence.replace(/\.$/, '')
  return clause.replace(/^[A-Z](?=[a-z]* )/, (letter) => letter.toLowerCase())
}

/** Parts a message that says after a semicolon what to do. */
export function splitRemedy(message: string, otherwise: string): [string, string] {
  const [problem = '', ...remedy] = message.split('; ')
  return [problem, remedy.join('; ') || otherwise]
}

/** The line to write where the environment names a proxy that what is not reached does not use. */
export function proxyRemedy({ proxy }: Outbound, env: Environment): string | undefined {
  const names = ['HTTPS_PROXY', 'https_proxy', 'ALL_PROXY', 'all_proxy']
  const name = names.find((one) => (env[one] ?? '') !== '')
  if (proxy !== undefined || name === undefined) return undefined
  return `this network has a proxy: write proxy: \${${name}}, unless it is reached without`
}

export interface CheckLimits {
  timeoutMs: number
  stop: AbortSignal
  /** What it is that a check takes too long; a problem of the network unless given. */
  ifLate?: 'warning'
}

/**
 * Makes one check. One that throws or takes too long becomes a problem that says so, so that it
 * stops no other. Throws Interruption, whatever was found, once `stop` has aborted.
 */
export async function makeCheck(
  subject: Subject,
  limits: CheckLimits,
  work: (signal: AbortSignal) => Promise<DoctorFinding[]>,
): Promise<DoctorFinding[]> {
  const found = await findOrFail(subject, limits, work)
  if (limits.stop.aborted) throw new Interruption()
  return found
}

async function findOrFail(
  subject: Subject,
  { timeoutMs, stop, ifLate }: CheckLimits,
  work: (signal: AbortSignal) => Promise<DoctorFinding[]>,
): Promise<DoctorFinding[]> {
  let isLate = false
  try {
    return await withTimeout(timeoutMs, [stop], (signal) => {
      const late = new Promise<never>((_resolve, reject) => {
        signal.addEventListener('abort', () => {
          isLate = true
          reject(signal.reason as Error)
        })
      })
      return Promise.race([work(signal), late])
    })
  } catch (error) {
    if (isLate) {
      const detail = `no answer within ${formatDuration(timeoutMs)}`
      if (ifLate) return [subject.bad(ifLate, detail, 'run doctor again')]
      return [subject.bad('problem', detail, 'look at the network between here and there')]
    }
    const detail = `could not be checked: ${errorMessage(error)}`
    return [subject.bad('problem', detail, 'mend that, then run doctor again')]
  }
}
