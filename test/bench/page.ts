/** The page over a large ledger: what each view takes of the server and of Redis. */
import { Agent, request } from 'undici'
import type { Config } from '../../src/config/config.ts'
import { parseConfig } from '../../src/config/load.ts'
import { type Clock, systemClock } from '../../src/lib/clock.ts'
import { createKeys } from '../../src/redis/keys.ts'
import type { Redis } from '../../src/redis/client.ts'
import { createRandom } from '../../src/sandbox/options.ts'
import { servePage } from '../support/page-rig.ts'
import { type Known, seedLedger } from './page-ledger.ts'
import { type PageView, pageViews } from './page-views.ts'
import { aligned, type Figures } from './report.ts'
import { prefix, redisUse, type Rig } from './rig.ts'

export interface PagePlan {
  records: number
  /** Of each view. */
  requests: number
}

/** What a view took, in order. */
interface ViewCost {
  name: string
  isFile: boolean
  bytes: number[]
  ms: number[]
  /** Of one request. */
  redis: { cpuMs: number; commands: number; bytes: number }
}

/** `tell`: what each view took. */
export async function measurePage(
  { redis }: Rig,
  { records, requests }: PagePlan,
  tell: (table: string) => void,
): Promise<Figures> {
  await redis.flushall()
  await redis.config('SET', 'appendonly', 'no')
  const config = pageConfig(prefix)
  const { known } = await seedLedger(redis, config, records)
  const page = await openPage(redis, config)
  const costs: ViewCost[] = []
  for (const view of pageViews(await openVisit(page.url, config, known))) {
    costs.push(await measureView(redis, page.url, { view, requests }))
  }
  await page.stop()
  await redis.config('SET', 'appendonly', 'yes')
  tell(tableOf(costs))
  // a file is as large as what it holds
  const views = costs.filter(({ isFile }) => !isFile)
  return {
    'page-bytes': Math.max(...views.flatMap(({ bytes }) => bytes)) / 1000,
    'page-p95': Math.max(...views.map(({ ms }) => quantile(ms, 0.95))),
    'page-worst': Math.max(...views.flatMap(({ ms }) => ms)),
    'page-redis-cpu': Math.max(...views.map((view) => view.redis.cpuMs)),
  }
}

