/** A file by which processes of one machine agree on who may work in a folder. */
import { existsSync, linkSync, readFileSync, rmSync, writeFileSync } from 'node:fs'

const held = new Set<string>()

/**
 * Whether it is ours from now on. It names its owner; that of one which is gone is taken over. Throws
 * where the folder takes no file.
 */
export function takeLockFile(path: string): boolean {
  const mine = `${path}.${process.pid}`
  writeFileSync(mine, `${process.pid} ${birthOf(process.pid)}`, { mode: 0o600 })
  try {
    if (isAbandoned(path)) removeAbandoned(path, mine)
    linkSync(mine, path) // fails where it exists, at one instant
    held.add(path)
    return true
  } catch {
    return false
  } finally {
    rmSync(mine, { force: true })
  }
}

/** Only one's own. */
export function dropLockFile(path: string): void {
  if (held.delete(path)) rmSync(path, { force: true })
}

/** One process at a time: of two, the second would remove what the first has made of it. */
function removeAbandoned(path: string, mine: string): void {
  const turn = `${path}.turn`
  if (isAbandoned(turn)) rmSync(turn, { force: true })
  linkSync(mine, turn)
  try {
    if (isAbandoned(path)) rmSync(path, { force: true })
  } finally {
    rmSync(turn, { force: true })
  }
}

function isAbandoned(path: string): boolean {
  if (held.has(path) || !existsSync(path)) return false
  const [owner = 0, birth = ''] = readFileSync(path, 'utf8').split(' ')
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
