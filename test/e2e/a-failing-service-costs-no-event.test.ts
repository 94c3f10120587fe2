import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import type { App } from '../../src/daemon/daemon.ts'
import type { SandboxOptions } from '../../src/sandbox/options.ts'
import { type Sandbox, startSandbox } from '../../src/sandbox/sandbox.ts'
import type { FaultInput, SandboxRequest } from '../../src/sandbox/server.ts'
import { readAccounting } from '../../src/store/accounts.ts'
import { expectConservation } from '../support/ledger.ts'
import { startRedis, type TestRedis } from '../support/redis.ts'
import { aReplica, nothingPending, shortTimings, until } from '../support/rehearsal.ts'

// Every scenario waits about half of its time.
vi.setConfig({ maxConcurrency: 4, testTimeout: 120_000 })

const searches = '/firework/v4/events/identifier_groups/*'
const details = '/firework/v4/events/'
const { pollBackoffMs, requestTimeoutMs, detailWaitMs } = shortTimings

let redis: TestRedis
let scenarios = 0

beforeAll(async () => {
  redis = await startRedis()
})

afterAll(() => redis.stop())

interface Stage {
  sandbox: Sandbox
  replicas: App[]
  /** Value of a series of the first replica; 0 where there is none. */
  metric: (series: string) => Promise<number>
  /** The uids of all webhook messages, in order of arrival. */
  delivered: () => string[]
  /** Waits until so many different events arrived and nothing is on its way. */
  settled: (events: number, timeoutMs?: number) => Promise<void>
}

interface Staging {
  sandbox?: SandboxOptions
  replicas?: number
  /** Further keys of the feeds. */
  feed?: string
  groups?: number[]
  /** Before the replicas start. */
  before?: (sandbox: Sandbox) => void
}

/** A sandbox and replicas of its own; afterwards: each event once, nothing unaccounted, no rule broken. */
async function rehearse(staging: Staging, scenario: (stage: Stage) => Promise<void>) {
  const sandbox = await startSandbox({
    organizations: [
      { id: 7, limits: { search: 20, basic: 20 }, keys: [{ key: 'fw_sandbox', tenants: [42] }] },
    ],
    ...staging.sandbox,
  })
  staging.before?.(sandbox)
  const yaml = configOf(sandbox, staging)
  const replicas = Array.from({ length: staging.replicas ?? 1 }, () => aReplica(yaml))
  try {
    const [first] = await Promise.all(replicas.map((replica) => replica.start()))
    const stage = stageOf(sandbox, replicas, first!.url)
    await scenario(stage)
    await until('all is settled', () => nothingPending(replicas[0]!))
    expect(stage.delivered().toSorted()).toEqual([...new Set(stage.delivered())].toSorted())
    await expectConservation(replicas[0]!.ledgers[0]!)
    expect(sandbox.violations()).toEqual({ rate: 0, changedScans: 0 })
  } finally {
    await Promise.all(replicas.map((replica) => replica.stop()))
    await sandbox.close()
  }
}

function configOf(sandbox: Sandbox, { feed = ', detail: []', groups = [1042] }: Staging): string {
  const feeds = groups.map(
    (group) => `feed-${group}: {type: events, identifier_group: ${group}, every: 5s${feed}}`,
  )
  return `
redis: {url: '${redis.url}', prefix: service-${(scenarios += 1)}}
http: {port: 0}
accounts: {main: {base_url: '${sandbox.url}', link_hosts: [app.example.com], api_key: fw_sandbox, limits: {search: 20, basic: 20}}}
feeds: {${feeds.join(', ')}}
sinks: {siem: {type: webhook, url: '${sandbox.webhookUrl}', secret: '${sandbox.webhookSecret}', allow_private: true}}
route: {sinks: [siem]}
`
}

function stageOf(sandbox: Sandbox, replicas: App[], url: string): Stage {
  const delivered = (): string[] => messages(sandbox).map(({ uid }) => uid)
  return {
    sandbox,
    replicas,
    delivered,
    async metric(series) {
      const lines = (await (await fetch(`${url}/metrics`)).text()).split('\n')
      const line = lines.find((text) => text.startsWith(`tocsin_${series} `))
      return Number(line?.split(' ').at(-1) ?? 0)
    },
    settled: (events, timeoutMs = 60_000) =>
      until(`${events} events delivered`, () => new Set(delivered()).size === events, timeoutMs),
  }
}

