import { callInstead } from '../../support/call.ts'
import type { SearchPage } from '../../../src/upstream/resources/operation.ts'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import type { PollRequest } from '../../../src/feeds/poll-run.ts'
import type { Poller } from '../../../src/feeds/poll-run.ts'
import { type RescanBudget } from '../../../src/feeds/rescan-plan.ts'
import { readAccounting } from '../../../src/store/accounts.ts'
import type { AccountLedger } from '../../../src/store/account-ledger.ts'
import { openFeed, rewindFeed } from '../../../src/store/feed-state.ts'
import { scanRecords } from '../../../src/store/records.ts'
import { systemClock, type Clock } from '../../../src/lib/clock.ts'
import { createLogger, type Logger } from '../../../src/lib/logger.ts'
import { createMetrics, type Metrics } from '../../../src/lib/metrics/metrics.ts'
import { startSandbox, type Sandbox } from '../../../src/sandbox/sandbox.ts'
import { secretFromText } from '../../../src/lib/config/secret.ts'
import type { SlotRequest } from '../../../src/upstream/rate-limits.ts'
import { scraped } from '../../support/feed-rig.ts'
import { expectConservation, redisForTests } from '../../support/ledger.ts'
import { pollerOf } from '../../support/poller.ts'
import { anAccount, startReplica, type Replica } from '../../support/replica.ts'
import { aFeed } from '../../support/feeds.ts'

const tests = redisForTests()
const search = '/firework/v4/events/identifier_groups/*'
const hourMs = 3_600_000
const never = { kind: 'feed', signal: new AbortController().signal } as const

let sandbox: Sandbox
let replica: Replica
let ledger: AccountLedger
let prefixes = 0

beforeAll(async () => {
  sandbox = await startSandbox({ enforceLimits: false })
})

afterAll(() => sandbox.close())

beforeEach(async () => {
  await sandbox.close()
  sandbox = await startSandbox({ enforceLimits: false, endMode: 'empty' })
  const account = anAccount({
    baseUrl: sandbox.url,
    apiKey: secretFromText(sandbox.apiKeys[0]!),
    organizationId: 7,
    limits: { search: 1_000, basic: 1_000 },
  })
  replica = startReplica({ redisUrl: tests.server.url, prefix: `p${(prefixes += 1)}`, account })
  ledger = await tests.ledger()
})

afterEach(() => replica.stop())

function aPoller(
  given: {
    generation?: number
    clock?: Clock
    ledger?: AccountLedger
    hasRoom?: boolean
    sinks?: number
    logger?: Logger
    metrics?: Metrics
    rescanBudget?: RescanBudget
    beforePage?: (request: { slot: SlotRequest }) => Promise<void>
  } = {},
): Poller {
  const { generation = 1, clock = systemClock, beforePage, sinks = 1 } = given
  const call = callInstead(
    replica.client.call,
    'events.search-group',
    async (_request, asked, ask) => {
      const answer = (await ask()) as SearchPage
      await beforePage?.(asked)
      const skewMs = clock.now() - systemClock.now()
      return { ...answer, requestedAtMs: answer.requestedAtMs + skewMs }
    },
  )
  const account = { client: { ...replica.client, call }, ledger: given.ledger ?? ledger }
  return pollerOf(account, {
    plan: () => ({
      decisions: [{ route: 'root', path: ['root'], why: [] }],
      items: Array.from({ length: sinks }, (_none, at) => ({
        sink: `soc${at}`,
        destination: `soc${at}`,
        routes: ['root'],
      })),
    }),
    generation: () => generation,
    hasRoom: () => Promise.resolve(given.hasRoom ?? true),
    clock,
    ...(given.logger && { logger: given.logger }),
    ...(given.metrics && { metrics: given.metrics }),
    rescanBudget: given.rescanBudget,
  })
}

async function known(): Promise<string[]> {
  const uids: string[] = []
  for await (const record of scanRecords(ledger)) uids.push(record.uid)
  return uids.toSorted()
}

function shown(): string[] {
  return sandbox
    .events()
    .map(({ uid }) => uid)
    .toSorted()
}

