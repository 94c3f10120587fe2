import { afterAll, beforeAll, expect, test } from 'vitest'
import type { App } from '../../src/daemon/daemon.ts'
import type { SandboxEvent } from '../../src/sandbox/history/history.ts'
import { startSandbox, type Sandbox } from '../../src/sandbox/sandbox.ts'
import { recordsOf } from '../support/feed-rig.ts'
import { expectConservation } from '../support/ledger.ts'
import { startRedis, type TestRedis } from '../support/redis.ts'
import { aReplica, nothingPending, until } from '../support/rehearsal.ts'

const hourMs = 3_600_000
const limits = { search: 20, basic: 20 }

let redis: TestRedis
let sandbox: Sandbox
let replica: App
let url: string

beforeAll(async () => {
  redis = await startRedis()
  sandbox = await startSandbox({
    organizations: [{ id: 7, limits, keys: [{ key: 'fw_one', tenants: [42] }] }],
    emptyPages: 0.1,
    shortPages: 0.1,
  })
  // `far` reaches back behind everything that arrives late, `near` as far as a feed usually does
  const feeds = `
  far: {type: events, identifier_group: 1042, detail: [], every: 5s, start: 4d, sweep: {every: 10s, back: 7d}}
  near: {type: events, identifier_group: 1043, detail: [], every: 5s, start: 24h, sweep: {every: 10s, back: 7d}}`
  replica = aReplica(`
redis: {url: '${redis.url}'}
http: {port: 0}
accounts: {main: {base_url: '${sandbox.url}', link_hosts: [app.example.com], api_key: fw_one, limits: {search: 20, basic: 20}}}
feeds:${feeds}
sinks: {siem: {type: webhook, url: '${sandbox.webhookUrl}', secret: '${sandbox.webhookSecret}', allow_private: true}}
route: {sinks: [siem]}
`)
})

afterAll(async () => {
  await replica?.stop()
  await sandbox?.close()
  await redis?.stop()
})

function add(group: number, count: number, ageMs = 0): SandboxEvent[] {
  return sandbox.addEvents(count, { groupIds: [group], createdAtMs: Date.now() - ageMs })
}

function delivered(): string[] {
  return sandbox.received.webhook.flatMap(({ uids }) => uids)
}

async function allDelivered(events: readonly SandboxEvent[]): Promise<void> {
  const isThere = (): boolean => {
    const there = new Set(delivered())
    return events.every(({ uid }) => there.has(uid))
  }
  await until(`${events.length} events delivered`, isThere)
}

async function metric(series: string): Promise<number> {
  const text = await (await fetch(`${url}/metrics`)).text()
  const line = text.split('\n').find((one) => one.startsWith(`tocsin_${series} `))
  return Number(line?.split(' ').at(-1) ?? 0)
}

/** When each sweep of a group's whole window began, wall clock ms. */
function sweepsOf(group: number): number[] {
  return sandbox.requests
    .filter(({ path, body }) => {
      const { from, filters } = (body ?? {}) as {
        from?: string
        filters?: { estimated_created_at?: { gte?: string; lte?: string } }
      }
      const { gte = '', lte = '' } = filters?.estimated_created_at ?? {}
      const isWhole = Date.parse(lte) - Date.parse(gte) >= 168 * hourMs
      return from === undefined && isWhole && path.includes(`/${group}/`)
    })
    .map(({ atMs }) => atMs)
}

test('a twentieth arrives up to three days late: the next sweep finds it, and nothing that was visible before the start', async () => {
  const tooOld = add(1043, 2, 25 * hourMs)
  // more than a page each: of a feed with one page the tail reads all of it again and again
  const onTime = [...add(1042, 15), ...add(1043, 15)]
  url = (await replica.start()).url
  await allDelivered(onTime)
  const late: SandboxEvent[] = []
  for (const ages of [
    [0.2, 71],
    [5, 30],
    [1, 50],
  ]) {
    onTime.push(...add(1042, 38))
    for (const hours of ages) late.push(...add(1042, 1, hours * hourMs))
    await allDelivered(onTime)
  }
  await until('what stood below the start was read', () => sweepsOf(1043).length >= 2)
  // the second was created before the start, and appears only now
  const near = [...add(1043, 1, 20 * hourMs), ...add(1043, 1, 30 * hourMs)]
  const wanted = [...onTime, ...late, ...near]
  await allDelivered(wanted)
  const sweeps = sweepsOf(1043).length
  await until('the younger was swept twice more', () => sweepsOf(1043).length >= sweeps + 2)
  await until('all is settled', () => nothingPending(replica))

  expect(delivered().toSorted()).toEqual(wanted.map(({ uid }) => uid).toSorted())
  expect(await metric('sweep_late_events_total{feed="far"}')).toBe(late.length)
  expect(await metric('sweep_late_events_total{feed="near"}')).toBe(near.length)
  await expectFoundByTheNext(late)
  expect(tooOld.filter(({ uid }) => delivered().includes(uid))).toEqual([])
  const { feeds } = await expectConservation(replica.ledgers[0]!)
  expect(feeds['far']).toMatchObject({ new: 15 + 3 * 38 + late.length, late: late.length })
  expect(sandbox.violations()).toEqual({ rate: 0, changedScans: 0 })
})

/** Each was taken in before the sweep after the first one that began behind its arrival. */
async function expectFoundByTheNext(late: readonly SandboxEvent[]): Promise<void> {
  const records = await recordsOf(replica.ledgers[0]!)
  const begins = sweepsOf(1042)
  for (const { uid, arrivedAtMs } of late) {
    const record = records.find((one) => one.uid === uid)!
    const [, second = Infinity] = begins.filter((beginMs) => beginMs > arrivedAtMs)
    expect(record.firstSeenMs).toBeLessThan(second)
  }
}