/** An account of one feed; sinks for machines and people; silences, mutes and a tree of routes. */
export function pageConfig(redisPrefix: string): Config {
  const hook = (name: string): object => ({
    type: 'webhook',
    url: `https://siem.example.com/${name}`,
  })
  const written = {
    redis: { url: 'redis://127.0.0.1', prefix: redisPrefix },
    http: {
      port: 0,
      users: [{ name: 'mira', role: 'act' }],
      proxy: { header: 'X-Forwarded-User', from: ['127.0.0.1'] },
    },
    retention: { max_bytes: '16GiB' },
    accounts: {
      main: {
        base_url: 'https://api.example.com',
        link_hosts: ['app.example.com'],
        api_key: 'fw_bench',
      },
    },
    feeds: { 'main-brand': { type: 'events', identifier_group: 2_000, detail: [] } },
    sinks: {
      siem: { ...hook('siem'), batch: { max: 50, wait: '1s' } },
      tickets: hook('tickets'),
      soc: { type: 'slack', url: 'https://slack.example.com/soc' },
      leads: {
        type: 'email',
        smtp: 'smtp://mail.example.com',
        from: 'tocsin@example.com',
        to: ['ana@example.com'],
      },
    },
    time_intervals: {
      night: [{ times: [{ start_time: '19:00', end_time: '24:00' }], location: 'UTC' }],
    },
    silences: Array.from({ length: 5 }, (_none, i) => ({
      matchers: [`identifier="brand-${i}.example"`],
      until: new Date(Date.now() + 10 * 86_400_000).toISOString(),
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
  return parseConfig(JSON.stringify(written), { file: 'bench.yaml', env: {} }).config
}

/** Serves the page over a ledger that nobody works on. */
export async function openPage(
  redis: Redis,
  config: Config,
): Promise<{ url: string; stop(): Promise<void> }> {
  const keys = createKeys(config.redis.prefix)
  const page = await servePage({ redis, keys, config }, hastyClock())
  return { url: `http://127.0.0.1:${page.port}`, stop: () => page.stop() }
}

/** A moment passes between two requests, so that no answer is shared. */
function hastyClock(): Clock {
  let passedMs = 0
  return { ...systemClock, monotonic: () => systemClock.monotonic() + (passedMs += 2_000) }
}

// Visits ---------------------------------------------------------------------------------------------

const agent = new Agent({ connections: 1 })
/** The user whom the proxy names. */
const visitor = { 'x-forwarded-user': 'mira', accept: 'text/html' }
/** Sessions by the address of their server. */
const cookies = new Map<string, string>()

/** Throws unless the page answers 200. */
export async function visitPage(url: string, path: string): Promise<string> {
  const cookie = cookies.get(url)
  const sent = { ...visitor, ...(cookie !== undefined && { cookie }) }
  const asked = { headers: sent, dispatcher: agent }
  const { statusCode, headers, body } = await request(`${url}${path}`, asked)
  const [set] = [headers['set-cookie'] ?? []].flat()
  if (set !== undefined) cookies.set(url, set.split(';')[0]!)
  const text = await body.text()
  if (statusCode !== 200) throw new Error(`${path} answered ${statusCode}: ${text.slice(0, 300)}`)
  return text
}

/** Where further pages begin is asked of the server itself. */
export async function openVisit(
  url: string,
  { sinks, silences }: Config,
  known: Known,
): Promise<Parameters<typeof pageViews>[0]> {
  const follow = async (name: string): Promise<string[]> => {
    const pages = [`/${name === 'messages' ? 'told' : 'not-told'}?since=90d`]
    for (let i = 0; i < 20; i += 1) {
      const path = pages.at(-1)!.replace(/^\/[a-z-]+/, `/api/v1/${name}`)
      const { next } = JSON.parse(await visitPage(url, path)) as { next: string | null }
      if (next === null) break
      pages.push(next)
    }
    return pages
  }
  return {
    known,
    random: createRandom(2),
    sinks: sinks.map(({ name }) => name),
    silences: silences.map(({ id }) => id),
    pages: { told: await follow('messages'), notTold: await follow('items') },
  }
}

export async function measureView(
  redis: Redis,
  url: string,
  { view, requests }: { view: PageView; requests: number },
): Promise<ViewCost> {
  for (let i = 0; i < 3; i += 1) await visitPage(url, view.draw())
  const cost: ViewCost = {
    name: view.name,
    isFile: view.isFile === true,
    bytes: [],
    ms: [],
    redis: { cpuMs: 0, commands: 0, bytes: 0 },
  }
  const before = await readUse(redis)
  for (let i = 0; i < requests; i += 1) {
    const path = view.draw()
    const beganMs = performance.now()
    cost.bytes.push(Buffer.byteLength(await visitPage(url, path)))
    cost.ms.push(performance.now() - beganMs)
  }
  const after = await readUse(redis)
  for (const name of ['cpuMs', 'commands', 'bytes'] as const) {
    cost.redis[name] = (after[name] - before[name]) / requests
  }
  return cost
}

async function readUse(redis: Redis): Promise<ViewCost['redis']> {
  const { cpuSeconds, commands } = await redisUse(redis)
  const stats = await redis.info('stats')
  const bytes = Number(/^total_net_output_bytes:(\d+)/m.exec(stats)?.[1])
  return { cpuMs: 1000 * cpuSeconds, commands, bytes }
}

function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((one, other) => one - other)
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? Number.NaN
}

const titles = ['view', 'kB', 'p50 ms', 'p95 ms', 'worst ms', 'redis ms', 'commands', 'kB read']

function tableOf(costs: readonly ViewCost[]): string {
  const rows = costs.map(({ name, bytes, ms, redis }) => [
    name,
    (Math.max(...bytes) / 1000).toFixed(1),
    ...[0.5, 0.95, 1].map((share) => quantile(ms, share).toFixed(1)),
    redis.cpuMs.toFixed(1),
    redis.commands.toFixed(0),
    (redis.bytes / 1000).toFixed(0),
  ])
  return aligned([titles, ...rows]).join('\n')
}