/** The search requests so far: lower end of the window, and whether a cursor went along. */
function searches(): { from: number; hasCursor: boolean }[] {
  return sandbox.requests
    .filter(({ path }) => path.includes('/identifier_groups/'))
    .map(({ body }) => {
      const asked = (typeof body === 'string' ? JSON.parse(body) : body) as {
        from?: string
        filters: { estimated_created_at: { gte: string } }
      }
      return {
        from: Date.parse(asked.filters.estimated_created_at.gte),
        hasCursor: asked.from !== undefined,
      }
    })
}

test('a turn counts as one poll, however many pages it reads', async () => {
  sandbox.addEvents(25)
  const metrics = createMetrics({ clock: systemClock })
  const poller = aPoller({ metrics })
  await poller.pollOnce(aFeed(), never)
  await poller.pollOnce(aFeed(), never)
  expect(await scraped(metrics, 'feed_polls_total{feed="brand"}')).toBe(2)
})

test('the wait for an API slot is a stage of its own, and no part of the answer', async () => {
  sandbox.addEvents(1)
  let nowMs = 0
  const clock = { ...systemClock, monotonic: () => nowMs }
  const metrics = createMetrics({ clock })
  const beforePage = ({ slot }: { slot: SlotRequest }): Promise<void> => {
    slot.onJoin?.()
    nowMs += 2_000
    slot.onSlot?.()
    nowMs += 500
    return Promise.resolve()
  }
  await aPoller({ metrics, clock, beforePage }).pollOnce(aFeed(), never)
  const secondsOf = (stage: string): Promise<number | undefined> =>
    scraped(metrics, `feed_poll_stage_seconds_sum{stage="${stage}"}`)
  // the second page is the end
  expect(await secondsOf('slot')).toBe(4)
  expect(await secondsOf('fetch')).toBe(1)
})

test('of a page that was taken in is said how much is new, and how much of that is urgent', async () => {
  sandbox.addEvents(3, { severity: 'critical' })
  sandbox.addEvents(1, { severity: 'high' })
  sandbox.addEvents(2, { severity: 'medium' })
  const pages: { newEvents: number; urgentEvents: number }[] = []
  const onPage: PollRequest['onPage'] = ({ newEvents, urgentEvents }) =>
    void pages.push({ newEvents, urgentEvents })
  await aPoller().pollOnce(aFeed(), { ...never, onPage })
  expect(pages[0]).toEqual({ newEvents: 6, urgentEvents: 4 })
})

test('a turn ends after fifty pages and goes on in the next one: other feeds have theirs', async () => {
  sandbox.addEvents(501)
  const poller = aPoller()
  expect(await poller.pollOnce(aFeed(), never)).toEqual({ status: 'more' })
  expect((await readAccounting(ledger)).feeds['brand']?.fetched).toBe(500)
  expect(await poller.pollOnce(aFeed(), never)).toEqual({ status: 'caught_up' })
  expect(await known()).toEqual(shown())
})

test('a rewind reads again from its floor and sends nothing twice', async () => {
  const nowMs = Date.now()
  sandbox.addEvents(3, { createdAtMs: nowMs - 48 * hourMs })
  sandbox.addEvents(3)
  await aPoller().pollOnce(aFeed(), never)
  expect(await known()).toHaveLength(3)
  await rewindFeed(ledger, 'brand', nowMs - 72 * hourMs)
  await aPoller().pollOnce(aFeed(), never)
  expect(await known()).toHaveLength(3)
  await aPoller().pollOnce(aFeed(), { ...never, kind: 'rescan' })
  expect(await known()).toEqual(shown())
  const accounting = await expectConservation(ledger)
  expect(accounting.feeds['brand']).toMatchObject({ new: 6, late: 0 })
  expect((await openFeed(ledger, 'brand', 0)).scan?.reason).toBe('rewound')
})

test('a rewind during a request wins over the page that comes back', async () => {
  sandbox.addEvents(3)
  let isRewound = false
  const beforePage = async (): Promise<void> => {
    if (!isRewound) await rewindFeed(ledger, 'brand', Date.now() - hourMs)
    isRewound = true
  }
  await aPoller({ beforePage }).pollOnce(aFeed(), never)
  expect((await openFeed(ledger, 'brand', 0)).scan?.reason).toBe('rewound')
  expect(await known()).toEqual(shown())
})

