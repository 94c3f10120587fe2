/** The highest load that one daemon carries, held: does the backlog stay small and the memory flat? */
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { openLedger, type AccountLedger } from '../../../src/store/account-ledger.ts'
import { sumPending, readAccounting } from '../../../src/store/accounts.ts'
import type { Redis } from '../../../src/redis/connection.ts'
import { createKeys } from '../../../src/redis/keys.ts'
import { startSandbox, type Sandbox } from '../../../src/sandbox/sandbox.ts'
import { connectTo, expectConservation, ledgerConfig } from '../../support/ledger.ts'
import { startRedis } from '../../support/redis.ts'
import { until } from '../../support/until.ts'
import { mebibytesInWords } from './in-words.ts'
import { residentBytes } from './memory.ts'

export interface SoakFigures {
  perSecond: number
  seconds: number
  events: number
  delivered: number
  /** Events that were there and not yet delivered, at most. */
  mostBehind: number
  /** Means over the second and the last fifth of the time, bytes. */
  daemonBytes: readonly [number, number]
  redisBytes: readonly [number, number]
  /** After the load: events that nothing says anything about. */
  unaccounted: number
}

interface Rig {
  sandbox: Sandbox
  redis: Redis
  ledger: AccountLedger
  daemon: ChildProcess
  /** Events that arrived at the webhook, each once. */
  delivered: () => number
}

interface Sample {
  behind: number
  daemonBytes: number
  redisBytes: number
}

export async function runSoak(holdMs: number): Promise<SoakFigures> {
  const perSecond = await onRig(highestLoad)
  // a daemon of its own: the one that was overloaded keeps the heap that this took
  return onRig(async (rig) => {
    const samples = await hold(rig, perSecond, holdMs)
    await allDelivered(rig)
    await until('all is settled', async () => (await pending(rig)) === 0)
    await expectConservation(rig.ledger)
    const events = rig.sandbox.events().length
    const { feeds } = await readAccounting(rig.ledger)
    const fifth = Math.max(1, Math.floor(samples.length / 5))
    const means = (of: (sample: Sample) => number): [number, number] => [
      mean(samples.slice(fifth, 2 * fifth).map(of)),
      mean(samples.slice(-fifth).map(of)),
    ]
    return {
      perSecond,
      seconds: Math.round(holdMs / 1000),
      events,
      delivered: rig.delivered(),
      mostBehind: Math.max(...samples.map(({ behind }) => behind)),
      daemonBytes: means(({ daemonBytes }) => daemonBytes),
      redisBytes: means(({ redisBytes }) => redisBytes),
      unaccounted: events - (feeds['brand']?.new ?? 0),
    }
  })
}

/** Memory may waver by a tenth; what grows with the events grows by more in ten minutes. */
const flat = 1.1

function isSteady({ daemonBytes, mostBehind, perSecond, unaccounted }: SoakFigures): boolean {
  const isFlat = daemonBytes[1] <= daemonBytes[0] * flat
  return isFlat && mostBehind <= perSecond * mostSecondsBehind && unaccounted === 0
}

export function soakComplaints(figures: SoakFigures): string[] {
  return isSteady(figures) ? [] : ['the load was not held, or memory grew']
}

export function renderSoak(figures: SoakFigures): string {
  const { daemonBytes, redisBytes } = figures
  return `${[
    `held ${figures.perSecond} events/s for ${figures.seconds} s: ${figures.delivered} delivered, at most ${figures.mostBehind} behind, unaccounted ${figures.unaccounted}`,
    `  memory of the daemon ${mebibytesInWords(daemonBytes[0])} → ${mebibytesInWords(daemonBytes[1])}, of Redis ${mebibytesInWords(redisBytes[0])} → ${mebibytesInWords(redisBytes[1])}`,
  ].join('\n')}\n`
}

/** A poll comes every 5 s and a batch waits for one: more than twice that, and it falls behind. */
const mostSecondsBehind = 12

/** Long enough that a load a fifth too high is further behind in the end. */
const tryMs = 45_000

/** Ever more until it falls behind; of the last load that it carried, most. */
async function highestLoad(rig: Rig): Promise<number> {
  let carried = 20
  for (let perSecond = 100; perSecond <= 2_000; perSecond = Math.ceil(perSecond * 1.4)) {
    const samples = await hold(rig, perSecond, tryMs)
    if ((samples.at(-1)?.behind ?? 0) > perSecond * mostSecondsBehind) break
    await allDelivered(rig)
    carried = perSecond
  }
  return Math.floor(carried * 0.8)
}

