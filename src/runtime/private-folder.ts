/** Folders that only this user may enter, and files in them that no planted link leads elsewhere. */
import { randomBytes } from 'node:crypto'
import {
  closeSync,
  constants,
  lstatSync,
  mkdirSync,
  openSync,
  renameSync,
  writeFileSync,
} from 'node:fs'

/** Makes it where it is missing. What keeps it from being private, in words; undefined: nothing. */
export function troubleOfPrivateFolder(folder: string): string | undefined {
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  const stat = lstatSync(folder)
  if (stat.isSymbolicLink()) return 'it is a symbolic link; name the folder itself'
  if (!stat.isDirectory()) return 'it is no folder; name another'
  const own = process.getuid?.()
  if (own === undefined) return undefined // Windows has neither owners nor modes of this kind
  if (stat.uid !== own)
    return `it belongs to user ${stat.uid}, and this is user ${own}; name a folder of your own`
  if ((stat.mode & 0o077) !== 0)
    return `others may enter it (mode ${(stat.mode & 0o777).toString(8)}); run: chmod 700 ${folder}`
  return undefined
}

/** Whether a socket is there that this user made. */
export function isOwnSocket(path: string): boolean {
  const stat = lstatSync(path, { throwIfNoEntry: false })
  return stat?.isSocket() === true && stat.uid === (process.getuid?.() ?? stat.uid)
}

/** Opens a file for writing from its beginning; throws ELOOP where a link is. */
export function openPrivateFile(path: string): number {
  const { O_WRONLY, O_CREAT, O_TRUNC, O_NOFOLLOW } = constants
  return openSync(path, O_WRONLY | O_CREAT | O_TRUNC | (O_NOFOLLOW ?? 0), 0o600)
}

/** The new content is there whole or not at all. */
export function replacePrivateFile(path: string, text: string): void {
  const made = `${path}.${randomBytes(8).toString('hex')}`
  const file = openSync(made, 'wx', 0o600)
  try {
    writeFileSync(file, text)
  } finally {
    closeSync(file)
  }
  renameSync(made, path)
}
