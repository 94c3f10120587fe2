/** Acts of an operator on dead letters, for tests of what comes of them. */
import type { AccountLedger } from '../../src/store/account-ledger.ts'
import { discardItem, type RedirectStatus, resendItem } from '../../src/store/pending-items.ts'

export function replayDeadLetter(
  ledger: AccountLedger,
  ref: string,
  batchWaitMs: number | undefined,
): Promise<RedirectStatus> {
  return resendItem(ledger, ref, { batchWaitMs, by: 'resent by ann', was: 'dead' })
}

export function discardDeadLetter(ledger: AccountLedger, ref: string): Promise<RedirectStatus> {
  return discardItem(ledger, ref, 'by ann')
}
