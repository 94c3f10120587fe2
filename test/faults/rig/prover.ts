import { setTimeout as sleep } from 'node:timers/promises'
import type { AccountLedger } from '../../../src/store/account-ledger.ts'
import type { LedgerCheck } from '../../../src/operator/audit/ledger-check.ts'
import { proofOf } from '../../support/ledger.ts'

export interface Prover {
  /** Ends with a last look, once everything is settled. */
  stop(): Promise<{ made: number; findings: string[] }>
}

const everyMs = 3_000

/** Compares the ledger with itself again and again while everything runs, as `audit --ledger` does. */
export function proveAllTheWhile(ledger: AccountLedger): Prover {
  const findings: string[] = []
  let isStopped = false
  let made = 0

  async function prove(): Promise<void> {
    findings.push(...(await proofOf([ledger])).flatMap(findingsOf))
    made += 1
  }

  async function run(): Promise<void> {
    while (!isStopped) {
      await sleep(everyMs)
      await prove().catch(() => undefined) // Redis is away
    }
  }

  const running = run()
  return {
    async stop() {
      isStopped = true
      await running
      await prove()
      return { made, findings }
    },
  }
}

function findingsOf({
  differences,
  stranded,
  misfiled,
  accounting,
  unfiled,
}: LedgerCheck): string[] {
  const accounts = Object.entries({ ...accounting.feeds, ...accounting.sinks })
  return [
    ...(unfiled === 0 ? [] : [`${unfiled} records are not in the index`]),
    ...accounts.flatMap(([name, { unaccounted }]) =>
      unaccounted === 0 ? [] : [`${name}: ${unaccounted} unaccounted for`],
    ),
    ...differences.map(
      ({ sink, counted, found }) => `sink ${sink}: ${counted} counted, ${found} in the records`,
    ),
    ...stranded.map(({ ref, state, lacks }) => `stranded: ${ref} (${state}) lacks its ${lacks}`),
    ...misfiled.map(({ recordId, why }) => `misfiled: ${recordId} (${why})`),
  ]
}
