/** How the suppression rules are asked about items that are about to enter a message. */
import type { Clock } from '../lib/clock.ts'
import type { Metrics } from '../lib/metrics/metrics.ts'
import { type InhibitRule, targetKeys } from '../routing/inhibition.ts'
import {
  allowsAll,
  type Candidate,
  decideVerdict,
  type SuppressionSetup,
  type Verdict,
} from '../routing/suppression.ts'
import type { AccountLedger } from '../store/account-ledger.ts'
import type { Suppression } from '../store/records.ts'
import { areInhibited } from '../store/silences.ts'

/** An item as the suppression rules see it. */
export interface SuppressionInput extends Omit<Candidate, 'inhibitedBy'> {
  recordId: string
}

export interface SuppressionRules {
  /** Resolves with one verdict per item, in the order of `items`. */
  decide(ledger: AccountLedger, items: readonly SuppressionInput[]): Promise<Verdict[]>
  /** Whether no rule can suppress anything for a sink just now; its items then need no decision. */
  allowsAll(sink: string): boolean
}

/** Counts an item that was settled without a message. */
export function countSuppressed(
  metrics: Metrics,
  sink: string,
  severity: string,
  reason: Suppression,
): void {
  metrics.suppressedTotal.inc({ sink, severity, reason })
  metrics.itemsSettledTotal.inc({ sink, outcome: 'suppressed' })
}

export function createSuppressionRules(setup: SuppressionSetup, clock: Clock): SuppressionRules {
  const { inhibitRules } = setup
  return {
    async decide(ledger, items) {
      const nowMs = clock.now()
      const inhibiting = await readInhibiting(inhibitRules, { ledger, nowMs }, items)
      return items.map((item, i) =>
        decideVerdict(setup, { ...item, inhibitedBy: inhibiting[i] }, nowMs),
      )
    },
    allowsAll: (sink) => allowsAll(setup, sink),
  }
}

/** Resolves with the rule that inhibits each item, if any. */
async function readInhibiting(
  inhibitRules: readonly InhibitRule[],
  { ledger, nowMs }: { ledger: AccountLedger; nowMs: number },
  items: readonly SuppressionInput[],
): Promise<(string | undefined)[]> {
  const targets = items.flatMap(({ recordId, event }, place) =>
    targetKeys(inhibitRules, event).map((target) => ({ ...target, place, recordId })),
  )
  const answers = await areInhibited(ledger, targets, nowMs)
  return items.map((_item, at) => targets.find(({ place }, i) => place === at && answers[i])?.rule)
}
