/** Each act of the page and its API: what it does, that it is done once, and that its record has the name. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { createCircuit } from '../../../src/delivery/circuit.ts'
import { readActs } from '../../../src/store/history/acts.ts'
import { peekFeed } from '../../../src/store/feed-state.ts'
import { type Item, readRecord } from '../../../src/store/records.ts'
import { pastThisMillisecond, redisMs } from '../../support/ledger.ts'
import {
  askApi,
  type Fields,
  type PageRig,
  signIn,
  startPageRig,
  type Visitor,
} from '../../support/page-rig.ts'
import { until } from '../../support/until.ts'

let rig: PageRig
let mara: Visitor
let beganMs: number

beforeAll(async () => {
  rig = await startPageRig()
  mara = await signIn(rig, 'mara')
})
afterAll(() => rig?.stop())
beforeEach(async () => {
  beganMs = await redisMs(rig.redis)
  await pastThisMillisecond(rig.redis)
})

/** What was recorded since the test began, the newest first. */
async function actsSince(): Promise<string[]> {
  const acts = await readActs(rig, 50)
  return acts
    .filter(({ atMs }) => atMs > beganMs)
    .map(({ by, act, account, outcome }) => [by, act, account, outcome].join(', '))
}

/** A paste, which the sink stray refuses, once it is settled. */
async function aPaste(): Promise<{ id: string; item: Item }> {
  const [added] = rig.add('main', 1, { type: 'paste', severity: 'medium' })
  await rig.settled()
  const id = rig.ledger('main').fingerprints.recordId(added!.uid)
  return { id, item: (await readRecord(rig.ledger('main'), id))!.items[0]! }
}

/** The address of its event and of its item. */
async function aDeadLetter(): Promise<{
  event: string
  item: string
  state: () => Promise<string>
}> {
  const { id } = await aPaste()
  const state = async () => (await readRecord(rig.ledger('main'), id))!.items[0]!.state
  expect(await state()).toBe('dead')
  return { event: `/events/main/${id}`, item: `main/i:${id}:0:stray`, state }
}

const sinkNow = async (name: string) =>
  createCircuit(rig.redis, rig.keys).read(name, await redisMs(rig.redis))

const sentTo = (path: string): number =>
  rig.sandbox.requests.filter((one) => one.path === `/hooks/${path}`).length

describe('of items', () => {
  test('a dead letter is sent again, once, by the form of its event', async () => {
    const letter = await aDeadLetter()
    const sent = sentTo('stray')
    const done = await mara.submit(letter.event, '/items/resend')
    expect([done.status, done.body]).toEqual([200, expect.stringContaining('1 item queued again')])
    await until('it is sent again', () => sentTo('stray') > sent)
    await rig.settled()
    expect([sentTo('stray') - sent, await letter.state()]).toEqual([1, 'dead'])
    expect(await actsSince()).toEqual(['mara, /items/resend, , done'])
    const { body } = await mara.get('/rules')
    expect(body).toContain(`<bdi>${letter.item}</bdi>`)
  })

  test('what is sent again was told when it was delivered first, and its event says each end', async () => {
    const [added] = rig.add('main', 1, { type: 'botnet', severity: 'medium' })
    await rig.settled()
    const id = rig.ledger('main').fingerprints.recordId(added!.uid)
    const event = `/events/main/${id}`
    const told = async () => (await askApi(rig, event)).json.destinations[0]
    const first = await told()
    expect(first).toMatchObject({ state: 'delivered', past: [], delay_s: expect.any(Number) })
    for (let times = 1; times <= 7; times++) {
      await mara.submit(event, '/items/resend')
      await rig.settled()
    }
    const again = await told()
    expect(again).toMatchObject({ state: 'delivered', delay_s: null })
    expect(again.past).toHaveLength(5)
    expect(again.past[0]).toEqual({ state: 'delivered', at: first.since, delay_s: first.delay_s })
    expect(again.past[1].delay_s).toBeNull()
    const { json } = await askApi(rig, event)
    const steps = json.timeline.map(({ what }: { what: string }) => what)
    expect(steps.filter((what: string) => what === 'sent again')).toHaveLength(5)
    expect(JSON.stringify(json.timeline)).toContain('resent by mara')
    const { body } = await mara.get(event)
    expect(body).toContain('before it was sent again: delivered')
    await actsSince()
  })

  test('chosen ones of Not told are given up; again there is nothing to do', async () => {
    const letters = [await aDeadLetter(), await aDeadLetter()]
    const chosen = letters.map(({ item }): [string, string] => ['item', item])
    const done = await mara.submit('/not-told?state=dead', '/items/discard', chosen)
    expect(done.body).toContain('2 items discarded')
    for (const letter of letters) expect(await letter.state()).toBe('discarded')
    const body = { item: letters[0]!.item }
    const again = await askApi(rig, '/items/discard', { body })
    expect(again.json).toEqual({
      done: false,
      said: ['0 items discarded.', '1 item left: not possible in the state it is in.'],
      url: letters[0]!.event,
    })
    expect(await actsSince()).toEqual([
      'robot, /items/discard, , nothing to do',
      'mara, /items/discard, , done',
    ])
  })
})