interface Message {
  uid: string
  severity: string
  detail: Record<string, unknown> | null
  detail_unavailable?: true
}

function messages(sandbox: Sandbox): Message[] {
  return sandbox.received.webhook.map(({ json }) => (json as { data: Message }).data)
}

function searchesOf(sandbox: Sandbox): SandboxRequest[] {
  return sandbox.requests.filter(({ path }) => path.endsWith('/_search'))
}

/** A rescan reads a window with an end; the tail goes on and on. */
function isOfTail({ body }: SandboxRequest): boolean {
  const { filters } = body as { filters?: { estimated_created_at?: { lte?: string } } }
  const times = filters?.estimated_created_at
  return times !== undefined && times.lte === undefined
}

function failedPolls(reason: string): string {
  return `feed_polls_failed_total{feed="feed-1042",reason="${reason}"}`
}

interface Failure {
  name: string
  fault: FaultInput
  reason: string
  /** From the request that failed to the next one. */
  waitsMs?: number
  /** Shortest wait that counts; default: `waitsMs`, less what timers are coarse by. */
  leastMs?: number
}

const status = { on: searches, withCursor: true, effect: 'status', times: 1 } as const
const broken = { on: searches, withCursor: true, times: 1 } as const

const failures: Failure[] = [
  { name: '500', fault: { ...status, status: 500 }, reason: 'unavailable' },
  { name: '502 in plain text', fault: { ...status, status: 502 }, reason: 'unavailable' },
  {
    name: '503 with Retry-After',
    fault: { ...status, status: 503, headers: { 'retry-after': '2' } },
    reason: 'unavailable',
    waitsMs: 2_000,
  },
  { name: '504', fault: { ...status, status: 504 }, reason: 'unavailable' },
  {
    name: 'a hang',
    fault: { ...broken, effect: 'hang' },
    reason: 'timeout',
    waitsMs: requestTimeoutMs + pollBackoffMs,
    // The time-out counts from the sending, which a busy machine may do long before the arrival.
    leastMs: requestTimeoutMs,
  },
  { name: 'a refused connection', fault: { ...broken, effect: 'refuse' }, reason: 'unavailable' },
  { name: 'a lost answer', fault: { ...broken, effect: 'lose-answer' }, reason: 'unavailable' },
  { name: 'a cut in mid-body', fault: { ...broken, effect: 'cut' }, reason: 'unavailable' },
  { name: 'invalid JSON', fault: { ...broken, effect: 'invalid-json' }, reason: 'contract' },
  {
    name: 'items that are no list',
    fault: { ...broken, effect: 'wrong-shape' },
    reason: 'contract',
  },
  { name: 'no items', fault: { ...status, status: 200, body: 'message' }, reason: 'contract' },
  {
    name: 'a web page',
    fault: { ...status, status: 200, body: 'text', message: '<!doctype html><title>Login</title>' },
    reason: 'contract',
  },
  {
    name: 'a redirect',
    fault: { ...status, status: 302, headers: { location: 'https://login.example.com/' } },
    reason: 'contract',
  },
  { name: '403', fault: { ...status, status: 403 }, reason: 'auth' },
  {
    name: '429 with Retry-After',
    fault: { ...status, status: 429, headers: { 'retry-after': '2' } },
    reason: 'rate_limited',
    waitsMs: 2_000,
  },
  {
    name: '429 without Retry-After',
    fault: { ...status, status: 429 },
    reason: 'rate_limited',
    waitsMs: 10_000,
  },
]

test.concurrent.each(failures)(
  '$name in mid-walk costs a wait and no event',
  async ({ fault, reason, waitsMs = pollBackoffMs, leastMs = waitsMs - 50 }) => {
    const before = (sandbox: Sandbox): void => {
      sandbox.addEvents(25)
      sandbox.faults.add(fault)
    }
    await rehearse({ before }, async ({ sandbox, metric, settled }) => {
      await until('the fault struck', () => sandbox.faults.list().length === 0)
      sandbox.addEvents(9)
      await settled(34)
      expect(await metric(failedPolls(reason))).toBe(1)
      const asked = searchesOf(sandbox)
      const failed = asked.findIndex(({ body }) => (body as { from?: string }).from !== undefined)
      const waitedMs = asked[failed + 1]!.atMs - asked[failed]!.atMs
      expect(waitedMs).toBeGreaterThanOrEqual(leastMs)
      expect(asked[failed + 1]!.body).toEqual(asked[failed]!.body)
    })
  },
)

