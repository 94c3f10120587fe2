/**
 * The page over a large ledger: what each view and its answer of the API takes of the server and of Redis,
 * whether memory stays, and whether polls and sends notice that somebody looks.
 */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { Agent, request } from 'undici'
import type { Config } from '../../src/config/config.ts'
import { createKeys } from '../../src/redis/keys.ts'
import type { Redis } from '../../src/redis/connection.ts'
import { claimSchema } from '../../src/redis/health.ts'
import { createRandom, type Random } from '../../src/sandbox/options.ts'
import { intervalOf } from './delay.ts'
import { type Known, seedLedgers } from './page-ledger.ts'
import type { PageCall, PageMemory, PageReply } from './page-process.ts'
import { pageConfig, readPageConfig, type Taken, visitor } from './page-server.ts'
import { type PageView, pageViews } from './page-views.ts'
import { aligned, type Figures } from './report.ts'
import { type Daemon, heapFlags, prefix, redisUse, type Rig, type SandboxProcess } from './rig.ts'

export interface PagePlan {
  records: number
  /** Of each view. */
  requests: number
  /** Of all views together, while memory is watched. */
  visits: number
  pairs: number
  pairSeconds: number
}

/** What a view took, in order. */
export interface ViewCost {
  name: string
  isFile: boolean
  bytes: number[]
  taken: Taken[]
  /** Of one request. */
  redis: { cpuMs: number; commands: number; bytes: number }
}

/** `tell`: what each view took, as soon as it is known. */
export async function measurePage(
  rig: Rig,
  plan: PagePlan & { accounts: number },
  tell: (table: string) => void,
): Promise<Figures> {
  const { accounts } = plan
  await rig.redis.flushall()
  await rig.redis.config('SET', 'appendonly', 'no')
  const { sandbox, config, written } = await configure(rig, accounts)
  const known = await seedPage(rig.redis, config, plan.records)
  const server = await startProcess(written)
  const visit = await openVisit(server.url, config, known)
  const views = pageViews(visit)
  const costs: ViewCost[] = []
  for (const view of views) {
    costs.push(await measureView(rig.redis, server, { view, requests: plan.requests }))
  }
  tell(tableOf(costs))
  const figures = { ...summarize(costs) }
  // what follows depends on records, not on accounts
  if (accounts === 1)
    Object.assign(figures, await measureMemory(server, { views, ...visit, ...plan }))
  await server.stop()
  await keepFile(rig.redis)
  if (accounts === 1) {
    Object.assign(figures, await measurePairs(rig, { plan, sandbox, written, views }))
  }
  return figures
}

/** Redis writes all that it has into a new file, which what is measured next must not notice. */
async function keepFile(redis: Redis): Promise<void> {
  await redis.config('SET', 'appendonly', 'yes')
  while (
    !/^aof_rewrite_in_progress:0\r?\naof_rewrite_scheduled:0/m.test(await redis.info('persistence'))
  ) {
    await sleep(200)
  }
}

async function configure(
  rig: Rig,
  accounts: number,
): Promise<{ sandbox: SandboxProcess; written: object; config: Config }> {
  const groups = Array.from({ length: 2 * accounts }, (_none, i) => ({
    id: 2_000 + i,
    name: `group ${i}`,
    tenantId: 42,
    identifiers: [{ id: 12_000 + i, name: `watched-${i}.example` }],
  }))
  const sandbox = await rig.startSandbox({
    organizations: [{ id: 7, keys: [{ key: 'fw_bench', tenants: [42] }] }],
    groups,
    slackLimit: { perSecond: 1_000, burst: 1_000 },
  })
  const redis = { url: rig.redisUrl, prefix }
  const written = pageConfig({ accounts, redis, upstream: sandbox })
  return { sandbox, written, config: readPageConfig(written) }
}

export async function seedPage(redis: Redis, config: Config, records: number): Promise<Known> {
  const keys = createKeys(config.redis.prefix)
  await claimSchema(redis, keys)
  return seedLedgers({ redis, keys }, config, { records, seed: 1 })
}

// Visits ---------------------------------------------------------------------------------------------

const agent = new Agent({ connections: 1 })

/** Sessions by the address of their server. */
const cookies = new Map<string, string>()

export interface Answer {
  status: number
  body: string
}

export async function visitPage(url: string, path: string): Promise<Answer> {
  const cookie = cookies.get(url)
  const sent = { ...visitor, accept: 'text/html', ...(cookie !== undefined && { cookie }) }
  const asked = { headers: sent, dispatcher: agent }
  const { statusCode, headers, body } = await request(`${url}${path}`, asked)
  const [set] = [headers['set-cookie'] ?? []].flat()
  if (set !== undefined) cookies.set(url, set.split(';')[0]!)
  return { status: statusCode, body: await body.text() }
}

