/** Where forms lead: what was refused leads back to what was typed, what was done to what it touched. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { readActs } from '../../../src/store/acts.ts'
import {
  askApi,
  type Fields,
  fieldsOf,
  type Json,
  type PageRig,
  signIn,
  startPageRig,
  startStillPage,
  type StillPage,
  type Visitor,
} from '../../support/page-rig.ts'

let rig: PageRig
let page: StillPage
let mara: Visitor
/** Paths of events by their type. */
let events: Readonly<Record<string, string>>

beforeAll(async () => {
  rig = await startPageRig()
  for (const type of ['paste', 'lookalike', 'chat_message']) {
    rig.add('main', 1, { type, severity: 'medium' })
  }
  await rig.settled()
  page = await startStillPage(rig)
  mara = await signIn(page, 'mara')
  const { json } = await askApi(page, '/events?q=a&by=words')
  events = Object.fromEntries(json.results.map(({ type, url }: Json) => [type, url]))
})
afterAll(async () => {
  await page?.stop()
  await rig?.stop()
})

/** Links of the content, by their text. */
function linksOf(html: string): Record<string, string> {
  const [, main = ''] = html.split('<main')
  const links = [...main.matchAll(/<a [^>]*href="([^"]*)"[^>]*>(.*?)<\/a>/gs)]
  return Object.fromEntries(
    links.map(([, url = '', text = '']) => [
      text.replaceAll(/<[^>]+>/g, ''),
      url.replaceAll('&amp;', '&').replaceAll('&#39;', "'"),
    ]),
  )
}

/** What the inputs and the select of a name hold. */
function valuesOf(html: string, name: string): string[] {
  const inputs = [...html.matchAll(new RegExp(`<input name="${name}" value="([^"]*)"`, 'g'))]
  return inputs.map(([, value = '']) => value.replaceAll('&#34;', '"'))
}

