/** Text files that an operator names: none is waited for, and none fills the memory. */
import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs'

export interface FileLimits {
  maxBytes: number
  /** Whatever can be read will do, a pipe as shells make them of `<(…)` too; it is waited for. */
  mayWait?: boolean
}

/** Keys, passwords and addresses. */
export const secretLimits: FileLimits = { maxBytes: 64 * 1024 }

/** Bundles of certificate authorities. */
export const certificateLimits: FileLimits = { maxBytes: 4 * 1024 * 1024 }

/**
 * The text of a file. Links are followed: mounted secrets are links. Throws an Error whose `code` is the
 * system's, `SPECIAL` for a pipe or a device, or `TOO_LONG`.
 */
export function readFileWithin(path: string, { maxBytes, mayWait }: FileLimits): string {
  // a pipe that nobody writes to would hold up the whole process
  const file = openSync(path, constants.O_RDONLY | (mayWait ? 0 : constants.O_NONBLOCK))
  try {
    const status = fstatSync(file)
    const isUsual = status.isFile() || status.isDirectory() // reading a directory says so itself
    if (!isUsual && !mayWait) throw refused(path, 'SPECIAL', 'is no regular file')
    const text = readWithin(file, maxBytes)
    if (text === undefined) throw refused(path, 'TOO_LONG', `is longer than ${maxBytes / 1024} KiB`)
    return text
  } finally {
    closeSync(file)
  }
}

function refused(path: string, code: 'SPECIAL' | 'TOO_LONG', what: string): Error {
  return Object.assign(new Error(`the file ${path} ${what}`), { code })
}

/** undefined: there is more. A device has no size that could be asked for beforehand. */
function readWithin(file: number, maxBytes: number): string | undefined {
  const chunks: Buffer[] = []
  let bytes = 0
  for (;;) {
    const chunk = Buffer.alloc(64 * 1024)
    const read = readSync(file, chunk)
    if (read === 0) return Buffer.concat(chunks).toString('utf8')
    bytes += read
    if (bytes > maxBytes) return undefined
    chunks.push(chunk.subarray(0, read))
  }
}