async function visitWell(url: string, path: string): Promise<string> {
  const { status, body } = await visitPage(url, path)
  if (status !== 200) throw new Error(`${path} answered ${status}: ${body.slice(0, 300)}`)
  return body
}

/** Where further pages begin is asked of the server itself. */
export async function openVisit(
  url: string,
  { accounts, sinks, silences }: Config,
  known: Known,
): Promise<Parameters<typeof pageViews>[0]> {
  const follow = async (name: string): Promise<string[]> => {
    const pages = [`/${name === 'messages' ? 'told' : 'not-told'}?since=90d`]
    for (let i = 0; i < 20; i += 1) {
      const path = pages.at(-1)!.replace(/^\/[a-z-]+/, `/api/v1/${name}`)
      const { next } = JSON.parse(await visitWell(url, path)) as { next: string | null }
      if (next === null) break
      pages.push(next)
    }
    return pages
  }
  return {
    known,
    random: createRandom(2),
    accounts: accounts.map(({ name }) => name),
    sinks: sinks.map(({ name }) => name),
    silences: silences.map(({ id }) => id),
    pages: { told: await follow('messages'), notTold: await follow('items') },
  }
}

interface Served {
  url: string
  call: (call: PageCall) => Promise<PageReply>
}

export async function measureView(
  redis: Redis,
  { url, call }: Served,
  { view, requests }: { view: PageView; requests: number },
): Promise<ViewCost> {
  for (let i = 0; i < 3; i += 1) await visitWell(url, view.draw())
  await call({ name: 'take' })
  const bytes: number[] = []
  const before = await readUse(redis)
  for (let i = 0; i < requests; i += 1) {
    bytes.push(Buffer.byteLength(await visitWell(url, view.draw())))
  }
  const after = await readUse(redis)
  const taken = (await call({ name: 'take' })) as Taken[]
  return {
    name: view.name,
    isFile: view.isFile === true,
    bytes,
    taken,
    redis: {
      cpuMs: (after.cpuMs - before.cpuMs) / requests,
      commands: (after.commands - before.commands) / requests,
      bytes: (after.bytes - before.bytes) / requests,
    },
  }
}

async function readUse(redis: Redis): Promise<ViewCost['redis']> {
  const { cpuSeconds, commands } = await redisUse(redis)
  const stats = await redis.info('stats')
  const bytes = Number(/^total_net_output_bytes:(\d+)/m.exec(stats)?.[1])
  return { cpuMs: 1000 * cpuSeconds, commands, bytes }
}

interface PageProcess extends Served {
  stop(): Promise<void>
}

async function startProcess(config: object): Promise<PageProcess> {
  const entry = new URL('./page-process.ts', import.meta.url)
  const execArgv = ['--expose-gc', ...heapFlags]
  const child = fork(entry, { execArgv, stdio: ['ignore', 'ignore', 'inherit', 'ipc'] })
  const gone = once(child, 'exit')
  const call = async (asked: PageCall): Promise<PageReply> => {
    child.send(asked)
    const ended = gone.then(() => Promise.reject(new Error('the page ended by itself')))
    const answered = once(child, 'message') as Promise<[{ reply: PageReply; error?: string }]>
    const [{ reply, error }] = await Promise.race([answered, ended])
    if (error !== undefined) throw new Error(`the page: ${error}`)
    return reply
  }
  const { url } = (await call({ name: 'start', config })) as { url: string }
  return {
    url,
    call,
    async stop() {
      if (child.connected) child.disconnect()
      await gone
    },
  }
}

async function measureMemory(
  { url, call }: Served,
  { views, random, visits }: { views: readonly PageView[]; random: Random; visits: number },
): Promise<Figures> {
  await call({ name: 'setShared', isShared: true })
  const read = async (): Promise<PageMemory> => {
    await call({ name: 'take' })
    return (await call({ name: 'memory' })) as PageMemory
  }
  const go = async (count: number): Promise<PageMemory> => {
    for (let i = 0; i < count; i += 1) await visitWell(url, random.pick(views).draw())
    return read()
  }
  const early = await go(Math.floor(visits / 10))
  const late = await go(visits - Math.floor(visits / 10))
  const mebibytes = (bytes: number): number => bytes / 2 ** 20
  return {
    'heap-early': mebibytes(early.heapBytes),
    'heap-late': mebibytes(late.heapBytes),
    'heap-growth': late.heapBytes / early.heapBytes,
    'rss-early': mebibytes(early.rssBytes),
    'rss-late': mebibytes(late.rssBytes),
  }
}

