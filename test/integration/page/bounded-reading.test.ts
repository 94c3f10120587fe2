/** What each view takes of Redis and how large it is, over a ledger as the bench writes it, but a small one. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { measureView, openPage, openVisit, pageConfig, visitPage } from '../../bench/page.ts'
import { type Known, seedLedger } from '../../bench/page-ledger.ts'
import { type PageView, pageViews } from '../../bench/page-views.ts'
import { redisForTests } from '../../support/ledger.ts'

const records = 2_000

const dayMs = 86_400_000

const rig = redisForTests()
let page: Awaited<ReturnType<typeof openPage>>
let known: Known
let views: PageView[]

beforeAll(async () => {
  const config = pageConfig('page')
  ;({ known } = await seedLedger(rig.redis, config, records))
  page = await openPage(rig.redis, config)
  views = pageViews(await openVisit(page.url, config, known))
})

afterAll(() => page?.stop())

// oxlint-disable-next-line typescript/no-explicit-any -- answers of several questions
async function ask(path: string): Promise<any> {
  return JSON.parse(await visitPage(page.url, `/api/v1${path}`))
}

describe('of a view', () => {
  /** 90 days are a command each, and a page of a few thousand records and endings some dozens. */
  const most = { commands: 200, bytes: 2_200_000 }

  test('neither bytes nor what is read of Redis grow with the ledger', async () => {
    const large: object[] = []
    for (const view of views) {
      const cost = await measureView(rig.redis, page.url, { view, requests: 3 })
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
      const stats = await rig.redis.info('commandstats')
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
  expect(Date.parse(answer.searched_back_to)).toBeLessThan(Date.now() - 60 * dayMs)
})

test('a message of many events shows the worst hundred, and sends no others again', async () => {
  const size = Math.max(...known.messages.keys())
  expect(size).toBeGreaterThan(100)
  const { id, atMs } = known.messages.get(size)![0]!
  const { total, events, items } = await ask(`/messages/${id}?at=${atMs}`)
  expect([total, events.length, items.length]).toEqual([size, 100, 100])
  const body = await visitPage(page.url, `/messages/${id}?at=${atMs}`)
  expect(body).toContain('Send the worst 100 of')
})
