/** Reports that are being made, whatever the service says of them and whenever a replica dies. */
import { callBy, callInstead } from '../../support/call.ts'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { createPoller, type Poller } from '../../../src/feeds/poller.ts'
import type { AccountLedger } from '../../../src/store/account-ledger.ts'
import { systemClock, type Clock } from '../../../src/lib/clock.ts'
import { createMetrics } from '../../../src/lib/metrics.ts'
import type { UpstreamClient } from '../../../src/upstream/client.ts'
import { UpstreamError } from '../../../src/upstream/error.ts'
import type { WireReport } from '../../../src/upstream/resources/reports.ts'
import { recordsOf, startFeedRig } from '../../support/feed-rig.ts'
import { aReportsFeed } from '../../support/feeds.ts'
import { expectConservation, redisForTests, silent } from '../../support/ledger.ts'
import { runs, seeded } from '../../support/runs.ts'

const tests = redisForTests()
const minuteMs = 60_000

/** What the service says of a request: how often `processing`, and then. */
interface Request {
  id: string
  reportId: number
  looks: number
  end: 'completed' | 'error' | 'unknown' | 'never' | 'cancelled'
}

interface Scripted {
  client: UpstreamClient
  asked: string[]
  /** The so-manieth request from here fails, or the process dies at it. */
  incidents: Map<number, 'fail' | 'die'>
}

class Killed extends Error {}

function script(requests: Request[]): Scripted {
  const asked: string[] = []
  const incidents: Scripted['incidents'] = new Map()
  const looks = new Map<string, number>()
  const client: Pick<UpstreamClient, 'call' | 'clockSkewMs'> = {
    clockSkewMs: () => undefined,
    call: callBy((_name, { request_info_id: requestId }: { request_info_id: string }) => {
      asked.push(requestId)
      const incident = incidents.get(asked.length)
      if (incident === 'die') return Promise.reject(new Killed())
      if (incident === 'fail') {
        return Promise.reject(new UpstreamError('unavailable', 'the script fails', { status: 500 }))
      }
      const request = requests.find(({ id }) => id === requestId)!
      const look = (looks.get(requestId) ?? 0) + 1
      looks.set(requestId, look)
      if (request.end === 'unknown') {
        const options = { status: 404 }
        return Promise.reject(new UpstreamError('rejected', 'no such request', options))
      }
      if (request.end === 'never' || look <= request.looks) {
        return Promise.resolve({ status: 'processing', report: null })
      }
      const report: WireReport = { id: request.reportId, title: `Report ${request.reportId}` }
      const isDone = request.end === 'completed'
      return Promise.resolve({ status: request.end, report: isDone ? report : null })
    }),
  }
  return { client: client as UpstreamClient, asked, incidents }
}

function aPoller(ledger: AccountLedger, client: UpstreamClient, clock: Clock): Poller {
  return createPoller({
    client: () => client,
    ledger: () => ledger,
    plan: () => ({
      decisions: [{ route: 'root', path: ['root'], why: [] }],
      items: [{ sink: 'soc', destination: 'soc', routes: ['root'] }],
    }),
    batchWaitMs: () => undefined,
    queue: () => Promise.resolve(),
    generation: () => 1,
    hasRoom: () => Promise.resolve(true),
    clock,
    logger: silent,
    metrics: createMetrics({ clock }),
  })
}

const request = fc.record({
  looks: fc.nat(6),
  end: fc.constantFrom<Request['end']>('completed', 'error', 'unknown', 'never', 'cancelled'),
})
const incident = fc.tuple(fc.integer({ min: 1, max: 40 }), fc.constantFrom('fail', 'die'))

const numRuns = runs({ short: 6, long: 25 })

