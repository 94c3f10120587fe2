/** A probe looks at one thing that Tocsin needs, and says whether it is well and what to do. */
import { withTimeout } from '../../lib/clock.ts'
import { errorMessage, Interruption } from '../../lib/errors.ts'
import { formatDuration } from '../../lib/time-zone.ts'
import type { ProblemKind } from '../alerts/troubles.ts'

export type Status = 'ok' | 'warning' | 'problem'

export interface Finding {
  check: string
  /** Of what is wrong with the ledger, in a word. */
  kind?: ProblemKind
  /** What was looked at: a sink, an account, a place. */
  subject: string
  status: Status
  detail: string
  /** What to do; null: nothing. */
  remedy: string | null
  /** ISO 8601, where it is known. */
  since?: string
  /** Nothing is read or sent by the subject meanwhile. */
  stops?: true
}

/** `Needs`: what must be open before it is asked. */
export interface Probe<Needs> {
  name: string
  timeoutMs: number
  /** The status of a probe that takes too long; a problem of the network unless given. */
  ifLate?: 'warning'
  /** What stands behind it in a list is asked only if it finds no problem. */
  isBasis?: true
  /** What it looks at, in words. */
  subject(needs: Needs): string
  /** Without a finding there is nothing to look at. */
  find(needs: Needs, subject: Subject, signal: AbortSignal): Promise<Finding[]>
}

/** Makes the findings about one subject. */
export interface Subject {
  good(detail: string): Finding
  bad(status: Exclude<Status, 'ok'>, detail: string, remedy: string): Finding
}

export function about(check: string, subject: string): Subject {
  return {
    good: (detail) => ({ check, subject, status: 'ok', detail, remedy: null }),
    bad: (status, detail, remedy) => ({ check, subject, status, detail, remedy }),
  }
}

export function isProblem({ status }: Finding): boolean {
  return status === 'problem'
}

/**
 * Asks the probes in order. One that throws or takes too long becomes a problem that says so, so that
 * it stops no other. Throws Interruption, whatever was found, once `stop` has aborted.
 */
export async function runProbes<Needs>(
  probes: readonly Probe<Needs>[],
  needs: Needs,
  stop: AbortSignal,
): Promise<Finding[]> {
  const found: Finding[] = []
  for (const probe of probes) {
    const own = await runProbe(probe, needs, stop)
    if (stop.aborted) throw new Interruption()
    found.push(...own)
    if (probe.isBasis && own.some((one) => one.check === probe.name && isProblem(one))) break
  }
  return found
}

async function runProbe<Needs>(
  probe: Probe<Needs>,
  needs: Needs,
  stop: AbortSignal,
): Promise<Finding[]> {
  const { timeoutMs, ifLate } = probe
  const subject = about(probe.name, probe.subject(needs))
  let isLate = false
  try {
    return await withTimeout(timeoutMs, [stop], (signal) => {
      const late = new Promise<never>((_resolve, reject) => {
        signal.addEventListener('abort', () => {
          isLate = true
          reject(signal.reason as Error)
        })
      })
      return Promise.race([probe.find(needs, subject, signal), late])
    })
  } catch (error) {
    if (!isLate) {
      const detail = `could not be checked: ${errorMessage(error)}`
      return [subject.bad('problem', detail, 'mend that, then run doctor again')]
    }
    const remedy = ifLate ? 'run doctor again' : 'look at the network between here and there'
    return [
      subject.bad(ifLate ?? 'problem', `no answer within ${formatDuration(timeoutMs)}`, remedy),
    ]
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

export function formatFinding({ check, subject, detail, remedy }: Finding): string {
  return `${check} ${subject}: ${detail}${remedy === null ? '' : `; ${remedy}`}`
}