async function follow(html: string, text: string): Promise<string> {
  const url = linksOf(html)[text]
  expect(Object.keys(linksOf(html))).toContain(text)
  return (await mara.get(url!.replace(/#.*/, ''))).body
}

const navigation = /<nav aria-label="Views">.*href="\/rules"/s

describe('a refused form', () => {
  test('names its field by the label, keeps the navigation, and leads back to what was typed', async () => {
    const typed: Fields = [
      ['matchers', 'type="paste"'],
      ['matchers', 'colour=red'],
      ['severity', 'medium'],
      ['for', '3h'],
      ['reason', 'we know it'],
    ]
    const { status, body } = await mara.submit('/rules', '/silences', typed)
    expect(status).toBe(400)
    expect(body).toMatch(/<p>Matcher 2: neither a name of an event/)
    expect(body).toMatch(navigation)
    const form = await follow(body, 'Back')
    expect(valuesOf(form, 'matchers')).toEqual(['type="paste"', 'colour=red', ''])
    expect([valuesOf(form, 'for'), valuesOf(form, 'reason')]).toEqual([['3h'], ['we know it']])
    expect(form).toMatch(/<details id="silence" open/)
    expect(form).toMatch(/role="alert">Matcher 2: neither/)
  })

  test('of a silence without a reason asks why', async () => {
    const typed: Fields = [
      ['matchers', 'type="paste"'],
      ['severity', 'low'],
      ['for', '2h'],
      ['reason', ''],
    ]
    const { body } = await mara.submit('/rules', '/silences', typed)
    expect(body).toContain('<p>Why: has no value')
  })

  test('of a pause leads back to the view that has it', async () => {
    const { status, body } = await mara.submit('/rules', '/sinks/soc/pause', [['reason', ' ']])
    expect([status, linksOf(body)['Back']]).toEqual([400, '/rules'])
    expect(body).toContain('<p>Why: say why.')
  })

  test('without a chosen event says so, is recorded as refused, and leads back to the list', async () => {
    const { status, body } = await mara.submit('/not-told?state=dead', '/items/resend')
    expect([status, linksOf(body)['Back']]).toEqual([400, '/not-told?state=dead'])
    expect(body).toContain('<p>Events: choose at least one.')
    const [newest] = await readActs(rig, 1)
    expect(newest).toMatchObject({ by: 'mara', act: '/items/resend', outcome: 'refused' })
    expect((await mara.get('/rules')).body).toContain('send 0 items again')
  })

  test('of filters leads back without the wrong field alone, in the navigation of the account', async () => {
    const { body } = await mara.get('/told?since=yesterday&sink=soc&account=main')
    expect(body).toContain('<p>Since: ')
    expect(linksOf(body)).toEqual({ Back: '/told?sink=soc&account=main' })
    expect(body).toContain('<a href="/told?account=main">Told</a>')
  })

  test('of an address that leads nowhere leads to Now', async () => {
    const { status, body } = await mara.get('/events/main/none')
    expect([status, linksOf(body)]).toEqual([400, { 'Go to Now': '/' }])
  })

  test('of a stranger’s address shows no navigation of others', async () => {
    const ana = await signIn(page, 'ana')
    const { body } = await ana.get('/told?account=other')
    expect(body).toMatch(navigation)
    expect(body).not.toContain('href="/tenants"')
    expect(linksOf(body)).toEqual({ 'Go to Now': '/' })
  })

  test('with a used token keeps the navigation and leads back', async () => {
    const { body: form } = await mara.get('/rules')
    const fields = [...fieldsOf(form, '/silences'), ['reason', ''] as const]
    await mara.post('/silences', fields)
    const { status, body } = await mara.post('/silences', fields)
    expect(status).toBe(403)
    expect(body).toMatch(navigation)
    expect(Object.keys(linksOf(body))).toEqual(['Back'])
  })
})

describe('a silence', () => {
  test('is made from an event and leads to itself and back to the event', async () => {
    const { body: event } = await mara.get(events['paste']!)
    expect(linksOf(event)['Silence events like this']).toMatch(/#silence$/)
    const form = await follow(event, 'Silence events like this')
    expect(form).toMatch(/<details id="silence" open/)
    const asked = fieldsOf(form, '/silences')
    const matchers = valuesOf(form, 'matchers').map((one): [string, string] => ['matchers', one])
    const rest: Fields = [
      ['severity', 'medium'],
      ['for', '2h'],
      ['reason', 'ours'],
    ]
    const { body } = await mara.post('/silences', [...asked, ...matchers, ...rest])
    const { 'Show the silence': shown, ...others } = linksOf(body)
    expect(others).toEqual({ 'Back to the event': events['paste'] })
    const id = shown!.split('#')[1]!
    const { body: rules } = await mara.get('/rules')
    expect(rules).toContain(`<li class="active" id="${id}">`)
    expect(rules).toContain('make a silence')
    const ended = await mara.submit('/rules', `/silences/${id.replace('silence-', '')}/expire`)
    expect(linksOf(ended.body)).toEqual({ 'Show the silence': shown, Back: '/rules' })
    expect((await mara.get('/rules')).body).toContain(`end silence ${id.replace('silence-', '')}`)
  })

  test('form requires what it cannot do without, and proposes names and an example', async () => {
    const { body } = await mara.get('/rules')
    const required = [...body.matchAll(/<label>([^<]*?) <input [^>]* required>/g)]
    const ofSilence = ['Matcher 1', 'Up to severity', 'For how long', 'Why']
    expect(required.map(([, label]) => label)).toEqual(expect.arrayContaining(ofSilence))
    expect(body).toContain('placeholder="type=&#34;paste&#34;" list="names"')
    expect(body).toContain('<option value="identifier="></option>')
  })

  test('leads back to no other site', async () => {
    const { body } = await mara.get('/rules?matchers=&back=//evil.example')
    expect(fieldsOf(body, '/silences')).toContainEqual(['back', '/'])
  })
})

describe('rules', () => {
  test('lead from what they kept back to themselves, and back again', async () => {
    const { json } = await askApi(page, '/items')
    const ofReason = (reason: string): Json => json.items.find((one: Json) => one.reason === reason)
    const [silenced, muted] = [ofReason('silence'), ofReason('mute')]
    expect([silenced.rule_url, muted.rule_url]).toEqual([
      `/rules#silence-${silenced.rule}`,
      '/rules#mute-always',
    ])
    const { body } = await mara.get('/rules')
    expect(body).toContain(`id="silence-${silenced.rule}"`)
    expect(body).toContain('id="mute-always"')
    expect(linksOf(body)).toMatchObject({ always: '/rules#mute-always' })
    const kept = await follow(body, '1 event')
    expect(kept).toContain(`<a href="${events['lookalike']}">`)
    expect(kept).not.toContain(`<a href="${events['chat_message']}">`)
    expect(linksOf((await mara.get(events['chat_message']!)).body)['the rule']).toBe(muted.rule_url)
  })

  test('say of a route how long it waits for what is alike', async () => {
    const { tree } = (await askApi(page, '/rules')).json
    const summaryOf = (name: string): string => tree.find((one: Json) => one.name === name).summary
    expect(summaryOf('urgent')).toBe(
      'waits 1 s for more of the same type, then sends at most one message every 10 s',
    )
    expect(summaryOf('night')).toMatch(/^sends at once, then at most one message .*every/)
  })

  test('of all accounts are no links for who sees one', async () => {
    const { json } = await askApi(page, '/items', { as: 'spy' })
    const muted = json.items.find(({ reason }: Json) => reason === 'mute')
    expect([muted.rule, muted.rule_url]).toEqual(['night: always', null])
  })
})

describe('filters', () => {
  test('offer the recipients there are, and none to who sees one account', async () => {
    const { body } = await mara.get('/told')
    expect(body).toMatch(/Recipient <select name="recipient">.*<option>ann@example.com<\/option>/s)
    expect(body).toContain('Severity, at least')
    const ana = await signIn(page, 'ana')
    const { body: own } = await ana.get('/told')
    expect(own).toContain('<input name="recipient" value="" list="recipients">')
    expect(own).not.toContain('ann@example.com')
  })

  test('show what a bar of a recipient leads to', async () => {
    const { json } = await askApi(page, '/messages?account=main&sink=siem')
    for (const { name, url } of json.by_recipient) {
      expect(url).toBe(`/told?account=main&sink=siem&recipient=${encodeURIComponent(name)}`)
    }
  })
})
