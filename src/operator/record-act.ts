import { type ActNote, noteAct, noteActOutcome } from '../store/acts.ts'
import type { OpenLedgers } from './open-ledgers.ts'

/**
 * Notes who does what before it begins, and what came of it: an act that a dead process leaves is
 * there, and unclear. `isDone`: whether it changed anything. Throws what `perform` throws.
 */
export async function recordAct<Result>(
  store: Pick<OpenLedgers, 'redis' | 'keys'>,
  { isRefusal, ...note }: ActNote & { isRefusal?: (error: unknown) => boolean },
  perform: () => Promise<{ result: Result; isDone: boolean }>,
): Promise<Result> {
  const id = await noteAct(store, note)
  try {
    const { result, isDone } = await perform()
    await noteActOutcome(store, id, isDone ? 'done' : 'nothing to do')
    return result
  } catch (error) {
    await noteActOutcome(store, id, isRefusal?.(error) ? 'refused' : 'failed')
    throw error
  }
}
