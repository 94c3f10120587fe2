/** The page as the daemon serves it, over ledgers that nobody works on; and what each of its answers takes. */
import type { FastifyPluginAsync } from 'fastify'
import { parseConfig } from '../../src/config/load.ts'
import type { Config } from '../../src/config/config.ts'
import { type Clock, systemClock } from '../../src/lib/clock.ts'
import { createLogger } from '../../src/lib/logger.ts'
import { createMetrics } from '../../src/lib/metrics.ts'
import { createHttpServer } from '../../src/ops/server.ts'
import type { PageEngine } from '../../src/page/asker.ts'
import { createPage } from '../../src/page/page.ts'
import { connectRedis, type Redis } from '../../src/redis/connection.ts'
import { createKeys } from '../../src/redis/keys.ts'
import { openLeftLedgers } from '../../src/store/accounts.ts'

/** The user whom the proxy names; may act, so that every form is drawn. */
export const visitor = { 'x-forwarded-user': 'mira' }

export interface PageSettings {
  accounts: number
  /** Of the service, and what its sinks need. */
  upstream: { url: string; smtpUrl: string; webhookSecret: string }
  redis: { url: string; prefix: string }
}

/** Accounts of two feeds; sinks for machines and people; silences, mutes and a tree of routes. */
export function pageConfig({ accounts, upstream, redis }: PageSettings): object {
  const names = Array.from({ length: accounts }, (_none, i) =>
    accounts === 1 ? 'main' : `tenant-${i}`,
  )
  const feed = { type: 'events', detail: [], every: '5s', start: '1h', rescan: false }
  const hook = (name: string): object => ({
    type: 'webhook',
    url: `${upstream.url}/hooks/${name}`,
    secret: upstream.webhookSecret,
    allow_private: true,
  })
  const untilMs = Date.now() + 10 * 86_400_000
  return {
    redis,
    http: {
      port: 0,
      users: [{ name: 'mira', role: 'act' }],
      proxy: { header: 'X-Forwarded-User', from: ['127.0.0.1'] },
    },
    retention: { max_bytes: '16GiB' },
    accounts: Object.fromEntries(
      names.map((name) => [
        name,
        {
          base_url: upstream.url,
          link_hosts: ['app.example.com'],
          api_key: 'fw_bench',
          organization_id: 7,
          limits: { search: 10_000, basic: 10_000 },
        },
      ]),
    ),
    feeds: Object.fromEntries(
      names.flatMap((account, i) => [
        [`${account}-brand`, { ...feed, account, identifier_group: 2_000 + 2 * i }],
        [`${account}-staff`, { ...feed, account, identifier_group: 2_001 + 2 * i }],
      ]),
    ),
    sinks: {
      siem: { ...hook('siem'), batch: { max: 50, wait: '250ms' } },
      tickets: hook('tickets'),
      soc: { type: 'slack', url: `${upstream.url}/slack/soc`, allow_private: true },
      leads: {
        type: 'email',
        smtp: upstream.smtpUrl,
        from: 'tocsin@example.com',
        to: ['ana@example.com', 'ben@example.com'],
        tls: 'off',
      },
    },
    time_intervals: {
      night: [{ times: [{ start_time: '19:00', end_time: '24:00' }], location: 'UTC' }],
    },
    silences: Array.from({ length: 5 }, (_none, i) => ({
      matchers: [`identifier="brand-${i}.main.example"`],
      until: new Date(untilMs).toISOString(),
      owner: 'mira',
      reason: `penetration test ${i}`,
      max_severity: 'critical',
    })),
    route: {
      sinks: ['siem'],
      routes: [
        { name: 'urgent', matchers: ['severity>=high'], sinks: ['siem', 'soc', 'tickets'] },
        {
          name: 'watch',
          matchers: ['severity>=medium'],
          sinks: ['siem', 'soc'],
          mute_time_intervals: ['night'],
          on_mute: 'hold',
        },
        { name: 'credentials', matchers: ['type="leaked_credential"'], sinks: ['siem', 'leads'] },
      ],
    },
  }
}

export function readPageConfig(written: object): Config {
  return parseConfig(JSON.stringify(written), { file: 'bench.yaml', env: {} }).config
}

/** What the server took for one answer, from its request to its end. */
export interface Taken {
  wallMs: number
  cpuMs: number
}

export interface PageServer {
  url: string
  redis: Redis
  /** What was taken since the last call, in order. */
  take(): Taken[]
  /** Whether each answer is made anew, although others asked for it a moment ago. */
  setShared(isShared: boolean): void
  stop(): Promise<void>
}

export async function startPageServer(written: object): Promise<PageServer> {
  const config = readPageConfig(written)
  const logger = createLogger({ level: 'silent' })
  const redis = connectRedis(config.redis, logger)
  const keys = createKeys(config.redis.prefix)
  const ledgers = await openLeftLedgers({ redis, keys, config: config.ledger }, [])
  const unasked = (): Promise<never> => Promise.reject(new Error('the bench asks no service'))
  const engine: PageEngine = {
    config,
    store: { redis, keys, ledgers },
    generation: { number: 1, sinceMs: systemClock.now(), by: undefined },
    endDigests: unasked,
    triageEvent: unasked,
    noteEvent: unasked,
  }
  const moment = createMoment()
  const { clock } = moment
  const metrics = createMetrics({ clock })
  const options = { version: 'bench', redis, keys, clock, logger, metrics }
  const page = createPage({ ...options, http: () => config.http, engine: () => engine })
  const meter = createMeter(page.routes)
  const server = createHttpServer({
    ...config.http,
    metrics,
    logger,
    health: () => ({ ok: true, loops: [] }),
    ready: () => Promise.resolve({ ok: true, reasons: [] }),
    page: { ...page, routes: meter.routes, publicUrl: () => undefined },
  })
  const { url } = await server.start()
  return {
    url,
    redis,
    take: meter.take,
    setShared: moment.setShared,
    async stop() {
      await server.stop()
      redis.disconnect()
    },
  }
}

/** A clock on which a moment passes between two requests, so that no answer is shared. */
function createMoment(): { clock: Clock; setShared: (isShared: boolean) => void } {
  let step = 2_000
  let passedMs = 0
  const monotonic = (): number => systemClock.monotonic() + (passedMs += step)
  return {
    clock: { ...systemClock, monotonic },
    setShared(isShared) {
      step = isShared ? 0 : 2_000
    },
  }
}

/** Answers come one after the other: what the process takes meanwhile is theirs. */
function createMeter(page: FastifyPluginAsync): {
  routes: FastifyPluginAsync
  take: () => Taken[]
} {
  const taken: Taken[] = []
  const begun = new WeakMap<object, { atMs: number; cpu: NodeJS.CpuUsage }>()
  return {
    routes: async (server) => {
      server.addHook('onRequest', async (request) => {
        begun.set(request, { atMs: performance.now(), cpu: process.cpuUsage() })
      })
      server.addHook('onResponse', async (request) => {
        const { atMs, cpu } = begun.get(request)!
        const { user, system } = process.cpuUsage(cpu)
        taken.push({ wallMs: performance.now() - atMs, cpuMs: (user + system) / 1000 })
      })
      await server.register(page)
    },
    take: () => taken.splice(0),
  }
}
