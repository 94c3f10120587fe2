/** What every measurement needs: a Redis and a sandbox of its own, and how to begin anew on them. */
import type { LoadedConfig } from '../../src/config/load.ts'
import { openBook, type Book } from '../../src/ledger/book.ts'
import { connectRedis, type Redis } from '../../src/redis/connection.ts'
import { createKeys, type Keys } from '../../src/redis/keys.ts'
import { createLogger } from '../../src/runtime/logger.ts'
import { secretFromText } from '../../src/runtime/secret.ts'
import { startRedis } from '../support/redis.ts'
import { accountName, configOf, prefix, type Wishes } from './daemons.ts'
import { createFetchLoop, type FetchLoop } from './fetch-loop.ts'
import { startSandboxChild, type SandboxChild } from './sandbox-child.ts'
import { createStopwatch, type Stopwatch } from './stopwatch.ts'

export interface Rig {
  readonly redis: Redis
  readonly keys: Keys
  readonly sandbox: SandboxChild
  readonly fetchLoop: FetchLoop
  readonly stopwatch: Stopwatch
  config(wishes?: Wishes): LoadedConfig
  /** The daemon's book, after everything in Redis was deleted. */
  freshBook(): Promise<Book>
}

/** Runs `work` on a rig; whatever becomes of it, or once `stop` aborts, nothing of the rig is left. */
export async function withRig<T>(
  stop: AbortSignal,
  work: (rig: Rig) => Promise<T>,
): Promise<T | 'stopped'> {
  const parts = new AsyncDisposableStack()
  const stopped = new Promise<'stopped'>((resolve) => {
    stop.addEventListener('abort', () => resolve('stopped'), { once: true })
  })
  try {
    const rig = await startRig(parts)
    return stop.aborted ? 'stopped' : await Promise.race([work(rig), stopped])
  } finally {
    await parts.disposeAsync()
  }
}

async function startRig(parts: AsyncDisposableStack): Promise<Rig> {
  const server = parts.adopt(await startRedis(), (one) => one.stop())
  const sandbox = parts.adopt(await startSandboxChild(), (one) => one.close())
  const fetchLoop = parts.adopt(await createFetchLoop(sandbox), (one) => one.close())
  const address = { url: secretFromText(server.url), prefix, allowUnsafe: false }
  const connected = connectRedis(address, createLogger({ level: 'silent' }))
  const redis = parts.adopt(connected, (one) => one.disconnect())
  const keys = createKeys(prefix)
  const config = (wishes: Wishes = {}): LoadedConfig =>
    configOf({ redisUrl: server.url, sandbox, ...wishes })
  // a rewrite of the file in the middle of one measurement would be in none of the others
  await redis.config('SET', 'auto-aof-rewrite-percentage', '0')
  return {
    redis,
    keys,
    sandbox,
    fetchLoop,
    stopwatch: createStopwatch(redis, sandbox),
    config,
    async freshBook() {
      await redis.flushall()
      return openBook({ redis, keys, account: accountName, config: config().config.ledger })
    },
  }
}
