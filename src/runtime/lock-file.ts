/** A file by which processes of one machine agree on who may work in a folder. */
import { existsSync, linkSync, readFileSync, rmSync, writeFileSync } from 'node:fs'

const held = new Set<string>()

/** Whether it is ours from now on. It holds its owner's process id; that of one which is gone is taken over. */
export function takeLockFile(path: string): boolean {
  const mine = `${path}.${process.pid}`
  writeFileSync(mine, String(process.pid), { mode: 0o600 })
  try {
    if (isAbandoned(path)) rmSync(path, { force: true })
    linkSync(mine, path) // fails where it exists, at one instant
    held.add(path)
    return true
  } catch {
    return false
  } finally {
    rmSync(mine, { force: true })
  }
}

export function dropLockFile(path: string): void {
  held.delete(path)
  rmSync(path, { force: true })
}

function isAbandoned(path: string): boolean {
  if (held.has(path) || !existsSync(path)) return false
  const owner = Number(readFileSync(path, 'utf8'))
  // our own id without our knowledge: of an earlier container
  if (!Number.isInteger(owner) || owner <= 0 || owner === process.pid) return true
  try {
    process.kill(owner, 0) // only asks whether there is such a process
    return false
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'ESRCH'
  }
}
