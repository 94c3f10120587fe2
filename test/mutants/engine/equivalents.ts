/** Mutants that no test can kill, each with its reason; matched by text, so edits elsewhere change nothing. */
import { readFileSync } from 'node:fs'
import { parse } from 'yaml'
import { z } from 'zod'
import type { Mutant } from './mutant.ts'

const entry = z.strictObject({
  file: z.string(),
  /** The lines that the change touches, white space as single blanks. */
  was: z.string(),
  is: z.string(),
  why: z.string().min(20),
})

export type Equivalent = z.infer<typeof entry>

/** Throws where the file is not such a list. */
export function readEquivalents(file: string): Equivalent[] {
  const lists = z.record(z.string(), z.array(entry.omit({ file: true })))
  const byFile = lists.parse(parse(readFileSync(file, 'utf8')) ?? {})
  return Object.entries(byFile).flatMap(([source, entries]) =>
    entries.map((one) => ({ file: source, ...one })),
  )
}

export function explanationOf(
  equivalents: readonly Equivalent[],
  mutant: Mutant,
): Equivalent | undefined {
  return equivalents.find((one) => isSame(one, mutant))
}

/** Entries that match no mutant any more: what they explained has changed or is gone. */
export function findStale(
  equivalents: readonly Equivalent[],
  mutants: readonly Mutant[],
): Equivalent[] {
  return equivalents.filter((one) => !mutants.some((mutant) => isSame(one, mutant)))
}

function isSame({ file, was, is }: Equivalent, mutant: Mutant): boolean {
  return mutant.file === file && mutant.was === was && mutant.is === is
}
