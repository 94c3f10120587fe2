/**
 * Files by which processes of one machine agree on who may work in a folder: `<path>.<n>`, each naming its
 * owner. Whoever makes the next number is the owner; nobody may while an owner lives. A number
 * is never used twice, so that who looked long ago cannot take what another has by now.
 */
import { randomBytes } from 'node:crypto'
import { linkSync, readdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'

/** By path: the file that is ours. */
const held = new Map<string, string>()

/** Whether it is ours from now on; that of an owner which is gone is taken over. Throws where the folder takes no file. */
export function takeLockFile(path: string): boolean {
  if (held.has(path)) return false
  const mine = `${path}-${randomBytes(8).toString('hex')}`
  writeFileSync(mine, `${process.pid} ${birthOf(process.pid)}`, { mode: 0o600, flag: 'wx' })
  try {
    const files = lockFiles(path)
    if (!files.every(({ file }) => isAbandoned(file))) return false
    const next = `${path}.${(files.at(-1)?.number ?? 0) + 1}`
    linkSync(mine, next) // fails where it exists, at one instant
    held.set(path, next)
    for (const { file } of files) rmSync(file, { force: true })
    return true
  } catch {
    return false
  } finally {
    rmSync(mine, { force: true })
  }
}

/** Only one's own; an empty file keeps the number. */
export function dropLockFile(path: string): void {
  const file = held.get(path)
  if (file === undefined) return
  held.delete(path)
  try {
    truncateSync(file)
  } catch {
    // somebody has deleted it, or the folder
  }
}

/** Who keeps us out, for whoever wants to look: a path. */
export function lockFileOf(path: string): string {
  return lockFiles(path).at(-1)?.file ?? path
}

/** Lowest number first; 0: as versions up to 0.4 wrote it. */
function lockFiles(path: string): { file: string; number: number }[] {
  const name = basename(path)
  return readdirSync(dirname(path))
    .filter((file) => file.startsWith(name) && /^(\.\d{1,15})?$/.test(file.slice(name.length)))
    .map((file) => ({
      file: join(dirname(path), file),
      number: Number(file.slice(name.length + 1)),
    }))
    .toSorted((a, b) => a.number - b.number)
}

function isAbandoned(file: string): boolean {
  const [owner = '', birth = ''] = readFileSync(file, 'utf8').split(' ')
  const pid = Number(owner)
  // our own id without our knowledge: of an earlier container
  if (!Number.isInteger(pid) || pid <= 0 || pid === process.pid) return true
  try {
    process.kill(pid, 0) // only asks whether there is such a process
    return birth !== '' && birth !== birthOf(pid) // another one may have its id by now
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'ESRCH'
  }
}

/** When a process began, since the machine did; '' where the system does not tell it as Linux does. */
function birthOf(pid: number): string {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8')
    return text.slice(text.lastIndexOf(')') + 2).split(' ')[19] ?? '' // its name may hold anything
  } catch {
    return ''
  }
}
