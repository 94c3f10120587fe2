/** What a first-time reader meets: every reason has words, and what is gone or unread says so. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { reasonText } from '../../../src/operator/item-words.ts'
import { parseMatcher } from '../../../src/routing/matcher.ts'
import type { AccountLedger } from '../../../src/store/account-ledger.ts'
import {
  askApi,
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
let events: Json[]

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
  const unread = rig.ledger('other').key('feed', 'rival')
  page = await startStillPage(rig)
  await rig.redis.del(unread)
  mara = await signIn(page, 'mara')
  events = (await askApi(page, '/events?q=a&by=words')).json.results
})
afterAll(async () => {
  await page?.stop()
  await rig?.stop()
})

/** The answer of the API about the event of a type. */
async function eventOf(type: string): Promise<Json> {
  const { url } = events.find((one) => one.type === type)
  return (await askApi(page, url)).json
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

test('a group counts one event for each recipient, and an item names the reason of its group', async () => {
  const { json } = await askApi(page, '/items?reason=fallback')
  const [item] = json.items
  expect(item).toMatchObject({ reason: 'fallback', state: 'diverted', rule: 'fallback to siem' })
  const shown = (await mara.get('/not-told?reason=fallback')).body
  expect((await mara.get('/not-told')).body).toContain('once for each recipient')
  expect(shown).toContain('<input name="reason" value="fallback">') // what narrows can be seen, and ended
  expect(shown).toContain('its sink failed, so another one took it')
})

test('a list without items says that the filters leave none', async () => {
  const { body } = await mara.get('/not-told?rule=nothing-has-this')
  expect(body).toContain('Nothing that fits is kept from anybody.')
})

describe('an event', () => {
  test('says since when it stands so in a time that a browser makes its own', async () => {
    const { destinations } = await eventOf('chat_message')
    const [muted] = destinations
    expect(muted).toMatchObject({
      state: 'suppressed',
      why: 'its route is muted: night: always',
      next: null,
    })
    const { url } = events.find((one) => one.type === 'chat_message')
    expect((await mara.get(url)).body).toContain(`since <time datetime="${muted.since}"`)
  })

  test('says that its facts are gone, and how long they are kept', async () => {
    expect((await eventOf('forum_post')).gone_after_s).toBeNull()
    const { id } = await eventOf('forum_post')
    await rig.redis.del(ledger.key('pay', id))
    const gone = await eventOf('forum_post')
    expect([gone.gone_after_s, gone.facts]).toEqual([14 * 86_400, []])
    const { url } = events.find((one) => one.type === 'forum_post')
    expect((await mara.get(url)).body).toContain('the content of an event lasts 14 d at most')
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
  const { url } = events.find((one) => one.type === 'blog')
  const { body } = await mara.get(url)
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

  test('pauses a feed with a reason, and Rules a sink', async () => {
    for (const [view, path] of [
      ['/', '/feeds/brand/pause'],
      ['/rules', '/sinks/soc/pause'],
    ] as const) {
      const said = await mara.submit(view, path, [['reason', 'their move']])
      expect(said.body).toContain('is paused since')
    }
    const { json } = await askApi(page, '/sinks')
    expect(json.find(({ sink }: Json) => sink === 'soc').paused.reason).toBe('their move (mara)')
  })
})

test('every reason that a script writes has words', () => {
  const folder = join(import.meta.dirname, '../../../src/redis/scripts')
  // what finds writes nothing
  const scripts = readdirSync(folder, { recursive: true, encoding: 'utf8' })
  const written = scripts
    .filter((file) => file.endsWith('.lua') && !file.startsWith('find-'))
    .flatMap((file) => [
      ...readFileSync(join(folder, file), 'utf8').matchAll(/\b(?:why|reason|r) = [^,\n]*/g),
    ])
    .flatMap(([line]) =>
      [...line.matchAll(/(?:[^=]= |and |or )'([a-z_]+)'/g)].map(([, word]) => word!),
    )
  expect(new Set(written).size).toBeGreaterThan(7)
  expect([...new Set(written)].filter((word) => reasonText(word) === null)).toEqual([])
})
