/** A GET or HEAD of whatever address changes no key, however often a scanner asks. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { questions } from '../../src/page/tables.ts'
import {
  askApi,
  dumpKeys,
  type PageRig,
  signIn,
  startPageRig,
  startStillPage,
  type StillPage,
  type Visitor,
} from '../support/page-rig.ts'
import { until } from '../support/until.ts'

let rig: PageRig
let page: StillPage
let visitors: Visitor[]
/** Addresses of the API below its root, and of the page. */
let ofApi: string[]
let ofPage: string[]

beforeAll(async () => {
  rig = await startPageRig()
  for (const account of ['main', 'other'] as const) {
    for (const type of ['leaked_credential', 'chat_message', 'paste', 'lookalike', 'service']) {
      rig.add(account, 2, { type, severity: type === 'leaked_credential' ? 'high' : 'medium' })
    }
    rig.add(account, 1, { type: 'ransomleak', severity: 'low' })
  }
  await rig.settled()
  page = await startStillPage(rig)
  visitors = [await signIn(page, 'mara'), await signIn(page, 'lee'), await signIn(page, 'ana')]
  const { json } = await askApi(page, '/messages?account=main&limit=2')
  const { json: found } = await askApi(page, '/events?q=main.example&limit=1&account=main')
  const message = json.messages.find(({ url }: { url: string }) => url.startsWith('/messages')).url
  const event: string = found.results[0].url
  const silence = `matchers=type%3D%22paste%22&matchers=account%3D%22main%22&severity=medium&for=2h&reason=x`
  ofApi = [
    ...questions.filter(({ path }) => !path.includes(':')).map(({ path }) => path),
    message,
    event,
    '/openapi.json',
    json.next.replace('/told', '/messages'),
    '/events?q=example&by=words',
    '/items?state=dead&since=30d',
    '/report?by=destination&account=main',
  ]
  ofPage = [
    '/',
    '/told',
    '/not-told',
    '/rules',
    '/tenants',
    '/search?q=main.example',
    message,
    event,
    `/rules?${silence}`,
    '/told?account=main&sink=soc',
    '/static/tocsin.css',
    '/static/tocsin.js',
    '/static/tocsin.svg',
    '/sign-in?next=/told',
  ]
  const isPaced = async (): Promise<boolean> => (await rig.redis.keys('*:pace:*')).length > 0
  await until('the keys that pace a second of sends have ended', async () => !(await isPaced()))
})
afterAll(async () => {
  await page?.stop()
  await rig?.stop()
})

/** How many changes Redis has made to its keys. */
async function changes(): Promise<string | undefined> {
  return /rdb_changes_since_last_save:(\d+)/.exec(await rig.redis.info('persistence'))?.[1]
}

test('a thousand GETs of every address leave each key as it was', async () => {
  const before = await dumpKeys(rig.redis)
  const made = await changes()
  const statuses: Record<number, number> = {}
  const note = (status: number): void => void (statuses[status] = (statuses[status] ?? 0) + 1)
  for (let round = 0; sum(statuses) < 1_000; round += 1) {
    const visitor = visitors[round % visitors.length]!
    const answers = ofPage.map((path) => visitor.get(path))
    for (const { status } of await Promise.all(answers)) note(status)
    const as = round % 2 === 0 ? 'robot' : 'spy'
    for (const { status } of await Promise.all(ofApi.map((path) => askApi(page, path, { as }))))
      note(status)
  }
  expect(Object.keys(statuses)).toEqual(['200'])
  expect(await changes()).toBe(made)
  expect(await dumpKeys(rig.redis)).toEqual(before)
})

test('HEAD changes nothing either, and neither do addresses of acts', async () => {
  const before = await dumpKeys(rig.redis)
  const made = await changes()
  for (const path of [...ofPage, ...ofApi.map((one) => `/api/v1${one}`)]) {
    expect({ path, status: (await visitors[0]!.head(path)).status }).toEqual({ path, status: 200 })
  }
  for (const path of [
    '/items/resend',
    '/sinks/soc/pause',
    '/silences',
    '/sign-out',
    '/feeds/brand/resume',
  ]) {
    expect((await visitors[0]!.get(`${path}?item=main/i:0:0:soc&reason=x`)).status).toBe(404)
  }
  expect(await changes()).toBe(made)
  expect(await dumpKeys(rig.redis)).toEqual(before)
  expect(page.asked).toEqual([])
})

function sum(counts: Readonly<Record<number, number>>): number {
  return Object.values(counts).reduce((total, count) => total + count, 0)
}
