/**
 * Many accounts in one installation: what they cost while nothing happens, and how soon each is told, also
 * while others fail.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { createRandom, type SandboxOptions } from '../../src/sandbox/options.ts'
import type { FaultInput } from '../../src/sandbox/server.ts'
import type { Standing } from './report.ts'
import { type Daemon, redisUse, type Rig, type SandboxProcess, webhookSink } from './rig.ts'
import type { Arrival } from './sandbox-process.ts'
import { seriesIn, untilPolled } from './size.ts'

export interface FleetPlan {
  /** Organizations of five feeds each, or tenants of one organization with a feed each. A sink each. */
  shape: 'organizations' | 'tenants'
  size: number
  replicas: number
  /** How long nothing happens while it is measured: an interval of the feeds, so that each is polled. */
  idleSeconds: number
  /** `every` of the feeds; undefined: their default. */
  every?: string | undefined
}

interface Account {
  name: string
  key: string
  organizationId: number
  tenantId: number
  groupIds: number[]
}

export interface Fleet {
  readonly plan: FleetPlan
  readonly accounts: readonly Account[]
  readonly sandbox: SandboxProcess
}

/**
 * Of several replicas the worst one, but for what all of them ask for together. `meanwhile` runs after the idle
 * time and before SIGTERM.
 */
export async function measureStanding(
  rig: Rig,
  plan: FleetPlan,
  meanwhile: (fleet: Fleet) => Promise<void> = async () => {},
): Promise<Standing> {
  await rig.redis.flushall()
  const accounts = accountsOf(plan)
  const sandbox = await rig.startSandbox(sandboxOf(plan, accounts))
  const config = configOf(plan, accounts, sandbox)
  const daemons = await Promise.all(
    Array.from({ length: plan.replicas }, () => rig.startDaemon(config)),
  )
  await untilPolled(sandbox, accounts.length * feedsEach[plan.shape])
  const idle = await measureIdle(rig, plan, { sandbox, daemons })
  const scrapes = await scrapeEach(daemons)
  await meanwhile({ plan, accounts, sandbox })
  const ends = await Promise.all(daemons.map((daemon) => daemon.stop()))
  return {
    start: Math.max(...daemons.map(({ startSeconds }) => startSeconds)),
    ...idle,
    ...scrapes,
    sigterm: Math.max(...ends),
  }
}

const feedsEach = { organizations: 5, tenants: 1 }

