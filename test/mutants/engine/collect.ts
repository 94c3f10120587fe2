/** The mutants of the rooms. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { filesInRooms } from '../rooms.ts'
import type { RoomMutants } from './choose.ts'
import { findStale, readEquivalents } from './equivalents.ts'
import { mutantsOfLua } from './lua.ts'
import type { Mutant } from './mutant.ts'
import { mutantsOfTypeScript } from './typescript.ts'

export const project = join(import.meta.dirname, '../../..')
export const equivalentsFile = join(import.meta.dirname, '../equivalent.yaml')

/** Throws where an explanation explains nothing any more, or where `--only` names nothing. */
export function collectMutants(root: string, only: readonly string[]): RoomMutants[] {
  const all = filesInRooms(root).map(({ room, file }) => {
    const text = readFileSync(join(root, file), 'utf8')
    const mutants = file.endsWith('.lua')
      ? mutantsOfLua(file, text)
      : mutantsOfTypeScript(file, text)
    return { room, file, mutants }
  })
  const stale = findStale(
    readEquivalents(equivalentsFile),
    all.flatMap(({ mutants }) => mutants),
  )
  if (stale.length > 0) {
    const names = stale.map(({ file, was, is }) => `  ${file}\n    was: ${was}\n    is: ${is}`)
    throw new Error(
      `test/mutants/equivalent.yaml explains what is not there any more; remove or mend:\n${names.join('\n')}`,
    )
  }
  if (only.length === 0) return all
  const asked = all.map((one) => ({ ...one, mutants: one.mutants.filter(isAsked(only)) }))
  if (asked.every(({ mutants }) => mutants.length === 0)) {
    throw new Error(`--only ${only.join(', ')}: no mutant is there; see test/mutants/rooms.ts`)
  }
  return asked
}

function isAsked(only: readonly string[]): (mutant: Mutant) => boolean {
  return ({ file, line }) =>
    only.some((one) => one === file || one === `${file}:${line}` || file.startsWith(`${one}/`))
}