test(
  'whatever happened, each request ends as exactly one event',
  async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(request, { minLength: 1, maxLength: 5 }),
        fc.array(incident, { maxLength: 6 }),
        fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 30, maxLength: 30 }),
        async (made, incidents, minutes) => {
          await tests.redis.flushdb()
          const requests = made.map((one, at) => ({
            ...one,
            id: `request-${at}`,
            reportId: at + 1,
          }))
          const { client, asked, incidents: due } = script(requests)
          for (const [at, what] of incidents) due.set(at, what as 'fail' | 'die')
          const ledger = await tests.ledger()
          const feed = aReportsFeed({
            requests: requests.map(({ id }) => id),
            timeoutMs: 10 * 60 * minuteMs,
          })
          let nowMs = Date.now()
          const clock: Clock = { ...systemClock, now: () => nowMs }
          const days = Array.from({ length: 26 }, () => 10 * 60)
          for (const waited of [...minutes, ...days]) {
            const signal = new AbortController().signal
            const turn = (): Promise<unknown> =>
              aPoller(ledger, client, clock).pollOnce(feed, { kind: 'feed', signal })
            const turns = await Promise.allSettled([turn(), turn()]) // two replicas at once
            const reasons = turns.flatMap((one) => (one.status === 'rejected' ? [one.reason] : []))
            expect(reasons.filter((reason) => !(reason instanceof Killed))).toEqual([])
            nowMs += waited * minuteMs
          }
          const records = await recordsOf(ledger)
          const wanted = requests.map(({ id, reportId, end }) => {
            if (end === 'completed') return `threat_flow/report/${reportId}`
            const outcome = { error: 'failed', cancelled: 'failed', unknown: 'refused' } as const
            return `threat_flow/request/${id}/${end === 'never' ? 'overdue' : outcome[end]}`
          })
          expect(records.map(({ uid }) => uid).toSorted()).toEqual(wanted.toSorted())
          for (const { items } of records) expect(items).toHaveLength(1)
          await expectConservation(ledger)
          const before = asked.length
          await aPoller(ledger, client, clock).pollOnce(feed, {
            kind: 'feed',
            signal: new AbortController().signal,
          })
          expect(asked.length).toBe(before) // nothing is asked about for ever
        },
      ),
      { numRuns, ...seeded() },
    )
  },
  60_000 * numRuns,
)

test('a report that is overdue is told so, and told again once it is made', async () => {
  await tests.redis.flushdb()
  const { client } = script([{ id: 'first', reportId: 1, looks: 6, end: 'completed' }])
  const ledger = await tests.ledger()
  const feed = aReportsFeed({ everyMs: 15_000, timeoutMs: minuteMs })
  let nowMs = Date.now()
  const clock: Clock = { ...systemClock, now: () => nowMs }
  const signal = new AbortController().signal
  for (let turn = 0; turn < 22; turn += 1) {
    await aPoller(ledger, client, clock).pollOnce(feed, { kind: 'feed', signal })
    nowMs += minuteMs
  }
  const records = await recordsOf(ledger)
  expect(records.map(({ uid }) => uid).toSorted()).toEqual([
    'threat_flow/report/1',
    'threat_flow/request/first/overdue',
  ])
})

test('a request that is unknown at three looks in a row is refused, and asked about no more', async () => {
  await tests.redis.flushdb()
  const { client, asked } = script([{ id: 'first', reportId: 1, looks: 0, end: 'unknown' }])
  const ledger = await tests.ledger()
  let nowMs = Date.now()
  const clock: Clock = { ...systemClock, now: () => nowMs }
  const signal = new AbortController().signal
  const known: string[][] = []
  for (let turn = 0; turn < 4; turn += 1) {
    await aPoller(ledger, client, clock).pollOnce(aReportsFeed(), { kind: 'feed', signal })
    known.push((await recordsOf(ledger)).map(({ uid }) => uid))
    nowMs += 4 * minuteMs
  }
  const refused = ['threat_flow/request/first/refused']
  expect(known).toEqual([[], [], refused, refused])
  expect(asked).toHaveLength(3)
})

