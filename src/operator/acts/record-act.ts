import {
  type ActNote,
  type ActOutcome,
  moveIdleAct,
  noteAct,
  noteActOutcome,
} from '../../store/history/acts.ts'
import type { OpenLedgers } from '../open-ledgers.ts'

type Store = Pick<OpenLedgers, 'redis' | 'keys'>

interface Recording extends ActNote {
  /** What an error of the act means for it; by default nobody knows how far it came. */
  outcomeOf?: (error: unknown) => 'refused' | 'unclear'
  /** The act has ended, and that could not be noted: it is recorded as unclear. */
  onUnnoted: (error: unknown) => void
  /** Waits for the note, or throws: then the act does not begin. Left out: waits as long as it takes. */
  awaitNote?: (noted: Promise<string>) => Promise<string>
}

/**
 * Notes who does what before it begins, and what came of it: an act that a dead process leaves is
 * there, and unclear. `isDone`: whether it changed anything. Throws what `perform` throws.
 */
export async function recordAct<Result>(
  store: Store,
  { outcomeOf = () => 'unclear', awaitNote = (noted) => noted, onUnnoted, ...note }: Recording,
  perform: () => Promise<{ result: Result; isDone: boolean }>,
): Promise<Result> {
  const id = await beginAct(store, note, awaitNote)
  const end = (outcome: ActOutcome): Promise<void> => {
    const isIdle = outcome === 'refused' || outcome === 'nothing to do'
    const noted = isIdle
      ? moveIdleAct(store, { id, note, outcome })
      : noteActOutcome(store, id, outcome)
    return noted.catch(onUnnoted)
  }
  let ended: Awaited<ReturnType<typeof perform>>
  try {
    ended = await perform()
  } catch (error) {
    await end(outcomeOf(error))
    throw error
  }
  await end(ended.isDone ? 'done' : 'nothing to do')
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
    noted.then((id) => moveIdleAct(store, { id, note, outcome: 'refused' })).catch(() => undefined)
    throw error
  }
}
