import { comparePositions, positionOf, type History } from './history.ts'
import type { SandboxEvent } from './sandbox-event.ts'

/** Every event in order of position, whichever groups show it; what came since is sorted in. */
export function createOrderedEvents(history: Pick<History, 'all'>): () => readonly SandboxEvent[] {
  let arrived = 0
  let ordered: SandboxEvent[] = []

  return () => {
    const all = history.all()
    if (all.length !== arrived) {
      const known = all.length > arrived ? ordered : []
      ordered = [...known, ...all.slice(known.length)].sort((left, right) =>
        comparePositions(positionOf(left), positionOf(right)),
      )
      arrived = all.length
    }
    return ordered
  }
}