describe('of sinks', () => {
  test('one is paused with a reason and a name, and resumed', async () => {
    const paused = await askApi(rig, '/sinks/soc/pause', { body: { reason: 'they move house' } })
    expect(paused.json.done).toBe(true)
    const { paused: why } = await sinkNow('soc')
    expect(why?.reason).toBe('they move house (robot)')
    await askApi(rig, '/sinks/soc/pause', { body: { reason: 'again' } })
    expect((await sinkNow('soc')).paused?.sinceMs).toBe(why?.sinceMs)
    const resumed = await mara.submit('/', '/sinks/soc/resume')
    expect(resumed.body).toContain('soc is resumed')
    expect((await sinkNow('soc')).paused).toBeUndefined()
    expect(await actsSince()).toEqual([
      'mara, /sinks/soc/resume, , done',
      'robot, /sinks/soc/pause, , done',
      'robot, /sinks/soc/pause, , done',
    ])
  })

  test('one is tested: a message to each recipient, marked TEST', async () => {
    const before = rig.sandbox.received.email.length
    const { json } = await askApi(rig, '/sinks/oncall/test', { body: {} })
    expect(json).toMatchObject({ done: true })
    const mails = rig.sandbox.received.email.slice(before)
    expect(mails.map(({ to }) => to).toSorted()).toEqual(['ann@example.com', 'bob@example.com'])
    for (const { mail } of mails) expect(mail!.subject).toContain('TEST')
    expect(await actsSince()).toEqual(['robot, /sinks/oncall/test, , done'])
  })

  test('the window of a digest ends now, and the mail goes', async () => {
    rig.add('main', 2, { type: 'ransomleak', severity: 'low' })
    await rig.settled()
    const before = rig.sandbox.received.email.length
    const { json } = await askApi(rig, '/sinks/weekly/flush', { body: {} })
    expect(json).toMatchObject({ done: true })
    await until('the digest is there', () => rig.sandbox.received.email.length > before)
    expect(rig.sandbox.received.email.at(-1)!.to).toBe('ann@example.com')
    const none = await askApi(rig, '/sinks/soc/flush', { body: {} })
    expect([none.status, none.json.detail]).toEqual([409, 'this sink has no digest'])
    expect(await actsSince()).toEqual([
      'robot, /sinks/soc/flush, , refused',
      'robot, /sinks/weekly/flush, , done',
    ])
  })
})

test('a feed is paused, says so on Now, and is resumed there', async () => {
  await askApi(rig, '/feeds/brand/pause', { body: { reason: 'their move' } })
  const feedNow = () => peekFeed(rig.ledger('main'), 'brand', 0)
  expect((await feedNow())?.paused?.reason).toBe('their move (robot)')
  const { body } = await mara.get('/')
  expect(body).toContain('their move (robot)')
  expect((await mara.submit('/', '/feeds/brand/resume')).body).toContain('brand is resumed')
  expect((await feedNow())?.paused).toBeUndefined()
  expect(await actsSince()).toEqual([
    'mara, /feeds/brand/resume, , done',
    'robot, /feeds/brand/pause, , done',
  ])
})

