import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'

/** Bytes of memory that a process holds (resident set), by /proc or `ps`. */
export function residentBytes(pid: number): number {
  try {
    const line = /^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))
    return Number(line?.[1] ?? 0) * 1024
  } catch {
    const said = execFileSync('ps', ['-o', 'rss=', '-p', String(pid)], { encoding: 'utf8' })
    return Number(said) * 1024
  }
}
