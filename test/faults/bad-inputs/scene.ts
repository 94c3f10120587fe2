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
import { fixtures, variables } from './inputs.ts'
import {
  firstBadGroup,
  goodGroup,
  itemsGroup,
  startPretenders,
  type Pretenders,
} from './pretenders.ts'

export type LogLine = Record<string, unknown>

export interface Scene {
  /** Of the configuration that runs. */
  file: string
  port: number
  pretenders: Pretenders
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
  const pretenders = await startPretenders()
  const port = await freePort()
  const text = rehearsalConfig({ redisUrl: redis.url, port, pretenders })
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
    await stop({ child, redis, pretenders, folder })
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
    log,
    reload,
    restore: () => reload(text),
    isAlive: () => child.exitCode === null && child.signalCode === null,
    stop: () => stop({ child, redis, pretenders, folder }),
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
  folder: string
}

async function stop({ child, redis, pretenders, folder }: Running): Promise<void> {
  if (child.exitCode === null && child.signalCode === null) {
    const gone = once(child, 'exit')
    child.kill('SIGKILL') // what hangs at sinks that never answer well would take its 8 s
    await gone
  }
  await Promise.all([pretenders.stop(), redis.stop()])
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

interface Places {
  redisUrl: string
  port: number
  pretenders: Pretenders
}

/** The type of the event that goes to every sink; others go to the good one alone. */
export const toAllSinks = 'to-all-sinks'

/** A feed for every bad answer, an account for every bad token, a sink for every bad word of one. */
function rehearsalConfig({ redisUrl, port, pretenders }: Places): string {
  const { url, answers, grants, hook, slack } = pretenders
  const sinks = [
    ...hook.map((_, index) => webSink(`hook-${index}`, 'webhook', `${url}/hook/${index}`)),
    ...slack.map((_, index) => webSink(`slack-${index}`, 'slack', `${url}/slack/${index}`)),
  ]
  return `redis: {url: '${redisUrl}'}
http: {port: ${port}}
accounts:
  main: ${accountOf(url, 'good')}
${grants.map((_, index) => `  bad-${index}: ${accountOf(url, `bad-${index}`)}`).join('\n')}
feeds:
  good: ${feedOf('main', goodGroup, '5s')}
  items: ${feedOf('main', itemsGroup, '1h')}
${answers.map((_, index) => `  answer-${index}: ${feedOf('main', firstBadGroup + index, '1h')}`).join('\n')}
${grants.map((_, index) => `  token-${index}: ${feedOf(`bad-${index}`, goodGroup, '1h')}`).join('\n')}
sinks:
  ${webSink('good', 'webhook', `${url}/good`)}
${sinks.map((sink) => `  ${sink}`).join('\n')}
route:
  sinks: [good]
  group_wait: 0s
  routes:
    - name: all
      matchers: ['type="${toAllSinks}"']
      sinks: [good, ${sinks.map((sink) => sink.slice(0, sink.indexOf(':'))).join(', ')}]
`
}

function accountOf(url: string, key: string): string {
  return `{base_url: '${url}', link_hosts: [app.example.com], api_key: ${key}, limits: {search: 500, basic: 500}}`
}

function feedOf(account: string, group: number, every: string): string {
  return `{type: events, account: ${account}, identifier_group: ${group}, detail: [], every: ${every}, initial_poll: send}`
}

function webSink(name: string, type: string, url: string): string {
  return `${name}: {type: ${type}, url: '${url}', allow_private: true}`
}
