import type { AccountLedger } from '../../src/store/account-ledger.ts'

/** Returns a sink's references that are due at `nowMs`, longest waiting first, from `offset` on. */
export function readDueRefs(
  ledger: AccountLedger,
  sink: string,
  nowMs: number,
  { offset, count }: { offset: number; count: number },
): Promise<string[]> {
  return ledger.redis.zrangebyscore(ledger.key('due', sink), '-inf', nowMs, 'LIMIT', offset, count)
}
