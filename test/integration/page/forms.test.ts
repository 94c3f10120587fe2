/** What a reader meets: forms that lead back to what was typed, and words for every reason and gap. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { reasonText } from '../../../src/operator/item-words.ts'
import { parseMatcher } from '../../../src/routing/matcher.ts'
import type { AccountLedger } from '../../../src/store/account-ledger.ts'
import { readActs } from '../../../src/store/history/acts.ts'
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
let ledger: AccountLedger
let mara: Visitor
/** Paths of events by their type. */
let events: Readonly<Record<string, string>>

const longName = `${'a.very.long+name (one of many) '.repeat(4)}.example`

beforeAll(async () => {
  rig = await startPageRig()
  for (const type of ['chat_message', 'forum_post', 'paste', 'service', 'lookalike']) {
    rig.add('main', 1, { type, severity: 'medium' })
  }
  rig.add('main', 1, {
    type: 'bot',
    severity: 'critical',
    identifiers: [{ id: 42, name: longName }],
  })
  rig.add('main', 1, { type: 'blog', severity: 'urgent' as 'high' })
  await rig.settled()
  ledger = rig.ledger('main')
  const rival = rig.ledger('other').key('feed', 'rival')
  page = await startStillPage(rig)
  await rig.redis.del(rival) // as if it was never read
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

  test.each<[view: string, act: string, typed: Fields, said: string]>([
    ['/rules', '/sinks/soc/pause', [['reason', ' ']], 'Why: say why.'],
    ['/not-told?state=dead', '/items/resend', [], 'Events: choose at least one.'],
  ])('on %s of %s leads back there, and is recorded as refused', async (...given) => {
    const [view, act, typed, said] = given
    const { status, body } = await mara.submit(view, act, typed)
    expect([status, linksOf(body)['Back']]).toEqual([400, view])
    expect(body).toContain(`<p>${said}`)
    const [newest] = await readActs(rig, 1)
    expect(newest).toMatchObject({ by: 'mara', act, outcome: 'refused' })
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

  test('leads back to no other site', async () => {
    const { body } = await mara.get('/rules?matchers=&back=//evil.example')
    expect(fieldsOf(body, '/silences')).toContainEqual(['back', '/'])
  })
})

describe('rules', () => {
  test('lead from what they suppressed to themselves, and back again', async () => {
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

  test('of all accounts are no links for who sees one', async () => {
    const { json } = await askApi(page, '/items', { as: 'spy' })
    const muted = json.items.find(({ reason }: Json) => reason === 'mute')
    expect([muted.rule, muted.rule_url]).toEqual(['night: always', null])
  })
})

/** The answer of the API about the event of a type. */
async function eventOf(type: string): Promise<Json> {
  return (await askApi(page, events[type]!)).json
}

test('each reason of what was not told has words, for groups, items, attempts and reports', async () => {
  const [items, report] = await Promise.all(
    ['/items', '/report?by=reason'].map((path) => askApi(page, path)),
  )
  const { attempts } = (await eventOf('paste')).destinations.at(-1)
  const told = [...items!.json.groups, ...items!.json.items, ...attempts, ...report!.json.rows]
  expect(new Set(told.map(({ reason }) => reason))).toEqual(
    new Set(['mute', 'shadow', 'invalid', 'silence', 'fallback']),
  )
  for (const { reason, reason_text: text } of told) expect(text).toBe(reasonText(reason))
})

describe('an event', () => {
  test('says that its facts are gone, and how long they are kept', async () => {
    expect((await eventOf('forum_post')).gone_after_s).toBeNull()
    const { id } = await eventOf('forum_post')
    await rig.redis.del(ledger.key('pay', id))
    const gone = await eventOf('forum_post')
    expect([gone.gone_after_s, gone.facts]).toEqual([14 * 86_400, []])
    expect((await mara.get(events['forum_post']!)).body).toContain(
      'the content of an event lasts 14 d at most',
    )
  })

  test('of a long identifier proposes a silence that matches it', async () => {
    const { silence_url: url } = await eventOf('bot')
    const matchers = new URL(url, 'http://x').searchParams.getAll('matchers')
    const ofName = matchers.map(parseMatcher).find(({ name }) => name === 'identifier')
    expect(ofName?.matches([longName])).toBe(true)
    expect(ofName?.matches(['another.example'])).toBe(false)
    expect((await mara.get(url.replace(/#.*/, '&for=2h'))).body).toContain(
      'It would have hidden <b>1</b>',
    )
  })
})

test('of an event that no silence hides proposes none', async () => {
  expect((await eventOf('blog')).silence_url).toBeNull()
  const { body } = await mara.get(events['blog']!)
  expect(body).toContain('its severity is none that Tocsin knows')
})

describe('Now', () => {
  test('puts a feed that was never read before those that are late', async () => {
    const { json } = await askApi(page, '/status')
    expect(json.feeds.map(({ name, lag_s: lag }: Json) => [name, lag === null])).toEqual([
      ['rival', true],
      ['brand', false],
    ])
  })

  test('counts the same hours in its figures and in its plot', async () => {
    const hour = Math.floor(Date.now() / 3_600_000)
    await rig.redis.hset(ledger.key('hour', String(hour - 24)), 'event|high', 5)
    const { hours, last_24h: day } = (await askApi(page, '/status?account=main')).json
    const seen = hours.flatMap(({ at: _at, ...counts }: Json) => Object.values(counts))
    expect([hours.length, seen.reduce((sum: number, one: number) => sum + one)]).toEqual([
      24,
      day.seen,
    ])
  })
})