describe('of silences', () => {
  test('one is made from the form that an event leads to, hides what it showed, and is ended', async () => {
    const letter = await aDeadLetter()
    const { json } = await askApi(rig, letter.event)
    const place = json.silence_url.replace(/#.*/, '')
    const preview = await mara.get(`${place}&for=2h`)
    expect(preview.body).toContain('It would have hidden <b>0</b>') // a machine alone gets it
    const ofMachines = await mara.get(`${place}&for=2h&machines=yes`)
    expect(ofMachines.body).toMatch(/It would have hidden <b>[1-9]/)
    const filled: Fields = [
      ...new URL(json.silence_url, 'http://x').searchParams.getAll('matchers'),
    ].map((matcher) => ['matchers', matcher])
    const answer = await mara.submit('/rules', '/silences', [
      ...filled,
      ['severity', 'medium'],
      ['for', '2h'],
      ['reason', 'ours'],
      ['machines', 'yes'],
    ])
    expect(answer.status).toBe(200)
    const { json: silences } = await askApi(rig, '/silences')
    const made = silences.find(({ reason }: { reason: string }) => reason === 'ours')
    expect(made).toMatchObject({
      owner: 'mara',
      phase: 'active',
      machines: true,
      origin: 'operator',
    })
    const isSilenced = async () => (await aPaste()).item.rule === made.id
    await until('a paste is silenced', isSilenced)
    const ended = await mara.submit('/rules', `/silences/${made.id}/expire`)
    expect(ended.body).toContain(`${made.id} ends within seconds`)
    await until('a paste is sent again', async () => !(await isSilenced()))
    const over = await askApi(rig, `/silences/${made.id}/expire`, { body: {} })
    expect(over.json).toMatchObject({ done: false, said: [`${made.id} was over.`] })
    expect(await actsSince()).toEqual([
      `robot, /silences/${made.id}/expire, , nothing to do`,
      `mara, /silences/${made.id}/expire, , done`,
      'mara, /silences, , done',
    ])
  })

  test('one of the configuration is not ended', async () => {
    const { json: silences } = await askApi(rig, '/silences')
    const { id } = silences.find(({ origin }: { origin: string }) => origin === 'config')
    const { status } = await askApi(rig, `/silences/${id}/expire`, { body: {} })
    expect(status).toBe(409)
    expect(await actsSince()).toEqual([`robot, /silences/${id}/expire, , refused`])
  })
})

describe('at the service', () => {
  test('an event is ignored and noted, in the name of who asked', async () => {
    const letter = await aDeadLetter()
    const ignored = await mara.submit(letter.event, `${letter.event}/triage`)
    expect(ignored.body).toContain('The service took it: ignore.')
    await mara.submit(letter.event, `${letter.event}/note`, [['note', 'seen by us']])
    const { json } = await askApi(rig, letter.event)
    const event = rig.sandbox.events().find(({ uid }) => uid === json.uid)
    expect(event).toMatchObject({ notes: 'seen by us', ignoredAtMs: expect.any(Number) })
    expect(json.writes).toMatchObject([
      { by: 'mara', action: 'events.act ignore', outcome: 'done' },
      { by: 'mara', action: 'events.note', outcome: 'done' },
    ])
    expect(await actsSince()).toEqual([
      `mara, ${letter.event}/note, main, done`,
      `mara, ${letter.event}/triage, main, done`,
    ])
  })

  test('what it refuses is said, and recorded as refused', async () => {
    const letter = await aDeadLetter()
    const mend = rig.sandbox.faults.add({
      on: '/firework/*',
      method: 'PATCH',
      effect: 'status',
      status: 422,
    })
    const { status, json } = await askApi(rig, `${letter.event}/note`, { body: { note: 'x' } })
    mend()
    expect([status, json.detail]).toEqual([409, expect.stringContaining('the service refused')])
    expect(await actsSince()).toEqual([`robot, ${letter.event}/note, main, refused`])
  })

  test('what was done although the answer is lost is said and recorded as unclear', async () => {
    const letter = await aDeadLetter()
    const on = { on: '/firework/*', method: 'PATCH' } as const
    const mend = rig.sandbox.faults.add({ ...on, effect: 'lose-answer' })
    const { status, json } = await askApi(rig, `${letter.event}/note`, { body: { note: 'x' } })
    mend()
    expect([status, json.remedy]).toEqual([502, expect.stringContaining('may have been done')])
    expect(await actsSince()).toEqual([`robot, ${letter.event}/note, main, unclear`])
  })
})

test('who may only read is offered no act and can do none, in any way', async () => {
  const letter = await aDeadLetter()
  const lee = await signIn(rig, 'lee')
  for (const path of ['/', '/not-told?state=dead', letter.event, '/rules']) {
    expect((await lee.get(path)).body.replaceAll('action="/sign-out"', '')).not.toMatch(
      /method="post" action|formaction="\/items/,
    )
  }
  const answer = await lee.post('/items/resend', [['item', letter.item]])
  expect(answer.status).toBe(403)
  expect([await letter.state(), await actsSince()]).toEqual(['dead', []])
})