test('an overdue report is looked at until 24 timeouts are over, and no longer', async () => {
  await tests.redis.flushdb()
  const { client, asked } = script([{ id: 'first', reportId: 1, looks: 0, end: 'never' }])
  const ledger = await tests.ledger()
  const feed = aReportsFeed({ everyMs: 15_000, timeoutMs: 10 * minuteMs })
  const startMs = Date.now()
  let nowMs = startMs
  const clock: Clock = { ...systemClock, now: () => nowMs }
  const signal = new AbortController().signal
  // the second look finds it overdue
  for (const timeouts of [0, 1, 24, 25, 26]) {
    nowMs = startMs + timeouts * feed.timeoutMs
    await aPoller(ledger, client, clock).pollOnce(feed, { kind: 'feed', signal })
  }
  expect(asked).toHaveLength(4)
})

test('what one request answers badly costs the others nothing', async () => {
  await tests.redis.flushdb()
  const { client } = script([
    { id: 'good', reportId: 1, looks: 0, end: 'completed' },
    { id: 'also-good', reportId: 2, looks: 0, end: 'completed' },
  ])
  const refusing: UpstreamClient = {
    ...client,
    call: callInstead(
      client.call,
      'reports.get-by-request',
      (request: { request_info_id: string }, _asked, ask) =>
        request.request_info_id === 'bad'
          ? Promise.reject(new UpstreamError('contract', 'not a report'))
          : ask(),
    ),
  }
  const ledger = await tests.ledger()
  const feed = aReportsFeed({ requests: ['good', 'bad', 'also-good'] })
  const signal = new AbortController().signal
  const outcome = await aPoller(ledger, refusing, systemClock).pollOnce(feed, {
    kind: 'feed',
    signal,
  })
  expect(outcome).toEqual({ status: 'caught_up' })
  expect((await recordsOf(ledger)).map(({ uid }) => uid).toSorted()).toEqual([
    'threat_flow/report/1',
    'threat_flow/report/2',
  ])
})

test('a poll fails where the service answers no request, and not where it answers another one', async () => {
  await tests.redis.flushdb()
  const { client, incidents } = script([
    { id: 'first', reportId: 1, looks: 0, end: 'completed' },
    { id: 'second', reportId: 2, looks: 0, end: 'completed' },
  ])
  const ledger = await tests.ledger()
  const feed = aReportsFeed({ requests: ['first', 'second'] })
  const signal = new AbortController().signal
  const poll = (): Promise<unknown> =>
    aPoller(ledger, client, systemClock).pollOnce(feed, { kind: 'feed', signal })
  incidents.set(1, 'fail').set(2, 'fail').set(3, 'fail')
  expect(await poll()).toMatchObject({ status: 'failed', reason: 'unavailable' })
  expect(await poll()).toEqual({ status: 'caught_up' })
  expect((await recordsOf(ledger)).map(({ uid }) => uid)).toEqual(['threat_flow/report/2'])
})

test('a report of the sandbox arrives with its summary, highlights and related activity', async () => {
  await tests.redis.flushdb()
  const rig = await startFeedRig({ tests, sandbox: { reportMs: 0 } })
  try {
    rig.sandbox.addEvents(20)
    const { id } = rig.sandbox.addReportRequest({ tenantId: 42 })
    const feed = aReportsFeed({ requests: [id], severity: 'medium' })
    await rig.toEnd(feed)
    const [record] = [...(await rig.records()).values()]
    expect(record).toMatchObject({ type: 'threat_flow_report', severity: 'medium' })
    const payload = await rig.ledger.redis.get(rig.ledger.key('pay', record!.recordId))
    const { highlights } = (JSON.parse(payload!) as { event: { highlights: object } }).event
    expect(Object.keys(highlights)).toEqual(
      expect.arrayContaining(['title', 'summary', 'highlights', 'related_activity_uids']),
    )
  } finally {
    await rig.stop()
  }
})
