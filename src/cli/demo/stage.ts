/** Everything that a demo runs: its own Redis, the sandbox, and the daemon in this process. */
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Config } from '../../config/config.ts'
import { loadConfig, type LoadedConfig } from '../../config/load.ts'
import { createApp } from '../../daemon/daemon.ts'
import { endDigest } from '../../daemon/for-commands/engine.ts'
import { systemClock, withTimeout } from '../../lib/clock.ts'
import type { Logger } from '../../lib/logger.ts'
import { secretFromText } from '../../lib/secret.ts'
import { connectRedis, type Redis } from '../../redis/connection.ts'
import { logName, startServerProcess } from '../../redis/embedded-redis.ts'
import { createKeys } from '../../redis/keys.ts'
import { type AccountLedger, openLedger } from '../../store/account-ledger.ts'
import { pauseFeed, peekFeed } from '../../store/feed-state.ts'
import { silentLogger } from '../context.ts'
import { requireDigestSink, withEngine } from '../open/open-engine.ts'
import { CommandError } from '../terminal.ts'
import { readVersion } from '../version.ts'
import {
  type DemoFigures,
  computeFigures,
  readRun,
  type DemoRun,
  readShownUids,
} from './account.ts'
import {
  type Arrival,
  isDemoMessage,
  toArrival,
  type DemoReading,
  readBaseline,
  readEvidence,
  type Receipt,
} from './evidence.ts'
import { demoConfig, type DemoFolder, digestSink } from './folder.ts'
import { demoIdentifier, type DemoSandbox, startDemoSandbox } from './sandbox.ts'

export interface DemoStage {
  introduction: string[]
  /** Starts the arrival of events at the sandbox; the returned function stops it. */
  startArrivals(): () => Promise<void>
  /** Called a few times a second while events arrive: runs the scripted extras. */
  step(reading: Pick<DemoReading, 'caughtUpMs'>): void
  /** Whether `step` has shown the late event. */
  isLateShown(): boolean
  /** Whether the feeds have read all that arrived before `untilMs`, including the late event. */
  hasRead(reading: Pick<DemoReading, 'caughtUpMs' | 'feeds'>, untilMs: number): boolean
  /** Pauses every feed. */
  pausePolling(): Promise<void>
  /** Ends the digest window, so that the daemon sends the digest now. */
  sendDigest(): Promise<void>
  read(): Promise<Omit<DemoReading, 'stage'>>
  /** Stops the daemon, then reads the whole ledger. */
  finish(): Promise<DemoFigures>
  /** Rejects when something that the demo depends on breaks. */
  broken: Promise<never>
  close(): Promise<void>
}

interface DemoStageOptions {
  folder: DemoFolder
  rate: number
  onArrival: (arrival: Arrival) => void
  logger: Logger
}

export async function startStage(options: DemoStageOptions): Promise<DemoStage> {
  const closers = createClosers(options.logger)
  try {
    return await startStageParts(options, closers)
  } catch (error) {
    await closers.closeAll()
    throw error
  }
}

async function startStageParts(options: DemoStageOptions, closers: Closers): Promise<DemoStage> {
  const { folder, logger, onArrival } = options
  const redis = await startRedis(folder, logger)
  closers.add(() => redis.stop())
  const sandbox = await startDemoSandbox(options)
  closers.add(() => sandbox.close())
  const loaded = writeConfig(folder, redis.url, sandbox)
  const { config } = loaded
  const [account = ''] = config.accounts.map(({ name }) => name)
  const keys = createKeys(config.redis.prefix)
  const ledger = await openLedger({ redis: redis.client, keys, account, config: config.ledger })
  const baseline = await readBaseline(ledger)
  await resumePolling(ledger, config)
  const received: Receipt[] = []
  sandbox.onReceived((message) => {
    if (!isDemoMessage(message)) return
    const arrival = toArrival(message)
    received.push(arrival)
    onArrival(arrival)
  })
  const app = createApp({ ...loaded, version: readVersion(), logger })
  const stopApp = onlyOnce(() => app.stop())
  closers.add(stopApp)
  const { url } = await app.start()
  const run: DemoRun = { config, ledger, baseline, sandbox, received, rescannedAtMs: new Map() }
  const script = createDemoScript(sandbox)
  return {
    introduction: introduce(folder, sandbox, url),
    startArrivals: () => sandbox.startArrivals(),
    step: ({ caughtUpMs }) =>
      script.step(systemClock.now() - baseline.atMs, caughtUpMs > baseline.atMs),
    isLateShown: () => script.isLateShown,
    hasRead: ({ caughtUpMs, feeds }, untilMs) =>
      caughtUpMs > untilMs && (!script.isLateShown || feeds.some(({ late }) => late > 0)),
    pausePolling: () => pausePolling(ledger, config),
    sendDigest: () => sendDigestNow(config, digestSink),
    read: () => readRun(run),
    async finish() {
      await stopApp()
      const evidence = await readEvidence(ledger, {
        baseline,
        received,
        shown: await readShownUids(run),
      })
      return computeFigures(evidence)
    },
    broken: rejectWhenRedisEnds(redis.gone, folder),
    close: () => closers.closeAll(),
  }
}

