/**
 * A daemon in a process of its own, between a service and sinks that answer as they are told. Nothing of
 * it outlives `stop`.
 */
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { freePort } from '../../support/free-port.ts'
import { startRedis, type TestRedis } from '../../support/redis.ts'
import { fixtures, variables } from './configurations.ts'
import { startMailServers, type MailServers } from './mail-servers.ts'
import { startPretenders, type Pretenders } from './pretenders.ts'
import { rehearsalConfig } from './rehearsal-config.ts'

export type LogLine = Record<string, unknown>

export interface Scene {
  /** Of the configuration that runs. */
  file: string
  port: number
  pretenders: Pretenders
  mail: MailServers
  log: LogLine[]
  /** Puts a file in place and asks the daemon to read it; resolves with what it says of it. */
  reload(text: string): Promise<LogLine>
  /** Puts the file of the start back. */
  restore(): Promise<LogLine>
  isAlive(): boolean
  stop(): Promise<void>
}

const main = join(import.meta.dirname, '../../../src/main.ts')
const aboutReloads = [
  'configuration reloaded',
  'configuration not reloaded; the old one stays',
  'configuration read again; nothing in it has changed',
]

export async function startScene(): Promise<Scene> {
  const folder = mkdtempSync(join(tmpdir(), 'tocsin-bad-inputs-'))
  cpSync(fixtures, join(folder, 'config'), { recursive: true })
  const file = join(folder, 'config/bad/tocsin.yaml')
  const redis = await startRedis({ mayCrash: true })
  const [pretenders, mail] = await Promise.all([startPretenders(), startMailServers()])
  const port = await freePort()
  const text = rehearsalConfig({ redisUrl: redis.url, port, pretenders, mail })
  writeFileSync(file, text)
  const child = startDaemon(file)
  const log: LogLine[] = []
  const lines = createInterface({ input: child.stdout! })
  lines.on('line', (line) => log.push(parseLine(line)))
  const hasBegun = await untilTrue(
    () => log.some(({ msg }) => msg === 'tocsin runs') || child.exitCode !== null,
    30_000,
  )
  if (!hasBegun || child.exitCode !== null) {
    await stop({ child, redis, pretenders, mail, folder })
    throw new Error('the daemon does not begin; what it says is above')
  }

  async function reload(next: string): Promise<LogLine> {
    const already = said(log).length
    writeFileSync(`${file}.new`, next)
    renameSync(`${file}.new`, file)
    child.kill('SIGHUP')
    // whether it answers at all is asked, not how soon: all the other bad inputs come meanwhile
    await untilTrue(() => said(log).length > already || child.exitCode !== null, 240_000)
    return said(log).at(-1) ?? {}
  }

  return {
    file,
    port,
    pretenders,
    mail,
    log,
    reload,
    restore: () => reload(text),
    isAlive: () => child.exitCode === null && child.signalCode === null,
    stop: () => stop({ child, redis, pretenders, mail, folder }),
  }
}

function startDaemon(file: string): ChildProcess {
  return spawn(process.execPath, [main, 'run', '--config', file], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { PATH: process.env['PATH'], ...variables },
  })
}

function parseLine(line: string): LogLine {
  try {
    return JSON.parse(line) as LogLine
  } catch {
    return { msg: 'a line that is no JSON', line }
  }
}

function said(log: LogLine[]): LogLine[] {
  return log.filter(({ msg }) => aboutReloads.includes(String(msg)))
}

interface Running {
  child: ChildProcess
  redis: TestRedis
  pretenders: Pretenders
  mail: MailServers
  folder: string
}

async function stop({ child, redis, pretenders, mail, folder }: Running): Promise<void> {
  if (child.exitCode === null && child.signalCode === null) {
    const gone = once(child, 'exit')
    child.kill('SIGKILL') // what hangs at sinks that never answer well would take its 8 s
    await gone
  }
  await Promise.all([pretenders.stop(), mail.stop(), redis.stop()])
  rmSync(folder, { recursive: true, force: true })
}

/** False where it did not come true in that time. */
export async function untilTrue(holds: () => boolean, patienceMs: number): Promise<boolean> {
  const deadline = performance.now() + patienceMs
  while (!holds()) {
    if (performance.now() > deadline) return false
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
  return true
}