test('a page that is broken off between two commits is read again, and counts once it is whole', async () => {
  sandbox.addEvents(10)
  let commits = 0
  const interrupted: AccountLedger = {
    ...ledger,
    async runJson<T>(script: string, ...args: (string | number)[]) {
      const answer = await ledger.runJson<T>(script, ...args)
      if (script === 'commit-page') commits += 1
      if (commits === 1) await rewindFeed(ledger, 'brand', Date.now() - hourMs)
      return answer
    },
  }
  const newEvents: number[] = []
  const onPage: PollRequest['onPage'] = (page) => void newEvents.push(page.newEvents)
  const poller = aPoller({ ledger: interrupted, sinks: 60 })
  expect(await poller.pollOnce(aFeed(), { ...never, onPage })).toEqual({ status: 'caught_up' })
  expect(newEvents[0]).toBe(2) // of ten, eight were committed with the page that was broken off
  expect(await known()).toEqual(shown())
  expect((await expectConservation(ledger)).feeds['brand']).toMatchObject({ new: 10 })
})

test('an older configuration leaves a feed that a newer one polls alone, without a request', async () => {
  sandbox.addEvents(3)
  const newer = aFeed({ filters: { severity: ['high', 'low', 'medium', 'critical', 'info'] } })
  await aPoller({ generation: 2 }).pollOnce(newer, never)
  const { scan: walk, sequence } = await openFeed(ledger, 'brand', 0)
  const before = searches().length
  expect(await aPoller({ generation: 1 }).pollOnce(aFeed(), never)).toEqual({
    status: 'superseded',
  })
  expect(searches()).toHaveLength(before)
  expect(await openFeed(ledger, 'brand', 0)).toMatchObject({ scan: walk, sequence })
  expect(await aPoller({ generation: 1 }).pollOnce(newer, never)).toEqual({ status: 'caught_up' })
  expect(await aPoller({ generation: 3 }).pollOnce(aFeed(), never)).toEqual({ status: 'caught_up' })
})

test('the rescan of a configuration that was taken back keeps no feed from being read', async () => {
  sandbox.addEvents(3)
  const rescan = { everyMs: 1, backMs: 168 * hourMs }
  const [feed, changed] = [aFeed({ rescan }), aFeed({ rescan, filters: { severity: ['high'] } })]
  const rescanned = { ...never, kind: 'rescan' } as const
  const caughtUp = { status: 'caught_up' }
  expect(await aPoller({ generation: 2 }).pollOnce(changed, never)).toEqual(caughtUp)
  expect(await aPoller({ generation: 2 }).pollOnce(changed, rescanned)).toEqual(caughtUp)
  expect(await aPoller({ generation: 3 }).pollOnce(feed, never)).toEqual(caughtUp)
  expect(await aPoller({ generation: 1 }).pollOnce(feed, rescanned)).toEqual({
    status: 'superseded',
  })
  expect(await aPoller({ generation: 1 }).pollOnce(feed, never)).toEqual(caughtUp)
})

test.each(['unavailable', 'contract'] as const)(
  'a turn that fails (%s) in the middle keeps what it read and the cursor, and goes on there',
  async (reason) => {
    sandbox.addEvents(35)
    const faults = {
      unavailable: { effect: 'status', status: 503 },
      contract: { effect: 'wrong-shape' },
    } as const
    let pages = 0
    const beforePage = async (): Promise<void> => {
      pages += 1
      if (pages === 2) sandbox.faults.add({ on: search, ...faults[reason] })
      await Promise.resolve()
    }
    const failed = await aPoller({ beforePage }).pollOnce(aFeed(), never)
    expect(failed).toMatchObject({ status: 'failed', reason })
    const { scan: walk } = await openFeed(ledger, 'brand', 0)
    expect(walk?.cursor).not.toBeNull()
    expect((await readAccounting(ledger)).feeds['brand']?.new).toBe(20)
    sandbox.faults.clear()
    expect(await aPoller().pollOnce(aFeed(), never)).toEqual({ status: 'caught_up' })
    expect(await known()).toEqual(shown())
  },
)

