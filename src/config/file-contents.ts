/**
 * What the files of a configuration held when they were read: by this a change is told from a file
 * that was only touched.
 */
import { createHash } from 'node:crypto'
import { errorCode } from '../lib/errors.ts'
import { readFileWithin } from '../lib/config/private-files.ts'

/** By path: a digest of the text, or the code of the error why it cannot be read. */
export type FileContents = ReadonlyMap<string, string>

/** 4 Mi characters of at most four bytes each. */
export const maxFileBytes = 16 * 1024 * 1024

function digestText(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}

export function readContents(files: readonly string[]): FileContents {
  return new Map(files.map((file) => [file, digestFile(file)]))
}

function digestFile(file: string): string {
  try {
    return digestText(readFileWithin(file, { maxBytes: maxFileBytes }))
  } catch (error) {
    return errorCode(error)
  }
}

/** A pipe or a device, which says something else each time it is read. */
const special = 'SPECIAL'

/** Paths that both have, with other contents. */
export function changedFiles(before: FileContents, after: FileContents): string[] {
  return [...after]
    .filter(([file, content]) => isChanged(before.get(file), content))
    .map(([file]) => file)
}

function isChanged(before: string | undefined, after: string): boolean {
  return ![undefined, special, after].includes(before) && after !== special
}