/** Distinguishes the demo's pause from an operator's. */
const pauseReason = 'the demo ends'

async function pausePolling(ledger: AccountLedger, { feeds }: Config): Promise<void> {
  const pause = { reason: pauseReason, sinceMs: systemClock.now() }
  for (const { name } of feeds) await pauseFeed(ledger, name, pause)
}

/** Ends the pause that the end of an earlier run left. */
async function resumePolling(ledger: AccountLedger, { feeds }: Config): Promise<void> {
  for (const { name } of feeds) {
    const state = await peekFeed(ledger, name, systemClock.now())
    if (state?.paused?.reason === pauseReason) await pauseFeed(ledger, name, undefined)
  }
}

async function startRedis(
  folder: DemoFolder,
  logger: Logger,
): ReturnType<typeof startPrivateRedis> {
  const password = folder.state.redisPassword
  const server = { folder: folder.at('redis'), password, logger }
  if (folder.state.ports.redis > 0) {
    await endLeftoverRedis({ ...server, port: folder.state.ports.redis })
  }
  await folder.settlePorts()
  return startPrivateRedis({ ...server, port: folder.state.ports.redis })
}

/** Writes the configuration and loads it from the file, so that the file shows what runs. */
function writeConfig(folder: DemoFolder, redisUrl: string, sandbox: DemoSandbox): LoadedConfig {
  const path = folder.at('tocsin.yaml')
  const { id: identifier } = demoIdentifier
  const text = demoConfig({ redisUrl, httpPort: folder.state.ports.http, identifier, sandbox })
  writeFileSync(path, text, { mode: 0o600 })
  return loadConfig({ path, env: {} })
}

function introduce(folder: DemoFolder, sandbox: DemoSandbox, url: string): string[] {
  return [
    `what Slack, the mailbox and the webhook get, live: ${sandbox.receivedUrl}`,
    `pretend service and sinks at ${sandbox.url}, metrics at ${url}/metrics`,
    `configuration in ${folder.at('tocsin.yaml')}, log in ${folder.at('tocsin.log')}`,
    'Ctrl-C ends it in order, a second one at once',
  ]
}

function rejectWhenRedisEnds(gone: AbortSignal, folder: DemoFolder): Promise<never> {
  const broken = new Promise<never>((_resolve, reject) => {
    const problem = `the private Redis ended by itself; see ${folder.at('redis/redis.log')}`
    gone.addEventListener('abort', () => reject(new CommandError('refused', problem)))
  })
  broken.catch(() => {}) // also when it is ended in order
  return broken
}

interface Closers {
  add(close: () => Promise<void>): void
  /** Closes in reverse order; logs a failure and continues. */
  closeAll(): Promise<void>
}

function createClosers(logger: Logger): Closers {
  const closers: (() => Promise<void>)[] = []
  return {
    add: (close) => void closers.push(close),
    async closeAll() {
      for (const close of closers.splice(0).toReversed()) {
        await close().catch((error: unknown) => logger.error({ err: error }, 'demo: not closed'))
      }
    },
  }
}

function onlyOnce(close: () => Promise<void>): () => Promise<void> {
  let done: Promise<void> | undefined
  return () => (done ??= close())
}

/** As `tocsin digests send <sink>`: ends the window now, and the daemon sends its digest. */
function sendDigestNow(config: Config, sink: string): Promise<void> {
  return withEngine(config, async (engine) => {
    const digestSink = requireDigestSink(engine, config, sink)
    for (const { id } of digestSink.destinations) await endDigest(engine, digestSink, id)
  })
}

