/** What is done to events and credentials at the service, with a note of who asked for it. */
import type { AccountLedger } from '../../store/account-ledger.ts'
import {
  noteWrite,
  noteWriteOutcome,
  type WriteRequest,
} from '../../store/history/service-writes.ts'
import { UpstreamError } from '../../upstream/error.ts'

/**
 * Statuses that concern the requested thing, not the key, the connection or the state of the API.
 */
export const requestFaultStatuses = new Set([400, 403, 404, 409, 410, 422])

/**
 * Notes a request before it is sent, and what came of it. Throws what `send` throws, and what Redis
 * throws: what cannot be recorded is not done.
 */
export async function recordServiceAct<Result>(
  ledger: AccountLedger,
  request: WriteRequest,
  send: () => Promise<Result>,
): Promise<Result> {
  const id = await noteWrite(ledger, request)
  try {
    const answer = await send()
    await noteWriteOutcome(ledger, id, 'done')
    return answer
  } catch (error) {
    if (!(error instanceof UpstreamError)) throw error
    const isRefused = requestFaultStatuses.has(error.status ?? 0)
    const without = isRefused ? 'refused' : 'not done'
    await noteWriteOutcome(ledger, id, error.mayBeDone ? 'unclear' : without)
    throw error
  }
}