test('what is in the way of a feed is kept from its first failure until a page is read, by tail and rescan', async () => {
  sandbox.addEvents(3)
  const poller = aPoller()
  const feed = aFeed({ rescan: { everyMs: 1, backMs: 168 * hourMs } })
  const troubles = async () => {
    const { trouble, rescanTrouble } = await openFeed(ledger, 'brand', 0)
    return [trouble, rescanTrouble]
  }
  await poller.pollOnce(feed, never)
  expect(await troubles()).toEqual([undefined, undefined])
  const mend = sandbox.faults.add({ on: search, effect: 'status', status: 503 })
  await poller.pollOnce(feed, { ...never, waitAfter: () => 5_000 })
  const [first] = await troubles()
  expect(first).toMatchObject({ reason: 'unavailable', count: 1, lastMs: first!.sinceMs })
  expect(first!.answer).toContain('the service failed (503)')
  expect(first!.nextTryMs! - first!.lastMs).toBe(5_000)
  mend()
  const mendSecond = sandbox.faults.add({ on: search, effect: 'wrong-shape' })
  await poller.pollOnce(feed, never)
  await poller.pollOnce(feed, { ...never, kind: 'rescan' })
  expect(await troubles()).toMatchObject([
    { reason: 'contract', count: 2, sinceMs: first!.sinceMs },
    { reason: 'contract', count: 1 },
  ])
  expect((await troubles())[0]).not.toHaveProperty('nextTryMs')
  mendSecond()
  await poller.pollOnce(feed, never)
  expect(await troubles()).toMatchObject([undefined, { count: 1 }])
  await poller.pollOnce(feed, { ...never, kind: 'rescan' })
  expect(await troubles()).toEqual([undefined, undefined])
})

test('what a refused key is called stays in the way of a feed while the account pauses, counted once', async () => {
  const trouble = async () => (await openFeed(ledger, 'brand', 0)).trouble
  const mend = sandbox.faults.add({ on: '/tokens/generate', effect: 'status', status: 401 })
  const metrics = createMetrics({ clock: systemClock })
  const poller = aPoller({ metrics })
  await poller.pollOnce(aFeed(), { ...never, waitAfter: () => 5_000 })
  const first = await trouble()
  expect(first).toMatchObject({ reason: 'auth', count: 1 })
  expect(first!.answer).toContain('(401)')
  expect(first).not.toHaveProperty('nextTryMs')
  expect(await poller.pollOnce(aFeed(), never)).toMatchObject({ status: 'failed', reason: 'auth' })
  expect(await trouble()).toEqual(first)
  expect(await scraped(metrics, 'feed_polls_failed_total{feed="brand",reason="auth"}')).toBe(1)
  mend()
})

test('a bug that breaks a poll off is in the way of its feed, too', async () => {
  const beforePage = () => Promise.reject(new TypeError('x is not a function'))
  await expect(aPoller({ beforePage }).pollOnce(aFeed(), never)).rejects.toThrow('not a function')
  const { trouble } = await openFeed(ledger, 'brand', 0)
  expect(trouble).toMatchObject({ reason: 'internal', answer: 'x is not a function', count: 1 })
})

test('a failure is in the log with what took how long, though Redis cannot keep it', async () => {
  const away: AccountLedger = {
    ...ledger,
    run: (script, ...args) =>
      script === 'note-trouble'
        ? Promise.reject(new Error('Redis is away'))
        : ledger.run(script, ...args),
  }
  const lines: string[] = []
  const logger = createLogger({ destination: { write: (line: string) => void lines.push(line) } })
  sandbox.faults.add({ on: search, effect: 'status', status: 503 })
  const poller = aPoller({ ledger: away, logger })
  expect(await poller.pollOnce(aFeed(), never)).toMatchObject({ status: 'failed' })
  const line = lines.find((one) => one.includes('poll failed')) ?? '{}'
  expect(JSON.parse(line)).toMatchObject({ stages: { fetch: expect.any(Number) as number } })
})

test('while the ledger may not grow nothing is asked for; it stays at the service', async () => {
  sandbox.addEvents(3)
  expect(await aPoller({ hasRoom: false }).pollOnce(aFeed(), never)).toEqual({ status: 'full' })
  expect(searches()).toEqual([])
  expect(await aPoller().pollOnce(aFeed(), never)).toEqual({ status: 'caught_up' })
  expect(await known()).toEqual(shown())
})