test.concurrent('a service that goes on failing is asked ever less often, and nothing is lost', async () => {
  const before = (sandbox: Sandbox): void => {
    sandbox.addEvents(15)
    sandbox.faults.add({ on: searches, effect: 'status', status: 500, times: 3 })
  }
  await rehearse({ before }, async ({ sandbox, metric, settled }) => {
    await settled(15)
    expect(await metric(failedPolls('unavailable'))).toBe(3)
    const [first, second, third, fourth] = searchesOf(sandbox).map(({ atMs }) => atMs)
    expect(second! - first!).toBeGreaterThanOrEqual(pollBackoffMs - 50)
    expect(third! - second!).toBeGreaterThanOrEqual(2 * pollBackoffMs - 50)
    expect(fourth! - third!).toBeGreaterThanOrEqual(4 * pollBackoffMs - 50)
  })
})

test.concurrent('the wait that a 429 asks for holds for every feed of every replica', async () => {
  const groups = [1042, 1043]
  await rehearse({ replicas: 2, groups }, async ({ sandbox, settled }) => {
    sandbox.addEvents(3)
    sandbox.addEvents(3, { groupIds: [1043] })
    await settled(6)
    const strike = { on: searches, effect: 'status', status: 429, times: 1 } as const
    sandbox.faults.add({ ...strike, headers: { 'retry-after': '2' } })
    await until('the fault struck', () => sandbox.faults.list().length === 0)
    sandbox.addEvents(12, { groupIds: groups })
    await settled(18)
    const asked = searchesOf(sandbox)
    const refused = asked.findIndex((request) => request.status === 429)
    const waits = asked.slice(refused + 1).map(({ atMs }) => atMs - asked[refused]!.atMs)
    // what had its turn before the answer came was on its way
    expect(waits.filter((ms) => ms < 2_000 - 50).length).toBeLessThanOrEqual(1)
  })
})

test.concurrent('tokens that run out while in use cost no poll', async () => {
  const before = (sandbox: Sandbox): void => void sandbox.addEvents(12)
  await rehearse({ before, sandbox: { tokenLifetimeMs: 1_000 } }, async (stage) => {
    await stage.settled(12)
    const known = stage.sandbox.tokens.issued()
    await until('a token ran out', () => stage.sandbox.tokens.issued() > known)
    stage.sandbox.addEvents(12)
    await stage.settled(24)
    expect(await stage.metric(failedPolls('auth'))).toBe(0)
  })
})

test.concurrent('a token revoked in mid-walk costs no poll', async () => {
  const before = (sandbox: Sandbox): void => {
    sandbox.addEvents(25)
    sandbox.faults.add({ ...broken, effect: 'delay', ms: 1_000 })
  }
  await rehearse({ before }, async ({ sandbox, metric, settled }) => {
    await until('a page is under way', () => sandbox.faults.list().length === 0)
    sandbox.tokens.revokeAll()
    await settled(25)
    expect(searchesOf(sandbox).map((request) => request.status)).toContain(401)
    expect(sandbox.tokens.issued()).toBe(2)
    expect(await metric(failedPolls('auth'))).toBe(0)
  })
})

const noTokens: { name: string; fault: FaultInput; reason?: string }[] = [
  { name: '500', fault: { on: '/tokens/generate', effect: 'status' }, reason: 'unavailable' },
  {
    name: 'invalid JSON',
    fault: { on: '/tokens/generate', effect: 'invalid-json' },
    reason: 'contract',
  },
  {
    name: 'no token',
    fault: { on: '/tokens/generate', effect: 'wrong-shape' },
    reason: 'contract',
  },
  { name: 'a cut', fault: { on: '/tokens/generate', effect: 'cut' }, reason: 'unavailable' },
]

