/** What `init` tries before it writes, by the probes of `doctor`: Redis, the key, and each sink. */
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import type { Config } from '../../config/config.ts'
import { systemClock } from '../../lib/clock.ts'
import { checkPrivateFolder } from '../../lib/private-files.ts'
import { StoreError } from '../../redis/health.ts'
import { createKeys } from '../../redis/keys.ts'
import type { UpstreamClient } from '../../upstream/client.ts'
import { UpstreamError } from '../../upstream/error.ts'
import { wireGroupEntry } from '../../upstream/resources/identifiers.ts'
import type { Context } from '../context.ts'
import { withRedis } from '../open/open-store.ts'
import { withUpstream } from '../open/open-upstream.ts'
import { CommandError } from '../terminal.ts'
import { type Draft, draftConfig, type DraftSink } from './init-draft.ts'
import { type Finding, formatFinding, isProblem, runProbes } from './probe.ts'
import { probes } from './probes.ts'

/** An answer that does not work; the message says why, and what to answer instead. */
export class WrongAnswer extends CommandError {
  constructor(message: string) {
    super('refused', message)
  }
}

/** `groups`: why they cannot be listed, or those that there are. */
export interface FoundGroups {
  groups: readonly { id: number; name: string }[] | string
  /** There are more groups than those. */
  hasMore: boolean
}

/** Each resolves with what was found, and throws WrongAnswer. */
export interface Trial {
  redis(answer: Pick<Draft, 'redis'>): Promise<string[]>
  reach(answer: Pick<Draft, 'account'>): Promise<string[]>
  account(answers: Pick<Draft, 'redis' | 'account'>): Promise<FoundGroups & { found: string[] }>
  /** `sends`: one message marked TEST to each destination. */
  sink(answers: Pick<Draft, 'account'> & { sink: DraftSink }, sends: boolean): Promise<string[]>
  close(): void
}

/**
 * A private Redis is tried in a folder that is gone afterwards: nothing is left where `init` is
 * broken off.
 */
export function openTrial({ env, stop }: Context, file: string): Trial {
  let temporaryFolder: string | undefined
  const close = (): void => {
    if (temporaryFolder !== undefined) {
      rmSync(temporaryFolder, { recursive: true, force: true, maxRetries: 3 })
    }
  }
  stop.addEventListener('abort', close, { once: true })

  function configFor(answered: Pick<Draft, 'redis'> & Partial<Draft>): Config {
    if ('url' in answered.redis) return draftConfig(answered, file)
    refuseExposed(resolve(dirname(file), answered.redis.folder))
    temporaryFolder ??= mkdtempSync(join(tmpdir(), 'tocsin-init-'))
    return draftConfig({ ...answered, redis: { folder: temporaryFolder } }, file)
  }

  return {
    async redis(answer) {
      const config = configFor(answer)
      const ask = withRedis(config.redis, (redis) =>
        runProbes(probes.redisServer, { redis, config }, stop),
      )
      return requireWell(await ask.catch(wrongRedis))
    },
    async reach(answer) {
      const [account] = draftConfig(answer, file).accounts
      return account ? requireWell(await runProbes(probes.reach, { account, env }, stop)) : []
    },
    account: (answers) => tryAccount(configFor(answers), stop),
    async sink({ account, sink: answer }, sends) {
      const config = draftConfig({ account, sinks: [answer] }, file)
      const [sink] = config.sinks
      const asked = sends ? probes.sinkSend : probes.sinkReach
      return sink ? requireWell(await runProbes(asked, { sink, config, env }, stop)) : []
    },
    close,
  }
}

/** The folder itself is made when Tocsin starts. */
function refuseExposed(folder: string): void {
  const exposure = existsSync(folder) ? checkPrivateFolder(folder) : undefined
  if (exposure !== undefined) throw new WrongAnswer(`${folder}: ${exposure}`)
}

function wrongRedis(error: unknown): never {
  throw error instanceof StoreError ? new WrongAnswer(error.message) : error
}

function requireWell(findings: readonly Finding[]): string[] {
  const wrong = findings.filter(isProblem)
  if (wrong.length === 0) return findings.map(formatFinding)
  throw new WrongAnswer(wrong.map(formatFinding).join('. '))
}

async function tryAccount(
  config: Config,
  stop: AbortSignal,
): Promise<FoundGroups & { found: string[] }> {
  return withRedis(config.redis, (redis) => {
    const store = { redis, keys: createKeys(config.redis.prefix), ledgers: [] }
    return withUpstream(config, store, async (upstream) => {
      const client = upstream.client('main')
      const found = requireWell(await runProbes(probes.key, { config, store, client }, stop))
      return { found, ...(await findGroups(client, stop)) }
    })
  })
}

const mostGroups = 100

async function findGroups(client: UpstreamClient, signal: AbortSignal): Promise<FoundGroups> {
  const slot = { kind: 'command', name: 'init', dueSinceMs: systemClock.now() } as const
  try {
    const page = { from: null, size: mostGroups }
    const { result } = await client.listGroups(page, { slot, signal })
    const entries = result.items.flatMap((item) => wireGroupEntry.safeParse(item).data ?? [])
    const groups = entries.map(({ group: { id, name } }) => ({ id, name: name ?? '' }))
    return { groups, hasMore: typeof result.next === 'string' }
  } catch (error) {
    if (!(error instanceof UpstreamError)) throw error
    return { groups: error.message, hasMore: true }
  }
}
