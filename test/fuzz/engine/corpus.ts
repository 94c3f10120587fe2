import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { contentName } from './findings.ts'

/** Committed seeds, a folder a target; what a run finds to be of interest is kept beside them, uncommitted. */
export const seedsFolder = join(import.meta.dirname, '../corpus')
export const grownFolder = join(import.meta.dirname, '../grown')

/** The inputs in a folder, by name; none where there is no folder. */
export function readInputs(folder: string): { name: string; input: Uint8Array }[] {
  return namesIn(folder).map((name) => ({ name, input: readFileSync(join(folder, name)) }))
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder).toSorted()
  } catch {
    return []
  }
}

export function writeInput(folder: string, input: Uint8Array): void {
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, contentName(input)), input)
}
