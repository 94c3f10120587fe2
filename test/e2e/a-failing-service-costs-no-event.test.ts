import { expect, test, vi } from 'vitest'
import type { Sandbox } from '../../src/sandbox/sandbox.ts'
import type { FaultInput, SandboxRequest } from '../../src/sandbox/server.ts'
import { expectConservation } from '../support/ledger.ts'
import { nothingPending, shortTimings, until } from '../support/rehearsal.ts'
import { startRig } from '../support/rig.ts'

// Every scenario waits about half of its time.
vi.setConfig({ maxConcurrency: 4, testTimeout: 120_000 })

const searches = '/firework/v4/events/identifier_groups/*'
const details = '/firework/v4/events/'
const { pollBackoffMs, requestTimeoutMs, detailWaitMs } = shortTimings

interface Stage {
  sandbox: Sandbox
  /** Value of a series; 0 where there is none. */
  metric: (series: string) => Promise<number>
  /** Waits until so many different events arrived and nothing is on its way. */
  settled: (events: number) => Promise<void>
}

interface Staging {
  /** Further keys of the feed. */
  feed?: string
  /** Before the replica starts. */
  before: (sandbox: Sandbox) => void
}

/** A sandbox and a replica of its own; afterwards: each event once, nothing unaccounted, no rule broken. */
async function rehearse(
  { feed = '', before }: Staging,
  scenario: (stage: Stage) => Promise<void>,
): Promise<void> {
  await using rig = await startRig()
  const { sandbox, arrived } = rig
  before(sandbox)
  const { app, ledger, metrics } = await rig.start(rig.yaml({ feeds: { brand: feed } }))
  await scenario({
    sandbox,
    async metric(series) {
      const line = (await metrics())
        .split('\n')
        .find((text) => text.startsWith(`tocsin_${series} `))
      return Number(line?.split(' ').at(-1) ?? 0)
    },
    settled: (events) =>
      until(`${events} events delivered`, () => new Set(arrived()).size === events),
  })
  await until('all is settled', () => nothingPending(app))
  expect(arrived().toSorted()).toEqual([...new Set(arrived())].toSorted())
  await expectConservation(ledger)
  expect(sandbox.violations()).toEqual({ rate: 0, changedScans: 0 })
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

function failedPolls(reason: string): string {
  return `feed_polls_failed_total{feed="brand",reason="${reason}"}`
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

/** One of each reason; which answer has which is a matter of the transport and its test. */
const failures: Failure[] = [
  {
    name: '503 with Retry-After',
    fault: { ...status, status: 503, headers: { 'retry-after': '2' } },
    reason: 'unavailable',
    waitsMs: 2_000,
  },
  {
    name: 'a hang',
    fault: { ...broken, effect: 'hang' },
    reason: 'timeout',
    waitsMs: requestTimeoutMs + pollBackoffMs,
    // The time-out counts from the sending, which a busy machine may do long before the arrival.
    leastMs: requestTimeoutMs,
  },
  { name: 'invalid JSON', fault: { ...broken, effect: 'invalid-json' }, reason: 'contract' },
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
  { name: 'a hang', fault: { on: details, effect: 'hang' }, afterMs: detailWaitMs },
]

test.concurrent.each(noDetails)(
  'full event: $name delays its own messages at most, and they say so',
  async ({ fault, data, afterMs = 0 }) => {
    const before = (sandbox: Sandbox): void => {
      if (fault) sandbox.faults.add(fault)
      sandbox.addEvents(12, { severity: 'critical', ...(data === null && { data }) })
      sandbox.addEvents(5, { severity: 'low' })
    }
    await rehearse({ before, feed: 'detail: [critical]' }, async ({ sandbox, settled }) => {
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
