/** What the page shows of a message is what its receiver got. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { slackText, type SlackMessage } from '../../../src/sinks/slack/slack-message.ts'
import { askApi, type Json, type PageRig, startPageRig } from '../../support/page-rig.ts'
import { until } from '../../support/until.ts'

let rig: PageRig

beforeAll(async () => {
  rig = await startPageRig({
    extra: { routes: [`{name: alone, matchers: ['type="bot"'], sinks: [soc], group_wait: 0s}`] },
  })
  // on one page, so that they are one group and one batch however long the next page takes
  rig.add('main', 9, { type: 'stealer_log', severity: 'high' })
  await rig.settled()
  rig.add('main', 1, { type: 'ransomleak', severity: 'critical' })
  rig.add('main', 1, { type: 'bot', severity: 'medium' })
  rig.add('main', 14, { type: 'blog', severity: 'low' })
  rig.add('other', 3, { type: 'blog', severity: 'low' })
  await rig.settled()
  await askApi(rig, '/sinks/weekly/flush', { body: {} })
  await until('the digest is sent', async () => (await messagesTo('weekly')).length > 0)
})
afterAll(() => rig?.stop())

async function messagesTo(sink: string): Promise<Json[]> {
  return (await askApi(rig, `/messages?sink=${sink}&limit=200`)).json.messages
}

/** The page of the message that a row of the list, or an event, leads to. */
async function messageOf(row: Json): Promise<Json> {
  if (row.url.startsWith('/messages')) return (await askApi(rig, row.url)).json
  const { json: event } = await askApi(rig, row.url)
  const [sent] = event.destinations.filter(({ sink }: Json) => sink === row.sink)
  return (await askApi(rig, sent.message_url)).json
}

test.each([
  ['a group', (row: Json) => row.events === 9],
  ['a critical event', (row: Json) => row.severity === 'critical'],
  ['a single event', (row: Json) => row.severity === 'medium'],
])('Slack got what is shown of %s', async (_what, isMeant) => {
  const [row] = (await messagesTo('soc')).filter(isMeant)
  const { as_sent: sent, headline, total } = await messageOf(row)
  const got = rig.sandbox.received.slack.map(({ json }) => slackText(json as SlackMessage).trim())
  expect(got).toContain(sent.text)
  expect(headline).toBe(sent.text.split('\n')[0])
  expect({ total, is_json: sent.is_json, more_bytes: sent.more_bytes }).toEqual({
    total: row.events,
    is_json: false,
    more_bytes: 0,
  })
})

test('a mail shows what a digest listed, and names the rest', async () => {
  const [row] = await messagesTo('weekly')
  const { as_sent: sent, headline } = await messageOf(row)
  const { subject, text } = rig.sandbox.received.email
    .map(({ mail }) => mail!)
    .find(({ subject: of }) => of.startsWith('Digest'))!
  expect(headline).toBe(subject)
  expect(sent.text.split('\n')).toEqual(text.trim().split(/\r?\n/))
})

test('a batch shows its body, of a long one the beginning and how much more there is', async () => {
  const row = (await messagesTo('siem')).find(({ events }) => events === 9)
  const { as_sent: sent, headline, id, total, recipient } = await messageOf(row)
  const got = rig.sandbox.received.webhook.find((one) => one.id === id)
  const body = JSON.stringify(got?.json, null, 2)
  expect(sent.text).toBe(body.slice(0, 8_192))
  expect(sent).toMatchObject({ is_json: true, more_bytes: Buffer.byteLength(body.slice(8_192)) })
  expect(headline).toBe(`${total} events to ${recipient}`)
})

test('whoever sees one account gets the text only where it tells of that one alone', async () => {
  const [row] = await messagesTo('soc')
  expect((await askApi(rig, row.url, { as: 'spy' })).json.as_sent).not.toBeNull()
  const [digest] = await messagesTo('weekly')
  const { json } = await askApi(rig, digest.url, { as: 'spy' })
  expect(json).toMatchObject({
    as_sent: null,
    not_shown: expect.stringContaining('accounts that are not shown'),
  })
  expect(json.total).toBe(14)
})