async function allDelivered(rig: Rig): Promise<void> {
  const isThere = (): boolean => rig.delivered() === rig.sandbox.events().length
  await until('all is delivered', isThere).catch(async (cause: unknown) => {
    const { feeds, sinks } = await readAccounting(rig.ledger)
    const found = JSON.stringify({ feeds, sinks })
    const words = `${rig.delivered()} of ${rig.sandbox.events().length} events delivered: ${found}`
    throw new Error(words, { cause })
  })
}

/** Pours for so long, and looks at least every two seconds. */
async function hold(rig: Rig, perSecond: number, ms: number): Promise<Sample[]> {
  const samples: Sample[] = []
  const everyMs = Math.min(2_000, ms / 50)
  const beganMs = performance.now()
  let poured = 0
  let sampledMs = 0
  for (let nowMs = 0; nowMs < ms; nowMs = performance.now() - beganMs) {
    const due = Math.floor((nowMs / 1000) * perSecond) - poured
    if (due > 0) rig.sandbox.addEvents(due, { severity: 'high', ignoredAtMs: null })
    poured += Math.max(0, due)
    if (nowMs - sampledMs >= everyMs) {
      sampledMs = nowMs
      samples.push(await look(rig))
    }
    await sleep(50)
  }
  return samples
}

async function look({ sandbox, redis, daemon, delivered }: Rig): Promise<Sample> {
  const used = /^used_memory:(\d+)/m.exec(await redis.info('memory'))?.[1]
  return {
    behind: sandbox.events().length - delivered(),
    daemonBytes: residentBytes(daemon.pid ?? 0),
    redisBytes: Number(used ?? 0),
  }
}

async function pending({ ledger }: Rig): Promise<number> {
  const { sinks } = await readAccounting(ledger)
  return Object.values(sinks).reduce((sum, sink) => sum + sumPending(sink), 0)
}

function mean(values: readonly number[]): number {
  return Math.round(values.reduce((sum, value) => sum + value, 0) / Math.max(1, values.length))
}

async function onRig<T>(work: (rig: Rig) => Promise<T>): Promise<T> {
  const server = await startRedis({ mayCrash: true })
  const redis = connectTo(server.url)
  const sandbox = await startSandbox({
    organizations: [
      { id: 7, limits: { search: 500, basic: 500 }, keys: [{ key: 'fw_sandbox', tenants: [42] }] },
    ],
    keep: 1_000,
  })
  // an answer that comes too late, while far too much is poured, means a repeat
  const delivered = new Set<string>()
  sandbox.onReceived(({ uids }) => uids.forEach((uid) => delivered.add(uid)))
  const folder = mkdtempSync(join(tmpdir(), 'tocsin-soak-'))
  const daemon = startDaemon(folder, configOf(sandbox, server.url))
  const gone = once(daemon, 'exit')
  try {
    const keys = createKeys('tocsin')
    const ledger = await openLedger({ redis, keys, account: 'main', config: ledgerConfig })
    return await work({ sandbox, redis, ledger: ledger, daemon, delivered: () => delivered.size })
  } finally {
    daemon.kill('SIGTERM')
    await gone
    await sandbox.close()
    redis.disconnect()
    await server.stop()
    rmSync(folder, { recursive: true, force: true })
  }
}

function startDaemon(folder: string, yaml: string): ChildProcess {
  const config = join(folder, 'tocsin.yaml')
  writeFileSync(config, yaml)
  const main = join(import.meta.dirname, '../../../src/main.ts')
  return spawn(process.execPath, [main, 'run', '--config', config], { stdio: 'ignore' })
}

function configOf(sandbox: Sandbox, redisUrl: string): string {
  return `
redis: {url: '${redisUrl}'}
http: {port: 0}
accounts: {main: {base_url: '${sandbox.url}', link_hosts: [app.example.com], api_key: '${sandbox.apiKeys[0]}', limits: {search: 500, basic: 500}}}
feeds: {brand: {type: events, identifier_group: 1042, detail: [], every: 5s, initial_poll: send, rescan: false}}
sinks:
  siem: {type: webhook, url: '${sandbox.webhookUrl}', secret: '${sandbox.webhookSecret}', allow_private: true, batch: {max: 50, wait: 1s}}
route: {sinks: [siem]}
retention: {max_bytes: 64MiB}
`
}
