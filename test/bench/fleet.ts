/**
 * Many accounts in one installation: what they cost while nothing happens, and how soon each is told.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { createRandom, type SandboxOptions } from '../../src/sandbox/options.ts'
import type { Figures } from './report.ts'
import {
  type Daemon,
  type Hook,
  type ReceiverProcess,
  redisUse,
  type Rig,
  type SandboxProcess,
  webhookSink,
} from './rig.ts'
import type { Arrival } from './sandbox-process.ts'
import { seriesIn, untilPolled } from './size.ts'

interface FleetShape {
  /** Organizations of five feeds each, or tenants of one organization with a feed each. A sink each. */
  shape: 'organizations' | 'tenants'
  size: number
  /** `every` of the feeds; undefined: their default. */
  every?: string | undefined
}

export interface FleetPlan extends FleetShape {
  /** How long nothing happens while it is measured: an interval of the feeds, so that each is polled. */
  idleSeconds: number
}

interface Account {
  name: string
  key: string
  organizationId: number
  tenantId: number
  groupIds: number[]
}

interface Fleet {
  readonly plan: FleetPlan
  readonly accounts: readonly Account[]
  readonly sandbox: SandboxProcess
  readonly receiver: ReceiverProcess
}

export async function measureFleet(rig: Rig, plan: FleetPlan): Promise<Figures> {
  await rig.redis.flushall()
  const accounts = accountsOf(plan)
  const sandbox = await rig.startSandbox(sandboxOf(plan, accounts))
  const receiver = await rig.startReceiver()
  const daemon = await rig.startDaemon(configOf(plan, accounts, { sandbox, hook: receiver }))
  await untilPolled(sandbox, accounts.length * feedsEach[plan.shape])
  const figures = {
    start: daemon.startSeconds,
    ...(await measureIdle(rig, plan, { sandbox, daemon })),
    ...(await scrapeThrice(daemon)),
    ...(await measureDelays({ plan, accounts, sandbox, receiver })),
    sigterm: await daemon.stop(),
  }
  await receiver.close()
  return figures
}

const feedsEach = { organizations: 5, tenants: 1 }

export function accountsOf({ shape, size }: FleetShape): Account[] {
  const isOne = shape === 'tenants'
  return Array.from({ length: size }, (_none, i) => ({
    name: `${isOne ? 'tenant' : 'org'}-${i}`,
    key: isOne ? 'fw_one' : `fw_org_${i}`,
    organizationId: isOne ? 1 : i + 1,
    tenantId: i + 1,
    groupIds: Array.from({ length: feedsEach[shape] }, (_n, feed) => 10_000 + 5 * i + feed),
  }))
}

/** Requests a second: the service's own; of many tenants as many more as lets each be read within a minute. */
function limitsOf({ shape, size }: FleetShape): Record<'search' | 'basic', number> {
  const search = shape === 'tenants' ? Math.max(1, size / 20) : 1
  return { search, basic: 4 * search }
}

function sandboxOf(plan: FleetPlan, accounts: readonly Account[]): SandboxOptions {
  const owners = Map.groupBy(accounts, ({ organizationId }) => organizationId)
  return {
    enforceLimits: true,
    organizations: [...owners].map(([id, own]) => ({
      id,
      limits: limitsOf(plan),
      keys: [{ key: own[0]!.key, tenants: own.map(({ tenantId }) => tenantId) }],
    })),
    groups: accounts.flatMap(({ name, tenantId, groupIds }) =>
      groupIds.map((id) => {
        const identifiers = [{ id: 100_000 + id, name: `${name}-${id}.example` }]
        return { id, name: `group ${id}`, tenantId, identifiers }
      }),
    ),
  }
}

