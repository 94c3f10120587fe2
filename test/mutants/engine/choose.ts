/** A seeded order in which every room, file and operator has its turn. */
import { createRandom, type Random } from '../../../src/sandbox/random.ts'
import type { Mutant } from './mutant.ts'

export interface RoomMutants {
  room: string
  file: string
  mutants: Mutant[]
}

/**
 * All of them, drawn one by one: the room, then the file, each weighed by the square root of its mutants,
 * so that large ones do not crowd out small ones; then the operator, each as likely; then the mutant.
 */
export function* drawMutants(
  files: readonly RoomMutants[],
  seed: number,
): Generator<{ room: string; mutant: Mutant }> {
  const random = createRandom(seed)
  const left = new Map<string, Map<string, Mutant[]>>()
  for (const { room, file, mutants } of files) {
    if (mutants.length === 0) continue
    left.set(room, (left.get(room) ?? new Map<string, Mutant[]>()).set(file, [...mutants]))
  }
  while (left.size > 0) {
    const room = pickWeighed(random, left, (inRoom) => [...inRoom.values()].flat().length)
    const inRoom = left.get(room) ?? new Map<string, Mutant[]>()
    const file = pickWeighed(random, inRoom, (mutants) => mutants.length)
    const mutants = inRoom.get(file) ?? []
    const operator = random.pick([...new Set(mutants.map((one) => one.operator))])
    const mutant = random.pick(mutants.filter((one) => one.operator === operator))
    mutants.splice(mutants.indexOf(mutant), 1)
    if (mutants.length === 0) inRoom.delete(file)
    if (inRoom.size === 0) left.delete(room)
    yield { room, mutant }
  }
}

function pickWeighed<T>(
  random: Random,
  choices: ReadonlyMap<string, T>,
  sizeOf: (choice: T) => number,
): string {
  const weighed = [...choices].map(([name, choice]) => ({
    name,
    weight: Math.sqrt(sizeOf(choice)),
  }))
  let at = random.next() * weighed.reduce((sum, { weight }) => sum + weight, 0)
  const found = weighed.find(({ weight }) => {
    at -= weight
    return at < 0
  })
  return (found ?? weighed.at(-1))?.name ?? ''
}