test.concurrent.each(noTokens)(
  '$name instead of a token costs a wait and no event',
  async ({ fault, reason }) => {
    const before = (sandbox: Sandbox): void => {
      sandbox.addEvents(12)
      sandbox.faults.add({ ...fault, times: 2 })
    }
    await rehearse({ before }, async ({ sandbox, metric, settled }) => {
      await settled(12)
      expect(sandbox.faults.list()).toEqual([])
      expect(await metric(failedPolls(reason!))).toBeGreaterThan(0)
    })
  },
)

test.concurrent.each([404, 500])('a token test that answers %i costs nothing', async (code) => {
  const before = (sandbox: Sandbox): void => {
    sandbox.addEvents(12)
    sandbox.faults.add({ on: '/tokens/test', effect: 'status', status: code })
  }
  await rehearse({ before }, async ({ sandbox, metric, settled }) => {
    await settled(12)
    for (const reason of ['auth', 'unavailable']) expect(await metric(failedPolls(reason))).toBe(0)
    expect(sandbox.faults.list()).toMatchObject([{ hits: 1 }])
  })
})

test.concurrent('a cursor that is refused begins a new walk at once, with overlap', async () => {
  const before = (sandbox: Sandbox): void => void sandbox.addEvents(25)
  await rehearse({ before }, async ({ sandbox, metric, settled }) => {
    await settled(25)
    sandbox.expireCursors()
    sandbox.addEvents(11)
    await settled(36)
    expect(await metric('feed_cursor_resets_total{feed="feed-1042",reason="cursor_refused"}')).toBe(
      1,
    )
    expect(await metric(failedPolls('rejected'))).toBe(0)
  })
})

test.concurrent('an end without `next` is polled again from the last cursor', async () => {
  const before = (sandbox: Sandbox): void => void sandbox.addEvents(25)
  await rehearse({ before, sandbox: { endMode: 'absent' } }, async ({ sandbox, settled }) => {
    await settled(25)
    sandbox.addEvents(14)
    await settled(39)
    expect(searchesOf(sandbox).findLast(isOfTail)?.body).toHaveProperty('from')
  })
})

/** An item as the service shows it, with whatever else. */
function anItem(uid: string, more: Record<string, unknown> = {}) {
  const metadata = {
    uid,
    type: 'paste',
    severity: 'low',
    ...(more['metadata'] as object | undefined),
  }
  return { ...more, metadata }
}

test.concurrent('whatever an item holds, it and its page arrive once', async () => {
  const many = Array.from({ length: 10_000 }, (_, i) => `tag-${i}`)
  await rehearse({}, async ({ sandbox, replicas, settled }) => {
    const [event] = sandbox.addEvents(1, { severity: 'low' })
    sandbox.addRawItem(1042, anItem(event!.uid, { highlights: { content: ['the same again'] } }))
    const nulls = { estimated_created_at: null, matched_at: null, flare_url: null }
    sandbox.addRawItem(1042, anItem('paste/x/no-times', { metadata: nulls }))
    sandbox.addRawItem(1042, anItem('paste/x/tags', { tenant_metadata: { tags: many } }))
    sandbox.addRawItem(1042, { metadata: { severity: 'high' }, note: 'x'.repeat(1_000_000) })
    sandbox.addRawItem(1042, anItem('paste/x/odd', { identifiers: { odd: [7] }, highlights: 7 }))
    sandbox.addRawItem(1042, null)
    sandbox.addEvents(8)
    await settled(12)
    const { feeds } = await readAccounting(replicas[0]!.ledgers[0]!)
    expect(feeds['feed-1042']).toMatchObject({ new: 12, quarantined: 2 })
  })
})

test.concurrent('a page of ten items of a megabyte each blocks nothing', async () => {
  const huge = { content: ['password: hunter2 '.repeat(60_000)] }
  const before = (sandbox: Sandbox): void => {
    sandbox.addEvents(10, { highlights: huge, createdAtMs: Date.now() - 60_000 })
    sandbox.addEvents(12)
  }
  await rehearse({ before }, async ({ sandbox, settled }) => {
    await settled(22)
    expect(sandbox.received.webhook.map(({ body }) => body).join()).not.toContain('hunter2')
  })
})

