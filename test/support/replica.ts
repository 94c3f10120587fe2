/** A service scripted over real HTTP, and replicas of the client: each with its own Redis connection. */
import { type Clock, systemClock } from '../../src/lib/clock.ts'
import { createLogger } from '../../src/lib/logger.ts'
import { secretFromText } from '../../src/lib/config/secret.ts'
import type { Redis } from '../../src/redis/client.ts'
import { connectRedis } from '../../src/redis/connection.ts'
import { createKeys, type Keys } from '../../src/redis/keys.ts'
import type { UpstreamClient } from '../../src/upstream/client.ts'
import {
  createUpstreamClient,
  type UpstreamClientOptions,
} from '../../src/upstream/create-client.ts'
import type { AccountConfig } from '../../src/upstream/config.ts'
import {
  createOrganizations,
  type Lane,
  type Organizations,
} from '../../src/upstream/access/organizations.ts'
import { createTierLimiter, createApiSlots, type ApiSlots } from '../../src/upstream/rate-limits.ts'
import {
  createConnections,
  createTransport,
  type TransportLimits,
} from '../../src/upstream/transport.ts'
import type { HttpServer, ReceivedRequest, ScriptedAnswer } from './http-server.ts'

export const testKey = 'fw_k3y-of-the-test'

export function anAccount(given: Partial<AccountConfig> = {}): AccountConfig {
  return {
    name: 'main',
    baseUrl: 'http://127.0.0.1:9',
    apiKey: secretFromText(testKey),
    tenantId: undefined,
    organizationId: undefined,
    feedShare: 0.7,
    limits: { search: 50, basic: 50 },
    proxy: undefined,
    caFile: undefined,
    linkHosts: [],
    ...given,
  }
}

export interface Replica {
  client: UpstreamClient
  redis: Redis
  keys: Keys
  slots: ApiSlots
  organizations: Organizations
  /** All that was logged, as one text. */
  logged: () => string
  stop(): Promise<void>
}

export interface ReplicaOptions extends Partial<
  Pick<UpstreamClientOptions, 'onRequest' | 'onQuota' | 'random'>
> {
  redisUrl: string
  /** One for each test, so that tests share nothing. */
  prefix: string
  account: AccountConfig
  clock?: Clock
  transportLimits?: Partial<TransportLimits>
}

export function startReplica({ redisUrl, prefix, account, ...options }: ReplicaOptions): Replica {
  const { clock = systemClock, transportLimits } = options
  const lines: string[] = []
  const destination = { write: (line: string) => void lines.push(line) }
  const logger = createLogger({ level: 'trace', destination })
  const config = { url: secretFromText(redisUrl), prefix, allowUnsafe: false }
  const redis = connectRedis(config, logger)
  const keys = createKeys(prefix)
  const organizations = createOrganizations([account])
  const limitOf = (lane: Lane): number => organizations.limitFor(lane)
  const turns = createApiSlots({
    limiter: createTierLimiter({ redis, keys, clock, limitFor: limitOf }),
    clock,
  })
  const connections = createConnections(transportLimits)
  const transport = createTransport({ account, clock, connections })
  const parts = { account, redis, keys, logger, slots: turns, organizations, clock, transport }
  const client = createUpstreamClient({ ...options, ...parts })
  return {
    client,
    redis,
    keys,
    slots: turns,
    organizations,
    logged: () => lines.join(''),
    async stop() {
      turns.close()
      client.close()
      await connections.close()
      redis.disconnect()
    },
  }
}

type TokenScript = (grant: () => ScriptedAnswer) => ScriptedAnswer | Promise<ScriptedAnswer>

export interface PretendService {
  /** Tokens given out, oldest first; `revoke` makes the service forget them. */
  tokens: string[]
  revoke(): void
  /** Monotonic ms and path of every request. */
  arrivals: { atMs: number; path: string }[]
  /** How a request with a valid token is answered; a page without items unless said otherwise. */
  answer(script: (request: ReceivedRequest) => ScriptedAnswer): void
  /** How `/tokens/generate` is answered, perhaps by the token that `grant` makes. */
  generate(script: TokenScript | undefined): void
  count(path: string): number
}

export function json(status: number, body: unknown, headers = {}): ScriptedAnswer {
  const type = { 'content-type': 'application/json' }
  return { status, headers: { ...type, ...headers }, body: JSON.stringify(body) }
}

/** Makes the server behave as the service does: tokens, their test, and whatever `answer` says. */
export function pretendService(
  server: HttpServer,
  organizationId: number | null = 7,
): PretendService {
  const tokens: string[] = []
  const valid = new Set<string>()
  const arrivals: PretendService['arrivals'] = []
  let answer = (_request: ReceivedRequest): ScriptedAnswer => json(200, { items: [], next: null })
  let generate: TokenScript | undefined

  function grant(): ScriptedAnswer {
    const token = `t0ken-${tokens.length}-opaque`
    tokens.push(token)
    valid.add(token)
    return json(200, { token, refresh_token_exp: 1 })
  }

  server.script((request) => {
    arrivals.push({ atMs: performance.now(), path: request.path })
    if (request.path === '/tokens/generate') return generate ? generate(grant) : grant()
    if (request.path === '/firework/v4/healthz/') return answer(request)
    const token = request.headers.authorization?.replace('Bearer ', '') ?? ''
    if (!valid.has(token)) return json(401, { message: `bad token ${token}`, code: 'UNAUTHORIZED' })
    if (request.path !== '/tokens/test') return answer(request)
    const told = { tenant_id: 42, organization_id: organizationId, user_email: 'ann@example.com' }
    return json(200, { ...told, scopes: ['authenticated', 'apikey'] })
  })
  return {
    tokens,
    revoke: () => valid.clear(),
    arrivals,
    answer: (script) => (answer = script),
    generate: (script) => (generate = script),
    count: (path) => arrivals.filter((arrival) => arrival.path === path).length,
  }
}