// Pairs ----------------------------------------------------------------------------------------------

interface Paired {
  plan: PagePlan
  sandbox: SandboxProcess
  written: object
  views: readonly PageView[]
}

const arrivalsPerSecond = 20
const visitsPerSecond = 5

/** One engine; in each pair the same load with visitors and without, in turns. */
async function measurePairs(rig: Rig, { plan, sandbox, written, views }: Paired): Promise<Figures> {
  const daemon = await rig.startDaemon(written)
  const load = { sandbox, seconds: plan.pairSeconds }
  await runLoad(daemon, { ...load, views: [] }) // what waited is sent
  const pairs: Record<'alone' | 'visited', Run>[] = []
  for (let pair = 0; pair < plan.pairs; pair += 1) {
    const first = await runLoad(daemon, { ...load, views: pair % 2 === 0 ? [] : views })
    const second = await runLoad(daemon, { ...load, views: pair % 2 === 0 ? views : [] })
    pairs.push(
      pair % 2 === 0 ? { alone: first, visited: second } : { alone: second, visited: first },
    )
  }
  await daemon.stop()
  const meanOf = (values: readonly number[]): number => intervalOf(values).mean
  const more = intervalOf(pairs.map(({ alone, visited }) => visited.delay - alone.delay))
  return {
    'told-alone': meanOf(pairs.map(({ alone }) => alone.delay)),
    'told-visited': meanOf(pairs.map(({ visited }) => visited.delay)),
    'told-more': more.low,
    polls: meanOf(pairs.map(({ alone, visited }) => visited.polls / alone.polls)),
  }
}

interface Run {
  /** Seconds from an event to its webhook, mean. */
  delay: number
  polls: number
}

interface Load {
  sandbox: SandboxProcess
  seconds: number
  /** Empty: nobody looks. */
  views: readonly PageView[]
}

async function runLoad(daemon: Daemon, { sandbox, seconds, views }: Load): Promise<Run> {
  const sinceMs = Date.now()
  const plan = Array.from({ length: seconds * arrivalsPerSecond }, (_none, i) => ({
    atMs: (1000 * i) / arrivalsPerSecond,
    groupId: 2_000 + (i % 2),
  }))
  const arrived = sandbox.call('arrive', plan)
  for (let i = 0; views.length > 0 && i < seconds * visitsPerSecond; i += 1) {
    await sleep(Math.max(0, sinceMs + (1000 * i) / visitsPerSecond - Date.now()))
    await visitWell(daemon.url, views[(i * 7) % views.length]!.draw())
  }
  await arrived
  const { count } = await sandbox.call('searches', sinceMs)
  const polls = count / ((Date.now() - sinceMs) / 1000)
  for (let tries = 0; tries < 600; tries += 1) {
    const delays = await sandbox.call('delays')
    if (delays.every(({ isTold }) => isTold)) {
      return { delay: delays.reduce((sum, { ms }) => sum + ms, 0) / delays.length / 1000, polls }
    }
    await sleep(100)
  }
  throw new Error('events were never told')
}

// Report ---------------------------------------------------------------------------------------------

/** A file is as large as what it holds, and read to its end. */
function summarize(costs: readonly ViewCost[]): Figures {
  const views = costs.filter(({ isFile }) => !isFile)
  return {
    bytes: Math.max(...views.flatMap(({ bytes }) => bytes)) / 1000,
    p95: Math.max(...views.map(({ taken }) => wallAt(taken, 0.95))),
    worst: Math.max(...views.map(({ taken }) => wallAt(taken, 1))),
    'redis-cpu': Math.max(...views.map(({ redis }) => redis.cpuMs)),
  }
}

function wallAt(taken: readonly Taken[], share: number): number {
  return quantile(
    taken.map(({ wallMs }) => wallMs),
    share,
  )
}

function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((one, other) => one - other)
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? Number.NaN
}

const titles = [
  'view',
  'kB',
  'p50 ms',
  'p95 ms',
  'worst ms',
  'cpu p95 ms',
  'redis ms',
  'commands',
  'kB read',
]

function tableOf(costs: readonly ViewCost[]): string {
  const rows = costs.map(({ name, bytes, taken, redis }) => [
    name,
    (Math.max(...bytes) / 1000).toFixed(1),
    ...[0.5, 0.95, 1].map((share) => wallAt(taken, share).toFixed(1)),
    quantile(
      taken.map(({ cpuMs }) => cpuMs),
      0.95,
    ).toFixed(1),
    redis.cpuMs.toFixed(1),
    redis.commands.toFixed(0),
    (redis.bytes / 1000).toFixed(0),
  ])
  return aligned([titles, ...rows]).join('\n')
}
