/** Everything that a demo runs: a Redis of its own, the sandbox, and the daemon itself in this process. */
import { writeFileSync } from 'node:fs'
import { createApp } from '../../app.ts'
import { loadConfig, type LoadedConfig } from '../../config/load.ts'
import { pendingOf, readAccounting } from '../../ledger/accounting.ts'
import { openBook, type Book } from '../../ledger/book.ts'
import { peekFeed } from '../../ledger/feed-state.ts'
import { createKeys } from '../../redis/keys.ts'
import { systemClock } from '../../runtime/clock.ts'
import type { Logger } from '../../runtime/logger.ts'
import { CommandError } from '../command-error.ts'
import { drawAccount, type DemoFigures } from './demo-account.ts'
import { arrivalOf, type Arrival } from './demo-arrival.ts'
import { demoConfig } from './demo-config.ts'
import {
  demoSinks,
  readBaseline,
  readEvidence,
  type Baseline,
  type DemoSink,
} from './demo-evidence.ts'
import type { DemoFolder } from './demo-folder.ts'
import { startDemoSandbox, type DemoSandbox } from './demo-sandbox.ts'
import type { DemoReading } from './demo-view.ts'
import { endLeftoverRedis, startPrivateRedis } from './private-redis.ts'
import { readVersion } from '../version.ts'

export interface DemoStage {
  introduction: string[]
  /** From now on events arrive at the sandbox; the returned function ends that. */
  startArrivals(): () => Promise<void>
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
  const received: Parts['received'] = { slack: new Set(), email: new Set(), webhook: new Set() }
  sandbox.onReceived((message) => {
    const arrival = arrivalOf(message)
    for (const id of arrival.items) received[arrival.sink].add(id)
    onArrival(arrival)
  })
  const app = createApp({ ...loaded, version: readVersion(), logger })
  const stopApp = once(() => app.stop())
  closers.add(stopApp)
  const { url } = await app.start()
  const parts: Parts = { loaded, book, baseline, sandbox, received }
  return {
    introduction: introduce(folder, sandbox, url),
    startArrivals: () => sandbox.startArrivals(),
    read: () => read(parts),
    async account() {
      await stopApp()
      return drawAccount(
        await readEvidence(book, { baseline, received, shown: await shown(parts) }),
      )
    },
    broken: rejectWhenGone(redis.gone, folder),
    close: () => closers.closeAll(),
  }
}

interface Parts {
  loaded: LoadedConfig
  book: Book
  baseline: Baseline
  sandbox: DemoSandbox
  received: Record<DemoSink, Set<string>>
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
  const text = demoConfig({ redisUrl, httpPort: folder.state.ports.http, sandbox })
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

async function read({
  loaded,
  book,
  baseline,
  received,
}: Parts): Promise<Omit<DemoReading, 'stage'>> {
  const nowMs = systemClock.now()
  const now = await readAccounting(book)
  const before = baseline.accounting
  const feeds = loaded.config.feeds.map(async ({ name, labels, lagObjectiveMs }) => {
    const caughtUpMs = (await peekFeed(book, name, nowMs))?.lastCaughtUpMs
    const since = (word: 'fetched' | 'new' | 'duplicate'): number =>
      (now.feeds[name]?.[word] ?? 0) - (before.feeds[name]?.[word] ?? 0)
    return {
      name,
      labels: Object.entries(labels)
        .map(([label, value]) => `${label}=${value}`)
        .join(' '),
      fetched: since('fetched'),
      new: since('new'),
      duplicate: since('duplicate'),
      lagMs: caughtUpMs === undefined ? undefined : Math.max(0, nowMs - caughtUpMs),
      lagObjectiveMs,
    }
  })
  const sinks = demoSinks.map((name) => {
    const account = now.sinks[name]
    return { name, arrived: received[name].size, pending: account ? pendingOf(account) : 0 }
  })
  return { feeds: await Promise.all(feeds), sinks }
}

/** What every feed has been shown by the time it last caught up. */
async function shown({ loaded, book, sandbox }: Parts): Promise<string[]> {
  const uids = loaded.config.feeds.map(async ({ name, identifierGroup }) => {
    const state = await peekFeed(book, name, systemClock.now())
    return sandbox.shownAt(identifierGroup, state?.lastCaughtUpMs ?? 0)
  })
  return (await Promise.all(uids)).flat()
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
