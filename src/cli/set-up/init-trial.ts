/** What `init` tries before it writes: Redis, the key with its groups, and each sink. */
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import type { Config } from '../../config/config.ts'
import { systemClock, withTimeout } from '../../lib/clock.ts'
import { checkPrivateFolder } from '../../lib/private-files.ts'
import { findRisks, readServers, StoreError } from '../../redis/health.ts'
import { createKeys } from '../../redis/keys.ts'
import { createHttpTransport } from '../../sinks/http.ts'
import { SinkError } from '../../sinks/sink.ts'
import { diagnoseKey } from '../../upstream/diagnose-key.ts'
import { UpstreamError } from '../../upstream/error.ts'
import { fetchGroups } from '../api/lists.ts'
import type { Context } from '../context.ts'
import { withRedis } from '../open/open-store.ts'
import { withUpstream } from '../open/open-upstream.ts'
import { CommandError } from '../terminal.ts'
import { checkSink, type SinkChecks } from './doctor-sinks.ts'
import { type Draft, draftConfig, type DraftRedis, type DraftSink } from './init-draft.ts'

/** An answer that does not work; the message says why, and what to answer instead. */
export class WrongAnswer extends CommandError {
  constructor(message: string) {
    super('refused', message)
  }
}

interface Group {
  id: number
  name: string
}

/** `groups`: why they cannot be listed, or those that there are. */
export interface AccountTrial {
  facts: string[]
  groups: readonly Group[] | string
  /** There are more groups than those. */
  hasMore: boolean
}

export interface Trial {
  /** Each throws WrongAnswer. */
  redis(redis: DraftRedis): Promise<string>
  reach(baseUrl: string): Promise<void>
  account(draft: Pick<Draft, 'redis' | 'account'>): Promise<AccountTrial>
  /** `sends`: one message marked TEST to each destination. Resolves with what was found. */
  sink(draft: Pick<Draft, 'account'> & { sink: DraftSink }, sends: boolean): Promise<string[]>
  close(): void
}

/**
 * A private Redis is tried in a folder that is gone afterwards: nothing is left where `init` is
 * broken off.
 */
export function openTrial(context: Context, file: string): Trial {
  let temporaryFolder: string | undefined
  const close = (): void => {
    if (temporaryFolder !== undefined) {
      rmSync(temporaryFolder, { recursive: true, force: true, maxRetries: 3 })
    }
  }
  context.stop.addEventListener('abort', close, { once: true })

  function configFor(answered: Partial<Draft>): Config {
    const { redis } = answered
    if (redis === undefined || 'url' in redis) return draftConfig(answered, file)
    temporaryFolder ??= mkdtempSync(join(tmpdir(), 'tocsin-init-'))
    return draftConfig({ ...answered, redis: { folder: temporaryFolder } }, file)
  }

  return {
    redis: (redis) => tryRedis(configFor({ redis }), redis, file),
    reach: (baseUrl) => tryReach(new URL(baseUrl), context.stop),
    account: (draft) => tryAccount(configFor(draft), context),
    sink: ({ account, sink }, sends) =>
      trySink(draftConfig({ account, sinks: [sink] }, file), { ...context, sends }),
    close,
  }
}

async function tryRedis(
  { redis: config }: Config,
  asked: DraftRedis,
  file: string,
): Promise<string> {
  if ('folder' in asked) {
    const folder = resolve(dirname(file), asked.folder)
    const exposure = existsSync(folder) ? checkPrivateFolder(folder) : undefined
    if (exposure !== undefined) throw new WrongAnswer(`${folder}: ${exposure}`)
  }
  try {
    return await withRedis(config, async (redis) => {
      const [servers, risks] = await Promise.all([readServers(redis), findRisks(redis)])
      const names = servers.map(({ name }) => name).join(', ')
      if (servers.some(({ isTooOld }) => isTooOld)) {
        throw new WrongAnswer(`it is ${names}; Tocsin needs Redis 7 or newer, or Valkey`)
      }
      if (risks.length > 0) throw new WrongAnswer(`it may lose events: ${risks.join('; ')}`)
      return names
    })
  } catch (error) {
    throw error instanceof StoreError ? new WrongAnswer(error.message) : error
  }
}

const reachTimeoutMs = 10_000

async function tryReach(url: URL, stop: AbortSignal): Promise<void> {
  const options = { allowPrivate: true, maxConnections: 1, receiver: 'the service' }
  const transport = createHttpTransport(options)
  try {
    await withTimeout(reachTimeoutMs, [stop], (signal) => transport.reach(url, signal))
  } catch (error) {
    if (!(error instanceof SinkError)) throw error
    throw new WrongAnswer(`${error.message}; check the address, and the network of this machine`)
  } finally {
    await transport.close()
  }
}

const mostGroups = 100

async function tryAccount(config: Config, context: Context): Promise<AccountTrial> {
  return withRedis(config.redis, (redis) => {
    const store = { redis, keys: createKeys(config.redis.prefix), ledgers: [] }
    return withUpstream(config, store, async (upstream) => {
      const client = upstream.client('main')
      const { ok, facts, lines } = await diagnoseKey(client, context.stop)
      if (!ok) throw new WrongAnswer(lines.join(' '))
      const slot = { kind: 'command', name: 'init', dueSinceMs: systemClock.now() } as const
      const callOptions = () => ({ slot, signal: context.stop })
      try {
        const page = { from: null, size: mostGroups }
        const { rows, next } = await fetchGroups({ context, client, callOptions }, page)
        const groups = rows.map(({ group: { id, name } }) => ({ id, name: name ?? '' }))
        return { facts, groups, hasMore: typeof next === 'string' }
      } catch (error) {
        if (!(error instanceof UpstreamError)) throw error
        return { facts, groups: error.message, hasMore: true }
      }
    })
  })
}

async function trySink(config: Config, checks: SinkChecks): Promise<string[]> {
  const [sink] = config.sinks
  if (sink === undefined) throw new Error('the draft has no sink')
  const findings = await checkSink(sink, config, checks)
  const wrong = findings.filter(({ status }) => status !== 'ok')
  if (wrong.length === 0) return findings.map(({ detail }) => detail)
  throw new WrongAnswer(wrong.map(({ detail, remedy }) => `${detail}; ${remedy}`).join('. '))
}
