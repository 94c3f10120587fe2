/** Files that only this user may read, and limits for reading files that an operator names. */
import { randomBytes } from 'node:crypto'
import {
  closeSync,
  constants,
  fstatSync,
  linkSync,
  openSync,
  readSync,
  rmSync,
  writeFileSync,
} from 'node:fs'

/** Creates a file whole or not at all; throws EEXIST if something has its name. */
export function createPrivateFile(path: string, content: string | Uint8Array): void {
  const temporary = `${path}.${randomBytes(8).toString('hex')}`
  try {
    writeFileSync(temporary, content, { flag: 'wx', mode: 0o600 })
    linkSync(temporary, path)
  } finally {
    rmSync(temporary, { force: true })
  }
}

/** Limits for text files that an operator names: reading must neither block nor fill the memory. */
export interface FileLimits {
  maxBytes: number
  /** Accept anything readable, including a pipe as shells make it for `<(…)`, and wait for it. */
  mayWait?: boolean
}

/** Keys, passwords and addresses. */
export const secretLimits: FileLimits = { maxBytes: 64 * 1024 }

/** Bundles of certificate authorities. */
export const certificateLimits: FileLimits = { maxBytes: 4 * 1024 * 1024 }

/**
 * Reads the text of a file. Links are followed: mounted secrets are links. Throws an Error whose
 * `code` is the system's, `SPECIAL` for a pipe or a device, or `TOO_LONG`.
 */
export function readFileWithin(path: string, { maxBytes, mayWait }: FileLimits): string {
  // A pipe that nobody writes to would block the whole process.
  const file = openSync(path, constants.O_RDONLY | (mayWait ? 0 : constants.O_NONBLOCK))
  try {
    const status = fstatSync(file)
    // reading a directory fails with its own error
    const isUsual = status.isFile() || status.isDirectory()
    if (!isUsual && !mayWait) throw fileError(path, 'SPECIAL', 'is no regular file')
    return readWithin(file, { path, maxBytes })
  } finally {
    closeSync(file)
  }
}

function fileError(path: string, code: 'SPECIAL' | 'TOO_LONG', what: string): Error {
  return Object.assign(new Error(`the file ${path} ${what}`), { code })
}

/** Throws `TOO_LONG` if there is more. The size is not asked beforehand, because a device has none. */
function readWithin(file: number, { path, maxBytes }: { path: string; maxBytes: number }): string {
  const chunks: Buffer[] = []
  let bytes = 0
  for (;;) {
    const chunk = Buffer.alloc(64 * 1024)
    const read = readSync(file, chunk)
    if (read === 0) return Buffer.concat(chunks).toString('utf8')
    bytes += read
    if (bytes > maxBytes) {
      throw fileError(path, 'TOO_LONG', `is longer than ${maxBytes / 1024} KiB`)
    }
    chunks.push(chunk.subarray(0, read))
  }
}
