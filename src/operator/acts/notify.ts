import { createWorkHints } from '../../delivery/due-accounts.ts'
import { readSinkNames } from '../../store/pending-items.ts'
import type { OpenLedgers } from '../open-ledgers.ts'

/**
 * Makes a running daemon look at once for work that a command made due, at every sink of the
 * accounts.
 */
export async function notifyDaemon(
  { redis, keys, ledgers }: OpenLedgers,
  accounts: Iterable<string>,
): Promise<void> {
  for (const account of accounts) {
    const ledger = ledgers.find((one) => one.account === account)
    const sinks = ledger ? await readSinkNames(ledger) : []
    await createWorkHints(redis, keys).write(sinks.map((sink) => ({ account, sink, inMs: 0 })))
  }
}
