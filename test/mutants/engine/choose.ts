/** A seeded order in which every room, file and operator has its turn. */
import { createHash } from 'node:crypto'
import type { Mutant } from './mutant.ts'

export interface RoomMutants {
  room: string
  file: string
  mutants: Mutant[]
}

export interface Drawn {
  room: string
  mutant: Mutant
}

/**
 * All of them, in an order of chance. Rooms count by the square root of their mutants, and so do the files of
 * a room, so that large ones do not crowd out small ones; the operators of a file are each as likely. What a
 * mutant draws depends on the seed and its text alone: after an edit elsewhere a seed draws nearly the same.
 */
export function drawMutants(files: readonly RoomMutants[], seed: number): Drawn[] {
  const rooms = Map.groupBy(files, ({ room }) => room)
  const drawn = [...rooms.values()].flatMap((inRoom) => {
    const roomWeight = Math.sqrt(sum(inRoom.map(({ mutants }) => mutants.length)))
    const fileWeights = inRoom.map(({ mutants }) => Math.sqrt(mutants.length))
    return inRoom.flatMap((file, at) => {
      const share = (fileWeights[at] ?? 0) / sum(fileWeights)
      return weighFile(file, roomWeight * share).map(({ mutant, weight }) => ({
        room: file.room,
        mutant,
        at: -Math.log(chanceOf(mutant, seed)) / weight,
      }))
    })
  })
  return drawn.toSorted((one, other) => one.at - other.at)
}

function weighFile({ mutants }: RoomMutants, weight: number): { mutant: Mutant; weight: number }[] {
  const byOperator = [...Map.groupBy(mutants, ({ operator }) => operator).values()]
  return byOperator.flatMap((alike) =>
    alike.map((mutant) => ({ mutant, weight: weight / byOperator.length / alike.length })),
  )
}

/** In (0, 1]. */
function chanceOf({ file, was, is }: Mutant, seed: number): number {
  const hash = createHash('sha256').update([seed, file, was, is].join('\0')).digest()
  return (hash.readUIntBE(0, 6) + 1) / 2 ** 48
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, one) => total + one, 0)
}
