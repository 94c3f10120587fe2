/** What each view takes of Redis and how large it is, over a ledger as the bench writes it, but a small one. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Config } from '../../../src/config/config.ts'
import { createKeys } from '../../../src/redis/keys.ts'
import { redisNow } from '../../../src/redis/scripts.ts'
import { type AccountLedger, openExistingLedger } from '../../../src/store/account-ledger.ts'
import { readAccounting, readHoldings } from '../../../src/store/accounts.ts'
import { measureView, openVisit, seedPage, visitPage } from '../../bench/page.ts'
import type { Known } from '../../bench/page-ledger.ts'
import {
  pageConfig,
  type PageServer,
  readPageConfig,
  startPageServer,
} from '../../bench/page-server.ts'
import { type PageView, pageViews } from '../../bench/page-views.ts'
import { RecordWriter } from '../../bench/record-writer.ts'
import { connectTo, expectNothingStranded } from '../../support/ledger.ts'
import { startRedis, type TestRedis } from '../../support/redis.ts'

const records = 2_000
const hourMs = 3_600_000

let server: TestRedis
let page: PageServer
let config: Config
let known: Known
let ledger: AccountLedger
let views: PageView[]

beforeAll(async () => {
  server = await startRedis()
  const upstream = {
    url: 'http://127.0.0.1:9',
    smtpUrl: 'smtp://127.0.0.1:9',
    webhookSecret: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw',
  }
  const written = pageConfig({ accounts: 1, upstream, redis: { url: server.url, prefix: 'page' } })
  config = readPageConfig(written)
  const redis = connectTo(server.url)
  known = await seedPage(redis, config, records)
  redis.disconnect()
  page = await startPageServer(written)
  const keys = createKeys('page')
  const { ledger: kept } = config
  ledger = (await openExistingLedger({ redis: page.redis, keys, account: 'main', config: kept }))!
  views = pageViews(await openVisit(page.url, config, known))
})

afterAll(async () => {
  await page?.stop()
  await server?.stop()
})

// oxlint-disable-next-line typescript/no-explicit-any -- answers of several questions
async function ask(path: string): Promise<any> {
  const { status, body } = await visitPage(page.url, `/api/v1${path}`)
  expect(status).toBe(200)
  return JSON.parse(body)
}

test('the ledger of the bench is one that the scripts could have written', async () => {
  await expect(expectNothingStranded(ledger)).resolves.toBeUndefined()
})

test('its sums are those of the counters', async () => {
  const { sinks } = await readAccounting(ledger)
  const sumOf = (outcome: 'delivered' | 'suppressed' | 'diverted' | 'dead'): number =>
    Object.values(sinks).reduce((sum, counts) => sum + counts[outcome], 0)
  const { total } = await ask('/report?since=90d')
  expect(total).toMatchObject({
    seen: records,
    told: sumOf('delivered'),
    suppressed: sumOf('suppressed'),
    diverted: sumOf('diverted'),
    dead: sumOf('dead'),
  })
  expect((await ask('/messages?since=90d')).totals.events).toBe(sumOf('delivered'))
})

describe('of a view', () => {
  /** 90 days are a command each, and a page of a few thousand records and endings some dozens. */
  const most = { commands: 200, bytes: 2_200_000 }

  test('neither bytes nor what is read of Redis grow with the ledger', async () => {
    const call = (): Promise<null> => Promise.resolve(null)
    const large: object[] = []
    for (const view of views) {
      const cost = await measureView(page.redis, { url: page.url, call }, { view, requests: 3 })
      const bytes = Math.max(...cost.bytes)
      const isSmall = view.isFile || bytes <= 60_000
      const { commands, bytes: read } = cost.redis
      if (!isSmall || commands > most.commands || read > most.bytes)
        large.push({ view: view.name, bytes, commands, read })
    }
    expect(large).toEqual([])
  })

  test('the counts of a day are read once', async () => {
    const read = async (): Promise<number> => {
      const stats = await page.redis.info('commandstats')
      return Number(/^cmdstat_hgetall:calls=(\d+)/m.exec(stats)?.[1])
    }
    await ask('/messages?since=90d')
    const before = await read()
    await ask('/messages?since=90d')
    expect((await read()) - before).toBe(91)
  })
})

test('a search by words has each event on one page, and no page more than its limit', async () => {
  const uids: string[] = []
  for (let next: string | null = '/search?by=words&q=example&limit=200'; next !== null;) {
    const answer = await ask(next.replace('/search', '/events'))
    const found = answer.results as { uid: string }[]
    expect(found.length).toBeLessThanOrEqual(200)
    uids.push(...found.map(({ uid }) => uid))
    next = answer.next as string | null
  }
  expect(uids.length).toBe(records)
  expect(new Set(uids).size).toBe(records)
})

test('a search that finds nothing ends before the ledger does, and says how far it looked', async () => {
  const answer = await ask('/events?by=words&q=no+such+words+anywhere')
  expect(answer.results).toEqual([])
  expect(answer.next).toMatch(/cursor=words\.\d+/)
  expect(Date.parse(answer.searched_back_to)).toBeLessThan(Date.now() - 60 * 24 * hourMs)
})

test('a message of many events shows the worst hundred, and sends no others again', async () => {
  const size = Math.max(...known.messages.keys())
  expect(size).toBeGreaterThan(100)
  const { id, atMs } = known.messages.get(size)![0]!
  const { total, events, items } = await ask(`/messages/${id}?at=${atMs}`)
  expect([total, events.length, items.length]).toEqual([size, 100, 100])
  const { body } = await visitPage(page.url, `/messages/${id}?at=${atMs}`)
  expect(body).toContain('Send the worst 100 of')
})

test('of thousands that wait for long the first thousand are looked into', async () => {
  const { pending: before } = await readHoldings(ledger)
  const nowMs = await redisNow(ledger)
  const writer = new RecordWriter(ledger)
  for (let i = 0; i < 1_200; i += 1) {
    const recordId = ledger.fingerprints.recordId(`a/b/${i}`)
    const atMs = nowMs - 2 * 24 * hourMs - i
    const item = {
      d: 'siem',
      k: 'siem',
      q: ['root'],
      sv: 'low',
      g: 1,
      st: 'retrying',
      n: 3,
      c: atMs,
    }
    const about = { title: 'one', created: atMs, matched: atMs, fetched: atMs }
    const stored = { u: `a/b/${i}`, ty: 'bot', sv: 'low', rk: 2, t: atMs, f: [], about, i: [item] }
    writer.writeRecord({ recordId, atMs, stored: stored as never })
    writer.addTo(['due', 'siem'], nowMs + hourMs, `i:${recordId}:0:siem`)
  }
  await writer.end(nowMs)
  await ledger.redis.hincrby(ledger.key('counters'), 's|siem|created', 1_200)
  await ledger.redis.hincrby(ledger.key('counters'), 's|siem|pending|retrying', 1_200)
  expect((await readHoldings(ledger)).pending['retrying']).toBe(before['retrying']! + 1_200)
  const { findings } = await ask('/status')
  const said = (findings as { subject: string; detail: string }[]).map(
    ({ subject, detail }) => `${subject}: ${detail}`,
  )
  expect(said).toContainEqual(expect.stringMatching(/^siem: at least \d+ items on the way/))
  const call = (): Promise<null> => Promise.resolve(null)
  const view = { name: 'now', draw: () => '/' }
  const { redis } = await measureView(page.redis, { url: page.url, call }, { view, requests: 3 })
  expect(redis.bytes).toBeLessThan(1_500_000)
})