/**
 * The scripted extras besides the random events: leaked credentials, and one event that arrives
 * behind every cursor.
 */

interface DemoScript {
  /**
   * Called a few times a second. `isCaughtUp`: every feed was read to its end since the run began.
   */
  step(elapsedMs: number, isCaughtUp: boolean): void
  readonly isLateShown: boolean
}

const credentialsEveryMs = 8_000
const credentialsAtOnce = 3

/**
 * Within `sweep.back` of the demo's feeds and behind every cursor: each poll reads the last page
 * again, and in a first run its ten events reach back half a day.
 */
const lateAgeMs = 20 * 3_600_000

export function createDemoScript(
  sandbox: Pick<DemoSandbox, 'showLate' | 'showCredentials'>,
): DemoScript {
  let nextCredentialsMs = 0
  let isLateShown = false
  return {
    get isLateShown() {
      return isLateShown
    },
    step(elapsedMs, isCaughtUp) {
      if (elapsedMs >= nextCredentialsMs) {
        sandbox.showCredentials(credentialsAtOnce)
        nextCredentialsMs = elapsedMs + credentialsEveryMs
      }
      if (isCaughtUp && !isLateShown) {
        sandbox.showLate(lateAgeMs)
        isLateShown = true
      }
    },
  }
}

/**
 * A private, persistent Redis: a child process that listens on loopback, requires a password, keeps
 * its data in one folder, and never outlives the process that started it, however that ends.
 */

interface PrivateRedis {
  /** Contains the password. */
  url: string
  /** A client connection for the starter. */
  client: Redis
  /** Aborts when the server has ended, whether asked to or not. */
  gone: AbortSignal
  stop(): Promise<void>
}

interface PrivateRedisOptions {
  /** Folder for the server's data, log and configuration; created when missing. */
  folder: string
  port: number
  /** Letters and digits. */
  password: string
  logger: Logger
}

const startPatienceMs = 15_000
const stopPatienceMs = 5_000
const leftoverPatienceMs = 1_000

/** Throws StoreError without a Redis program, CommandError when the server does not start. */
async function startPrivateRedis(options: PrivateRedisOptions): Promise<PrivateRedis> {
  const { folder, port, password } = options
  const listening = ['bind 127.0.0.1', `port ${port}`, `requirepass ${password}`]
  const server = startServerProcess(folder, listening)
  const client = connect(options)
  const stop = async (): Promise<void> => {
    client.disconnect()
    await server.stop()
  }
  if (!(await becomesReady(client, startPatienceMs, server.gone))) {
    await stop()
    const log = join(folder, logName)
    throw new CommandError('refused', `the private Redis did not start; see ${log}`)
  }
  return { url: privateRedisUrl(port, password), client, gone: server.gone, stop }
}

/**
 * Ends a server that an earlier run left on the port and waits until it has ended; does nothing
 * without one. Only a server that accepts this demo's password is the demo's.
 */
async function endLeftoverRedis(options: PrivateRedisOptions): Promise<void> {
  const client = connect(options)
  const refused = new AbortController()
  client.once('error', () => refused.abort())
  try {
    if (!(await becomesReady(client, leftoverPatienceMs, refused.signal))) return
    const closed = withTimeout(stopPatienceMs, [], (signal) => once(client, 'close', { signal }))
    client.call('SHUTDOWN').catch(() => {})
    await closed
    options.logger.warn('ended a redis-server that an earlier run had left')
  } finally {
    client.disconnect()
  }
}

function connect({ port, password }: PrivateRedisOptions): Redis {
  const config = {
    url: secretFromText(privateRedisUrl(port, password)),
    prefix: '',
    allowUnsafe: false,
  }
  return connectRedis(config, silentLogger)
}

/**
 * Whether the client connects within `ms` and before `gone` aborts; refused attempts before that do
 * not matter.
 */
async function becomesReady(client: Redis, ms: number, gone: AbortSignal): Promise<boolean> {
  const ready = new AbortController()
  client.once('ready', () => ready.abort())
  await withTimeout(ms, [ready.signal, gone], (signal) => systemClock.sleep(Infinity, signal))
  return client.status === 'ready'
}

function privateRedisUrl(port: number, password: string): string {
  return `redis://:${password}@127.0.0.1:${port}`
}
