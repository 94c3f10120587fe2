/** Everything that a demo runs: a Redis of its own, the sandbox, and the daemon itself in this process. */
import { writeFileSync } from 'node:fs'
import { createApp } from '../../app.ts'
import type { Config } from '../../config/config.ts'
import { loadConfig, type LoadedConfig } from '../../config/load.ts'
import { openBook, type Book } from '../../ledger/book.ts'
import { pauseFeed, peekFeed } from '../../ledger/feed-state.ts'
import { createKeys } from '../../redis/keys.ts'
import { systemClock } from '../../runtime/clock.ts'
import type { Logger } from '../../runtime/logger.ts'
import { CommandError } from '../command-error.ts'
import { drawAccount, type DemoFigures } from './demo-account.ts'
import { arrivalOf, type Arrival } from './demo-arrival.ts'
import { demoConfig, digestSink } from './demo-config.ts'
import { readBaseline, readEvidence, type Receipt } from './demo-evidence.ts'
import { endDigestNow } from './demo-digest.ts'
import type { DemoFolder } from './demo-folder.ts'
import { demoIdentifier, startDemoSandbox, type DemoSandbox } from './demo-sandbox.ts'
import { readRun, shownTo, type Run } from './demo-reading.ts'
import { createDemoScript } from './demo-script.ts'
import type { DemoReading } from './demo-view.ts'
import { endLeftoverRedis, startPrivateRedis } from './private-redis.ts'
import { readVersion } from '../version.ts'

export interface DemoStage {
  introduction: string[]
  /** From now on events arrive at the sandbox; the returned function ends that. */
  startArrivals(): () => Promise<void>
  /** Between the two, a few times a second: has happen what does not arrive by itself. */
  step(reading: Pick<DemoReading, 'caughtUpMs'>): void
  /** Whether the feeds have read all that arrived before `untilMs`, the late event too. */
  hasRead(reading: Pick<DemoReading, 'caughtUpMs' | 'feeds'>, untilMs: number): boolean
  /** From now on nothing more is polled. */
  pausePolling(): Promise<void>
  /** Lets the daemon send its digest now. */
  endDigest(): Promise<void>
  read(): Promise<Omit<DemoReading, 'stage'>>
  /** Ends the daemon, then reads the ledger whole. */
  account(): Promise<DemoFigures>
  /** Rejects when something that the demo stands on breaks. */
  broken: Promise<never>
  close(): Promise<void>
}

export interface DemoStageOptions {
  folder: DemoFolder
  rate: number
  onArrival: (arrival: Arrival) => void
  logger: Logger
}

export async function raiseStage(options: DemoStageOptions): Promise<DemoStage> {
  const closers = createClosers(options.logger)
  try {
    return await raise(options, closers)
  } catch (error) {
    await closers.closeAll()
    throw error
  }
}

async function raise(options: DemoStageOptions, closers: Closers): Promise<DemoStage> {
  const { folder, logger, onArrival } = options
  const redis = await startRedis(folder, logger)
  closers.add(() => redis.stop())
  const sandbox = await startDemoSandbox(options)
  closers.add(() => sandbox.close())
  const loaded = writeConfig(folder, redis.url, sandbox)
  const { config } = loaded
  const [account = ''] = config.accounts.map(({ name }) => name)
  const keys = createKeys(config.redis.prefix)
  const book = await openBook({ redis: redis.client, keys, account, config: config.ledger })
  const baseline = await readBaseline(book)
  await resumePolling(book, config)
  const received: Receipt[] = []
  sandbox.onReceived((message) => {
    const arrival = arrivalOf(message)
    received.push(arrival)
    onArrival(arrival)
  })
  const app = createApp({ ...loaded, version: readVersion(), logger })
  const stopApp = once(() => app.stop())
  closers.add(stopApp)
  const { url } = await app.start()
  const run: Run = { config, book, baseline, sandbox, received, sweptAtMs: new Map() }
  const script = createDemoScript(sandbox)
  return {
    introduction: introduce(folder, sandbox, url),
    startArrivals: () => sandbox.startArrivals(),
    step: ({ caughtUpMs }) =>
      script.step(systemClock.now() - baseline.atMs, caughtUpMs > baseline.atMs),
    hasRead: ({ caughtUpMs, feeds }, untilMs) =>
      caughtUpMs > untilMs && (!script.isLateShown || feeds.some(({ late }) => late > 0)),
    pausePolling: () => pausePolling(book, config),
    endDigest: () => endDigestNow(config, digestSink),
    read: () => readRun(run),
    async account() {
      await stopApp()
      const evidence = await readEvidence(book, { baseline, received, shown: await shownTo(run) })
      return drawAccount(evidence)
    },
    broken: rejectWhenGone(redis.gone, folder),
    close: () => closers.closeAll(),
  }
}

/** Tells the demo's pause from one of an operator. */
const pauseReason = 'the demo ends'

async function pausePolling(book: Book, { feeds }: Config): Promise<void> {
  const pause = { reason: pauseReason, sinceMs: systemClock.now() }
  for (const { name } of feeds) await pauseFeed(book, name, pause)
}

/** Takes back what the end of an earlier run left. */
async function resumePolling(book: Book, { feeds }: Config): Promise<void> {
  for (const { name } of feeds) {
    const state = await peekFeed(book, name, systemClock.now())
    if (state?.paused?.reason === pauseReason) await pauseFeed(book, name, undefined)
  }
}

async function startRedis(
  folder: DemoFolder,
  logger: Logger,
): ReturnType<typeof startPrivateRedis> {
  const password = folder.state.redisPassword
  const home = { folder: folder.at('redis'), password, logger }
  if (folder.state.ports.redis > 0) {
    await endLeftoverRedis({ ...home, port: folder.state.ports.redis })
  }
  await folder.settlePorts()
  return startPrivateRedis({ ...home, port: folder.state.ports.redis })
}

/** What is written is what runs. */
function writeConfig(folder: DemoFolder, redisUrl: string, sandbox: DemoSandbox): LoadedConfig {
  const path = folder.at('tocsin.yaml')
  const { id: identifier } = demoIdentifier
  const text = demoConfig({ redisUrl, httpPort: folder.state.ports.http, identifier, sandbox })
  writeFileSync(path, text, { mode: 0o600 })
  return loadConfig({ path, env: {} })
}

function introduce(folder: DemoFolder, sandbox: DemoSandbox, url: string): string[] {
  return [
    `pretend service and sinks at ${sandbox.url}, metrics at ${url}/metrics`,
    `configuration in ${folder.at('tocsin.yaml')}, log in ${folder.at('tocsin.log')}`,
    'Ctrl-C ends it in order, a second one at once',
  ]
}

function rejectWhenGone(gone: AbortSignal, folder: DemoFolder): Promise<never> {
  const broken = new Promise<never>((_resolve, reject) => {
    const problem = `the private Redis ended by itself; see ${folder.at('redis/redis.log')}`
    gone.addEventListener('abort', () => reject(new CommandError('refused', problem)))
  })
  broken.catch(() => {}) // also when it is ended in order
  return broken
}

interface Closers {
  add(close: () => Promise<void>): void
  /** Last in, first out; one that fails is logged and keeps none of the others open. */
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

function once(act: () => Promise<void>): () => Promise<void> {
  let done: Promise<void> | undefined
  return () => (done ??= act())
}
