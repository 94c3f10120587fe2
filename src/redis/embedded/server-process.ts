/**
 * A redis-server as a child of this process. It keeps its data in one folder and never outlives
 * whoever started it, however that one ends.
 */
import { spawn, type ChildProcess } from 'node:child_process'
import { closeSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { systemClock } from '../../runtime/clock.ts'
import { openPrivateFile, replacePrivateFile } from '../../runtime/private-folder.ts'
import { linkName, linkServer } from './server-binary.ts'

export interface ServerProcess {
  /** Aborts when the server is gone, wanted or not. */
  gone: AbortSignal
  stop(): Promise<void>
}

export const logName = 'redis.log'

const stopPatienceMs = 5_000

/**
 * The server takes the place of the shell, so that it is our child. Beside it waits a line of shell
 * for our end of the pipe: when that closes, also because we were killed, it ends the server; a line
 * that comes through instead says that the server is gone already.
 */
const warded = `umask 077; exec 3<&0; (read -r _ <&3 || kill $$) & exec 3<&- "$0" redis.conf </dev/null`

/** What Tocsin asks of a Redis: it neither evicts nor forgets. */
const safeSettings = [
  'appendonly yes',
  'appendfsync everysec',
  'maxmemory-policy noeviction',
  'save ""',
]

/**
 * `listening`: the lines of its configuration that say where it listens. Throws StoreError where there
 * is no such program.
 */
export function startServerProcess(folder: string, listening: readonly string[]): ServerProcess {
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  linkServer(folder)
  replacePrivateFile(join(folder, 'redis.conf'), [...listening, ...safeSettings, ''].join('\n'))
  const child = launch(folder)
  const gone = new AbortController()
  child.once('error', () => gone.abort())
  child.once('exit', () => {
    gone.abort()
    if (!child.stdin?.writableEnded) child.stdin?.end('\n')
  })
  return { gone: gone.signal, stop: () => end(child, gone.signal) }
}

/** Of a session of its own: a Ctrl-C at the terminal is not for the server. */
function launch(folder: string): ChildProcess {
  const log = openPrivateFile(join(folder, logName))
  try {
    const child = spawn('/bin/sh', ['-c', warded, `./${linkName}`], {
      cwd: folder,
      detached: true,
      stdio: ['pipe', log, log],
    })
    child.stdin?.on('error', () => {}) // the reader went first
    return child
  } finally {
    closeSync(log)
  }
}

async function end(child: ChildProcess, gone: AbortSignal): Promise<void> {
  child.stdin?.end()
  await systemClock.sleep(stopPatienceMs, gone)
  if (gone.aborted) return
  child.kill('SIGKILL')
  await systemClock.sleep(stopPatienceMs, gone)
}
