import {
  type ActNote,
  type ActOutcome,
  moveRefusedAct,
  noteAct,
  noteActOutcome,
} from '../store/acts.ts'
import type { OpenLedgers } from './open-ledgers.ts'

type Store = Pick<OpenLedgers, 'redis' | 'keys'>

interface Recording extends ActNote {
  /** What an error of the act means for it; left out: it failed. */
  outcomeOf?: (error: unknown) => ActOutcome
  /** Waits for the note, or throws: then the act does not begin. Left out: waits as long as it takes. */
  awaitNote?: (noted: Promise<string>) => Promise<string>
}

/**
 * Notes who does what before it begins, and what came of it: an act that a dead process leaves is
 * there, and unclear. `isDone`: whether it changed anything. Throws what `perform` throws.
 */
export async function recordAct<Result>(
  store: Store,
  { outcomeOf = () => 'failed', awaitNote = (noted) => noted, ...note }: Recording,
  perform: () => Promise<{ result: Result; isDone: boolean }>,
): Promise<Result> {
  const id = await beginAct(store, note, awaitNote)
  let ended: Awaited<ReturnType<typeof perform>>
  try {
    ended = await perform()
  } catch (error) {
    const outcome = outcomeOf(error)
    if (outcome === 'refused') await moveRefusedAct(store, id, note)
    else await noteActOutcome(store, id, outcome)
    throw error
  }
  await noteActOutcome(store, id, ended.isDone ? 'done' : 'nothing to do')
  return ended.result
}

/** A note that is taken too late tells of an act that never began. */
async function beginAct(
  store: Store,
  note: ActNote,
  awaitNote: NonNullable<Recording['awaitNote']>,
): Promise<string> {
  const noted = noteAct(store, note)
  try {
    return await awaitNote(noted)
  } catch (error) {
    noted.then((id) => moveRefusedAct(store, id, note)).catch(() => undefined)
    throw error
  }
}