export function configOf(
  plan: FleetShape,
  accounts: readonly Account[],
  { sandbox, hook }: { sandbox: { url: string }; hook: Hook },
): object {
  const every = plan.every === undefined ? {} : { every: plan.every }
  return {
    accounts: record(accounts, ({ name, key, organizationId, tenantId }) => ({
      [name]: {
        base_url: sandbox.url,
        link_hosts: ['app.example.com'],
        api_key: key,
        organization_id: organizationId,
        ...(plan.shape === 'tenants' && { tenant_id: tenantId }),
        limits: limitsOf(plan),
      },
    })),
    feeds: record(accounts, ({ name, groupIds }) =>
      record(groupIds, (id) => ({
        [`${name}-${id}`]: {
          type: 'events',
          account: name,
          identifier_group: id,
          detail: [],
          ...every,
        },
      })),
    ),
    sinks: record(accounts, ({ name }) => ({ [name]: webhookSink(hook, name) })),
    route: {
      sinks: [accounts[0]!.name],
      routes: accounts.map(({ name }) => ({ matchers: [`account="${name}"`], sinks: [name] })),
    },
  }
}

function record<T>(list: readonly T[], entryOf: (one: T) => object): object {
  return Object.assign({}, ...list.map(entryOf)) as object
}

async function measureIdle(
  { redis }: Rig,
  { idleSeconds }: FleetPlan,
  { sandbox, daemon }: { sandbox: SandboxProcess; daemon: Daemon },
): Promise<Figures> {
  const sinceMs = Date.now()
  const read = () => Promise.all([redisUse(redis), daemon.use()] as const)
  const [redisBefore, before] = await read()
  await sleep(1000 * idleSeconds)
  const [redisAfter, after] = await read()
  const seconds = (Date.now() - sinceMs) / 1000
  const { count } = await sandbox.call('searches', sinceMs)
  return {
    cpu: (100 * (after.cpuSeconds - before.cpuSeconds)) / seconds,
    rss: after.rssBytes / 2 ** 20,
    connections: redisAfter.connections,
    commands: (redisAfter.commands - redisBefore.commands) / seconds,
    searches: count / seconds,
  }
}

async function scrapeThrice(daemon: Daemon): Promise<Figures> {
  const scrapes = [await daemon.scrape(), await daemon.scrape(), await daemon.scrape()]
  const isUp = scrapes.every(({ body }) => /^tocsin_redis_up 1$/m.test(body))
  return {
    scrape: Math.max(...scrapes.map(({ seconds }) => seconds)),
    series: Math.max(...scrapes.map(({ body }) => seriesIn(body))),
    up: isUp ? 1 : 0,
  }
}

/** Seconds from the moment an event is there until its webhook is received. */
async function measureDelays({ accounts, sandbox, receiver, plan }: Fleet): Promise<Figures> {
  const arrived = await sandbox.call('arrive', arrivalsOf(accounts, plan.idleSeconds))
  await receiver.call('until', arrived.length)
  const toldMs = new Map(await receiver.call('times'))
  const seconds = arrived.map(([uid, cameMs]) => (toldMs.get(uid)! - cameMs) / 1000)
  const longest = Math.max(...seconds)
  const delay = seconds.reduce((sum, one) => sum + one, 0) / seconds.length
  // every feed of one organization is to be read in so long, at 70 % of its limit
  const boundSeconds = (1.5 * plan.size) / (0.7 * limitsOf(plan).search)
  const isOne = plan.shape === 'tenants'
  return {
    delay,
    'delay-longest': longest,
    ...(isOne && { 'delay-bound': longest / boundSeconds }),
  }
}

const perAccount = 2

/** Two events for each account, at random times and in random feeds; by the same seed the same ones. */
function arrivalsOf(accounts: readonly Account[], forSeconds: number): Arrival[] {
  const random = createRandom(1)
  return accounts
    .flatMap(({ groupIds }) =>
      Array.from({ length: perAccount }, () => ({
        groupId: random.pick(groupIds),
        atMs: 1000 * forSeconds * random.next(),
      })),
    )
    .toSorted((left, right) => left.atMs - right.atMs)
}
