import { inspect } from 'node:util'
import { readFileWithin, secretLimits } from './read-file.ts'

/** A secret of the configuration. Prints as `<secret>` wherever it is logged, joined or serialised. */
export interface Secret {
  /** The value; a file is read at each use and trimmed, so that rotation needs no restart. */
  reveal(): string
  /** The file that holds it, where it stands in one. */
  readonly file?: string
  toString(): string
  toJSON(): string
}

const hidden = '<secret>'

export function secretOf(read: () => string, file?: string): Secret {
  return {
    reveal: read,
    ...(file === undefined ? {} : { file }),
    toString: () => hidden,
    toJSON: () => hidden,
    [inspect.custom]: () => hidden,
  } as Secret
}

export function secretFromText(text: string): Secret {
  return secretOf(() => text)
}

export function secretFromFile(path: string): Secret {
  return secretOf(() => readFileWithin(path, secretLimits).trim(), path)
}
