/** A GET or HEAD of whatever address changes no key, however often a scanner asks. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { questions } from '../../src/page/tables.ts'
import {
  askApi,
  dumpKeys,
  type Json,
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
  for (const type of ['leaked_credential', 'chat_message', 'paste', 'lookalike', 'service']) {
    rig.add('main', 2, { type, severity: type === 'leaked_credential' ? 'high' : 'medium' })
  }
  rig.add('other', 1, { type: 'ransomleak', severity: 'low' })
  await rig.settled()
  page = await startStillPage(rig)
  visitors = [await signIn(page, 'mara'), await signIn(page, 'lee'), await signIn(page, 'ana')]
  const { json } = await askApi(page, '/messages?account=main&limit=2')
  const { json: found } = await askApi(page, '/events?q=main.example&limit=1&account=main')
  const message = json.messages.find(({ url }: Json) => url.startsWith('/messages')).url
  const event: string = found.results[0].url
  const lists = questions.flatMap(({ path }) => (path.includes(':') ? [] : [path]))
  const preview = 'matchers=account%3D%22main%22&severity=medium&for=2h&reason=x'
  const older = json.next.replace('/told', '/messages')
  ofApi = [...lists, message, event, '/openapi.json', older, '/events?q=example&by=words']
  ofPage = [
    '/',
    '/told',
    '/not-told',
    '/rules',
    '/tenants',
    '/search?q=main.example',
    message,
    event,
    `/rules?${preview}`,
    '/static/tocsin.css',
    '/static/tocsin.js',
    '/sign-in?next=/told',
  ]
  const isPaced = async (): Promise<boolean> => (await rig.redis.keys('*:pace:*')).length > 0
  await until('the keys that pace a second of sends have ended', async () => !(await isPaced()))
})
afterAll(async () => {
  await page?.stop()
  await rig?.stop()
})

/** How many changes Redis has made to its keys, and what they hold. */
async function state(): Promise<[string | undefined, Map<string, string>]> {
  const info = await rig.redis.info('persistence')
  return [/rdb_changes_since_last_save:(\d+)/.exec(info)?.[1], await dumpKeys(rig.redis)]
}

test('hundreds of GETs of every address leave each key as it was', async () => {
  const before = await state()
  const statuses = new Set<number>()
  for (let round = 0; round < 30; round += 1) {
    const visitor = visitors[round % visitors.length]!
    const as = round % 2 === 0 ? 'robot' : 'spy'
    const answers = await Promise.all([
      ...ofPage.map((path) => visitor.get(path)),
      ...ofApi.map((path) => askApi(page, path, { as })),
    ])
    for (const { status } of answers) statuses.add(status)
  }
  expect([...statuses]).toEqual([200])
  expect(await state()).toEqual(before)
})

test('HEAD changes nothing either, and neither do addresses of acts', async () => {
  const before = await state()
  for (const path of [...ofPage, ...ofApi.map((one) => `/api/v1${one}`)]) {
    expect({ path, status: (await visitors[0]!.head(path)).status }).toEqual({ path, status: 200 })
  }
  const acts = [
    '/items/resend',
    '/sinks/soc/pause',
    '/silences',
    '/sign-out',
    '/feeds/brand/resume',
  ]
  for (const path of acts) {
    const { status } = await visitors[0]!.get(`${path}?item=main/i:0:0:soc&reason=x`)
    expect(status).toBe(404)
  }
  expect(await state()).toEqual(before)
  expect(page.asked).toEqual([])
})