test.concurrent('an event that changes arrives again only when it became more severe', async () => {
  const before = (sandbox: Sandbox): void => void sandbox.addEvents(3, { severity: 'medium' })
  await rehearse({ before }, async ({ sandbox, settled, delivered }) => {
    await settled(3)
    const [same, milder, worse] = sandbox.events().map(({ uid }) => uid)
    sandbox.changeEvent(same!, { notes: 'looked at', tags: ['seen'] })
    sandbox.changeEvent(milder!, { severity: 'info' })
    sandbox.changeEvent(worse!, { severity: 'critical' })
    sandbox.addEvents(2)
    await settled(5)
    await until('the worse one came again', () => sandbox.received.webhook.length === 6)
    const severities = messages(sandbox).filter(({ uid }) => uid === worse)
    expect(severities.map(({ severity }) => severity)).toEqual(['medium', 'critical'])
    expect(delivered().filter((uid) => uid === same || uid === milder)).toHaveLength(2)
    // the one repeat that is meant
    const again = sandbox.received.webhook.findLastIndex(({ uids }) => uids.includes(worse!))
    ;(sandbox.received.webhook as unknown[]).splice(again, 1)
  })
})

interface NoDetail {
  name: string
  fault?: FaultInput
  data?: null
  /** At least so long after the page, and the time of the wait. */
  afterMs?: number
}

const noDetails: NoDetail[] = [
  { name: 'a type without a model', data: null },
  { name: '404', fault: { on: details, effect: 'status', status: 404 } },
  { name: 'a wrong shape', fault: { on: details, effect: 'wrong-shape' } },
  { name: 'invalid JSON', fault: { on: details, effect: 'invalid-json' } },
  { name: '422', fault: { on: details, effect: 'status', status: 422 } },
  { name: 'a redirect', fault: { on: details, effect: 'status', status: 302 } },
  { name: '500 without end', fault: { on: details, effect: 'status' }, afterMs: detailWaitMs },
  { name: 'a hang', fault: { on: details, effect: 'hang' }, afterMs: detailWaitMs },
]

test.concurrent.each(noDetails)(
  'full event: $name delays its own messages at most, and they say so',
  async ({ fault, data, afterMs = 0 }) => {
    const before = (sandbox: Sandbox): void => {
      if (fault) sandbox.faults.add(fault)
      // nor has the older operation anything to say
      sandbox.faults.add({ on: '/firework/v2/activities/', effect: 'status', status: 404 })
      sandbox.addEvents(12, { severity: 'critical', ...(data === null && { data }) })
      sandbox.addEvents(5, { severity: 'low' })
    }
    await rehearse({ before, feed: ', detail: [critical]' }, async ({ sandbox, settled }) => {
      await settled(17)
      const critical = messages(sandbox).filter(({ severity }) => severity === 'critical')
      expect(critical).toHaveLength(12)
      for (const message of critical) {
        expect(message).toMatchObject({ detail: null, detail_unavailable: true })
      }
      const waits = sandbox.received.webhook.map(({ atMs }) => atMs - searchesOf(sandbox)[0]!.atMs)
      expect(Math.max(...waits)).toBeGreaterThanOrEqual(afterMs)
      // what is no use to ask again is asked for once at most: a busy machine may come to none in time
      const asked = sandbox.requests.filter(({ path }) => path === details).length
      expect(afterMs > 0 || asked <= 12).toBe(true)
      // those that want no full event never came to wait for one
      const low = messages(sandbox).filter(({ severity }) => severity === 'low')
      expect(low.map((message) => message.detail_unavailable)).toEqual(low.map(() => undefined))
    })
  },
)

test.concurrent('a full event that fails once is asked for again', async () => {
  const before = (sandbox: Sandbox): void => {
    sandbox.faults.add({ on: details, effect: 'status', status: 503, times: 2 })
    sandbox.addEvents(3, { severity: 'critical', data: { url: 'https://example.org/' } })
  }
  await rehearse({ before, feed: ', detail: [critical]' }, async ({ sandbox, settled }) => {
    await settled(3)
    for (const message of messages(sandbox)) expect(message.detail).not.toBeNull()
  })
})