function accountsOf({ shape, size }: FleetPlan): Account[] {
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
function limitsOf({ shape, size }: FleetPlan): Record<'search' | 'basic', number> {
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

function configOf(plan: FleetPlan, accounts: readonly Account[], sandbox: SandboxProcess): object {
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
    sinks: record(accounts, ({ name }) => ({ [name]: webhookSink(sandbox, name) })),
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
  { sandbox, daemons }: { sandbox: SandboxProcess; daemons: readonly Daemon[] },
): Promise<Pick<Standing, 'cpu' | 'rss' | 'connections' | 'commands' | 'searches'>> {
  const sinceMs = Date.now()
  const read = () =>
    Promise.all([redisUse(redis), ...daemons.map((daemon) => daemon.use())] as const)
  const [redisBefore, ...before] = await read()
  await sleep(1000 * idleSeconds)
  const [redisAfter, ...after] = await read()
  const seconds = (Date.now() - sinceMs) / 1000
  const { count } = await sandbox.call('searches', sinceMs)
  const shares = after.map(({ cpuSeconds }, i) => (cpuSeconds - before[i]!.cpuSeconds) / seconds)
  return {
    cpu: 100 * Math.max(...shares),
    rss: Math.max(...after.map(({ rssBytes }) => rssBytes)) / 2 ** 20,
    connections: redisAfter.connections / daemons.length,
    commands: (redisAfter.commands - redisBefore.commands) / seconds,
    searches: count / seconds,
  }
}

async function scrapeEach(
  daemons: readonly Daemon[],
): Promise<Pick<Standing, 'scrape' | 'series' | 'up'>> {
  const scrapes: { seconds: number; body: string }[] = []
  for (const daemon of daemons) {
    for (let i = 0; i < 3; i += 1) scrapes.push(await daemon.scrape())
  }
  const isUp = scrapes.every(({ body }) => /^tocsin_redis_up 1$/m.test(body))
  return {
    scrape: Math.max(...scrapes.map(({ seconds }) => seconds)),
    series: Math.max(...scrapes.map(({ body }) => seriesIn(body))),
    up: isUp ? 1 : 0,
  }
}

/** Seconds from the moment an event is there until its webhook is received. */
export interface Delays {
  events: number
  mean: number
  p99: number
  longest: number
  /** Were not told when the bench gave up; they count with the time until then. */
  untold: number
}

export interface FleetDelays {
  calm: Delays
  /** Of the accounts that do not fail, while a tenth of the others does and one is slow. */
  disturbed?: Delays
  /** Seconds, disturbed less calm: the mean over accounts of paired differences, and its 95 % interval. */
  difference?: { mean: number; low: number; high: number }
  /** Requests that failed on purpose, or were slow, by effect. */
  struck?: Record<string, number>
  /** Seconds within which every feed of one organization is to be read: 1.5·N/R at 70 % of its limit. */
  bound?: number
}

export interface DelayPlan {
  /** How long events arrive. */
  forSeconds: number
  /** How long the last ones may take before the bench gives up on them. */
  patienceSeconds: number
  seed: number
}

/** The same events at the same times, twice: while nothing fails, and while a tenth of the organizations does. */
export async function measureDelays(fleet: Fleet, plan: DelayPlan): Promise<FleetDelays> {
  const { accounts } = fleet
  const { shape, size } = fleet.plan
  const steady = new Set([...accounts.keys()].filter((at) => shape === 'tenants' || !troubleOf(at)))
  const arrivals = arrivalsOf(accounts, plan)
  const calm = await tellAll(fleet, plan, { arrivals, steady })
  if (shape === 'tenants') {
    const bound = (1.5 * size) / (0.7 * limitsOf(fleet.plan).search)
    return { calm: summaryOf(calm), bound }
  }
  await disturb(fleet)
  const disturbed = await tellAll(fleet, plan, { arrivals, steady })
  const difference = pairedDifference(calm, disturbed)
  const struck = await fleet.sandbox.call('struck')
  return { calm: summaryOf(calm), disturbed: summaryOf(disturbed), difference, struck }
}

interface Told {
  account: number
  seconds: number
  isTold: boolean
}

const perAccount = 2

/** Two events for each account, at random times and in random feeds; by the same seed the same ones. */
function arrivalsOf(
  accounts: readonly Account[],
  { forSeconds, seed }: DelayPlan,
): (Arrival & { account: number })[] {
  const random = createRandom(seed)
  return accounts
    .flatMap(({ groupIds }, account) =>
      Array.from({ length: perAccount }, () => ({
        account,
        groupId: random.pick(groupIds),
        atMs: 1000 * forSeconds * random.next(),
      })),
    )
    .toSorted((left, right) => left.atMs - right.atMs)
}

async function tellAll(
  { sandbox }: Fleet,
  { patienceSeconds }: DelayPlan,
  asked: { arrivals: (Arrival & { account: number })[]; steady: ReadonlySet<number> },
): Promise<Told[]> {
  const { arrivals, steady } = asked
  await sandbox.call('arrive', arrivals)
  const endMs = performance.now() + 1000 * patienceSeconds
  for (;;) {
    const delays = await sandbox.call('delays')
    const told = arrivals.flatMap(({ account }, i): Told[] => {
      const { ms, isTold } = delays[i]!
      return steady.has(account) ? [{ account, seconds: ms / 1000, isTold }] : []
    })
    if (told.every(({ isTold }) => isTold) || performance.now() > endMs) return told
    await sleep(500)
  }
}

type Trouble = 'slow' | 'broken' | 'limited' | 'hanging' | 'refused'

/** Of an account, by its place: one is slow, and one in ten fails. */
function troubleOf(account: number): Trouble | undefined {
  if (account === 1) return 'slow'
  if (account % 10 !== 5) return undefined
  const failures = ['broken', 'limited', 'hanging', 'refused'] as const
  return failures[Math.floor(account / 10) % failures.length]
}

async function disturb({ accounts, sandbox }: Fleet): Promise<void> {
  const those = (trouble: Trouble): Account[] =>
    accounts.filter((_one, at) => troubleOf(at) === trouble)
  const fault = (trouble: Trouble, what: Omit<FaultInput, 'on' | 'organizations'>): FaultInput => {
    const organizations = those(trouble).map(({ organizationId }) => organizationId)
    return { on: '/firework/*', organizations, ...what }
  }
  const faults = [
    fault('slow', { effect: 'delay', ms: 5_000 }),
    fault('broken', { effect: 'status', status: 503 }),
    fault('limited', { effect: 'status', status: 429 }),
    fault('hanging', { effect: 'hang' }),
  ]
  await sandbox.call(
    'disturb',
    faults,
    those('refused').map(({ key }) => key),
  )
}

function summaryOf(told: readonly Told[]): Delays {
  const sorted = told.map(({ seconds }) => seconds).toSorted((left, right) => left - right)
  return {
    events: told.length,
    mean: mean(sorted),
    p99: sorted[Math.floor(0.99 * (sorted.length - 1))] ?? Number.NaN,
    longest: sorted.at(-1) ?? Number.NaN,
    untold: told.filter(({ isTold }) => !isTold).length,
  }
}

/** By account, since the events of one share its luck. */
function pairedDifference(
  calm: readonly Told[],
  disturbed: readonly Told[],
): NonNullable<FleetDelays['difference']> {
  const byAccount = Map.groupBy([...calm.keys()], (at) => calm[at]!.account)
  const differences = [...byAccount.values()].map((places) =>
    mean(places.map((at) => disturbed[at]!.seconds - calm[at]!.seconds)),
  )
  const middle = mean(differences)
  const squares = differences.map((one) => (one - middle) ** 2)
  const variance = squares.reduce((sum, one) => sum + one, 0) / (differences.length - 1)
  const half = 1.96 * Math.sqrt(variance / differences.length)
  return { mean: middle, low: middle - half, high: middle + half }
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length
}
