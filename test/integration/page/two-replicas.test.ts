/** One page on several replicas: whichever is asked, it knows who is signed in and what was done. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { readActs } from '../../../src/store/acts.ts'
import { readRecord } from '../../../src/store/records.ts'
import {
  askApi,
  fieldsOf,
  type PageRig,
  signIn,
  startPageRig,
  type Visitor,
} from '../../support/page-rig.ts'

let rig: PageRig
let one: { port: number }
let other: { port: number }
let mara: Visitor

beforeAll(async () => {
  rig = await startPageRig({ replicas: 2 })
  const [first, second] = rig.ports.map((port) => ({ port }))
  one = first!
  other = second!
  mara = await signIn(one, 'mara')
})
afterAll(() => rig?.stop())

/** The address of a dead letter, and whether it is still one. */
async function aDeadLetter(): Promise<{ event: string; replays: () => Promise<number> }> {
  const [added] = rig.add('main', 1, { type: 'paste', severity: 'medium' })
  await rig.settled()
  const id = rig.ledger('main').fingerprints.recordId(added!.uid)
  const item = async () => (await readRecord(rig.ledger('main'), id))!.items[0]!
  return { event: `/events/main/${id}`, replays: async () => (await item()).replays }
}

test('who has signed in at one reads the same at the other', async () => {
  const letter = await aDeadLetter()
  for (const path of ['/told', letter.event]) {
    const [here, there] = [await mara.get(path, one), await mara.get(path, other)]
    expect([here.status, there.status]).toEqual([200, 200])
    expect(plain(there.body)).toBe(plain(here.body))
  }
})

function plain(html: string): string {
  return html
    .replaceAll(/name="form_token" value="[^"]*"/g, '')
    .replaceAll(/<footer>.*?<\/footer>/gs, '')
}

test('a form of one is sent to the other, and is used up at both', async () => {
  const letter = await aDeadLetter()
  const { body } = await mara.get(letter.event, one)
  const fields = fieldsOf(body, '/items/resend')
  const answers = await Promise.all(
    [other, one, other, one].map((to) => mara.post('/items/resend', fields, to)),
  )
  const statuses = answers.map(({ status }) => status)
  expect(statuses.toSorted((a, b) => a - b)).toEqual([200, 403, 403, 403])
  await rig.settled()
  expect(await letter.replays()).toBe(1)
  expect((await readActs(rig, 1))[0]).toMatchObject({ by: 'mara', outcome: 'done' })
})

test('what is done at one shows at the other', async () => {
  await askApi(one, '/sinks/soc/pause', { body: { reason: 'both know' } })
  const { json } = await askApi(other, '/sinks')
  const soc = json.find(({ sink }: { sink: string }) => sink === 'soc')
  expect(soc.paused.reason).toBe('both know (robot)')
  await mara.submit('/', '/sinks/soc/resume', [], other)
  expect((await mara.get('/rules', one)).body).toContain('resume sink soc')
})

test('who signs out at one is out at both', async () => {
  const lee = await signIn(other, 'lee')
  expect((await lee.get('/told', one)).status).toBe(200)
  await lee.submit('/told', '/sign-out', [], one)
  for (const to of [one, other]) {
    const { status, headers } = await lee.get('/told', to)
    expect([status, headers.location]).toEqual([303, '/sign-in?next=%2Ftold'])
  }
})