test.each([
  ['no feed of another', (feed: string) => feed === 'brand', 'main', true],
  ['a feed of another', () => true, 'main', false],
  ['no account as its own', () => false, undefined, false],
])('of a digest that names %s: whether they see it', async (_what, isNamed, account, isShown) => {
  const [row] = await messagesTo('weekly')
  const name = rig.ledger('main').key('told', row.id.slice(1))
  const text = (await rig.redis.get(name))!
  const { summary, shown, ...about }: Json = JSON.parse(text)
  const feeds = summary.digest.feeds.filter(({ feed }: Json) => isNamed(feed))
  const own = {
    ...about,
    accounts: ['main'],
    shown: shown.filter((one: Json) => one.account === 'main'),
    summary: { ...summary, digest: { ...summary.digest, account, feeds } },
  }
  await rig.redis.set(name, JSON.stringify(own), 'KEEPTTL')
  const { json } = await askApi(rig, row.url, { as: 'spy' })
  await rig.redis.set(name, text, 'KEEPTTL')
  expect(summary.digest.feeds.length).toBe(2)
  expect(json.as_sent !== null).toBe(isShown)
})

describe('without', () => {
  test('the event, a message about one is not looked for', async () => {
    const [row] = (await messagesTo('soc')).filter(({ severity }) => severity === 'medium')
    const { json: event } = await askApi(rig, row.url)
    const url = event.destinations.find(({ sink }: Json) => sink === 'soc').message_url
    const [path = ''] = String(url).split('?')
    expect((await askApi(rig, path)).status).toBe(400)
    expect((await askApi(rig, url)).json.id).toBe(path.split('/').at(-1))
  })

  test('the content of one of its events, it is not drawn', async () => {
    const [row] = (await messagesTo('soc')).filter(({ events }) => events === 9)
    const told = (await rig.redis.get(rig.ledger(row.account).key('told', row.id.slice(1))))!
    const [{ account, ref }] = JSON.parse(told).shown
    await rig.redis.del(rig.ledger(account).key('pay', ref.split(':')[1]))
    expect(await messageOf(row)).toMatchObject({
      as_sent: null,
      not_shown: expect.stringContaining('no longer stored'),
    })
  })

  test('what is kept of it, it is not drawn either', async () => {
    const row = (await messagesTo('siem')).find(({ events }) => events === 9)
    await rig.redis.del(rig.ledger(row.account).key('told', row.id.slice(1)))
    expect(await messageOf(row)).toMatchObject({ as_sent: null })
  })
})

test('it is kept as long as the content of its events', async () => {
  const [row] = await messagesTo('weekly')
  const endsAtMs = await rig.redis.pexpiretime(rig.ledger('main').key('told', row.id.slice(1)))
  expect(endsAtMs - Date.parse(row.at)).toBeLessThan(rig.config.ledger.payloadRetentionMs + 60_000)
  expect(endsAtMs - Date.parse(row.at)).toBeGreaterThan(
    rig.config.ledger.payloadRetentionMs - 60_000,
  )
})

test('of a message that was tried again the last attempt is shown', async () => {
  const path = new URL(rig.sandbox.slackUrl).pathname
  rig.sandbox.faults.add({ on: path, effect: 'status', status: 503, times: 1 })
  const [added] = rig.add('other', 3, { type: 'ransomleak', severity: 'high' })
  const event = `/events/other/${rig.ledger('other').fingerprints.recordId(added!.uid)}`
  const read = async (): Promise<Json> => {
    const { json } = await askApi(rig, event)
    const url = json.destinations?.find(({ sink }: Json) => sink === 'soc')?.message_url
    return typeof url === 'string' ? (await askApi(rig, url)).json : undefined
  }
  await until('Slack took it', async () => (await read())?.outcome === 'delivered')
  const { text } = (await read()).as_sent
  expect(text).toContain('Attempt 2.')
  expect(
    rig.sandbox.received.slack.map((one) => slackText(one.json as SlackMessage).trim()),
  ).toContain(text)
})
