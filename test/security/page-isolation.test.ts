/**
 * Whoever sees one account learns nothing of another: every answer is the one that they would get if
 * what they ask for had never been, and holds nothing of the other's words.
 */
import * as fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { questions } from '../../src/page/tables.ts'
import { ask } from '../support/door.ts'
import {
  askApi,
  cursorIn,
  dumpKeys,
  ends,
  fieldsOf,
  type Json,
  type PageRig,
  signIn,
  startPageRig,
  startStillPage,
  type StillPage,
  tokens,
  type Visitor,
} from '../support/page-rig.ts'
import { runs, seeded } from '../support/runs.ts'

/** Stands in every text of the other account. */
const marker = 'zzqx'

let rig: PageRig
let page: StillPage
let ana: Visitor

/** What the other account has, each beside one that nobody has, of the same shape. */
let pairs: Record<'text' | 'event' | 'message' | 'silence' | 'item' | 'feed' | 'account', Pair[]>
type Pair = readonly [real: string, none: string]
let cursors: string[]

beforeAll(async () => {
  rig = await startPageRig({
    extra: {
      routes: [
        `{name: ${marker}-route, matchers: ['type="${marker}"'], sinks: [siem]}`,
        `{name: ${marker}-mute, matchers: ['type="blog"', 'account="other"'], sinks: [soc], mute_time_intervals: [always], on_mute: drop}`,
      ],
      silences: [
        `{matchers: ['account="other"', 'type="${marker}-type"'], until: '${ends}', owner: ${marker}, reason: ${marker}, max_severity: high}`,
      ],
      labels: `{${marker}: ${marker}-label}`,
    },
  })
  seed('other', marker)
  seed('main', 'ours')
  await rig.settled()
  // what others do: acts, a silence, pauses, a note at the service
  const paste = await firstOf('/events?q=paste&account=other&by=words')
  for (const [path, body] of [
    ['/silences', { matchers: ['account="other"'], reason: marker, severity: 'low' }],
    [`${paste}/note`, { note: marker }],
    ['/feeds/rival/pause', { reason: marker }],
    ['/sinks/siem/pause', { reason: marker }],
  ] as const) {
    const { status, text } = await askApi(rig, path, { body })
    if (status !== 200) throw new Error(`${path}: ${text}`)
  }
  pairs = await collectPairs()
  page = await startStillPage(rig)
  ana = await signIn(page, 'ana')
})
afterAll(async () => {
  await page?.stop()
  await rig?.stop()
})

function seed(account: 'main' | 'other', word: string): void {
  const given = (at: number) => ({
    uid: `${word}/event/${at}`,
    identifiers: [{ id: 9, name: `${word}.example` }],
    tags: [`${word}-tag`],
    notes: `${word} note`,
    highlights: { 'credentials.username': [`<mark>${word}@${word}.example</mark>`], title: [word] },
    data: { title: `${word} title`, content: `${word} content`, domain: `${word}.example` },
  })
  const types = 'stealer_log chat_message forum_post paste service lookalike blog'.split(' ')
  for (const [at, type] of [...types, ...types, word].entries()) {
    const severity = type === 'stealer_log' ? 'high' : 'medium'
    rig.add(account, 1, { type, severity, ...given(at) })
  }
  rig.add(account, 1, { type: 'ransomleak', severity: 'low', ...given(99) })
}

async function firstOf(path: string): Promise<string> {
  return (await askApi(rig, path)).json.results[0].url
}

/** The address of the message about one event, which was sent to `stray` and not taken. */
async function singleMessageOf(path: string): Promise<string> {
  const [item] = (await askApi(rig, path)).json.items
  const { json: event } = await askApi(rig, item.event_url)
  return event.destinations.find(({ sink }: Json) => sink === 'stray').message_url
}

async function collectPairs(): Promise<typeof pairs> {
  const { json: told } = await askApi(rig, '/messages?account=other&limit=3')
  const { json: kept } = await askApi(rig, '/items?account=other&limit=3')
  const { json: silences } = await askApi(rig, '/silences')
  const { json: found } = await askApi(
    rig,
    '/events?account=other&q=zzqx.example&by=identifier&limit=2',
  )
  cursors = [told.next, kept.next, found.next].flatMap((next) => cursorIn(next) ?? [])
  const single = await singleMessageOf('/items?account=other&sink=stray')
  const digits = (text: string): string =>
    text.replaceAll(/[0-9a-f]{10,}/g, (id) => '0'.repeat(id.length))
  const twin = (real: string): Pair => [real, digits(real).replaceAll('other', 'nobdy')]
  const ofOther = silences.filter(({ matchers }: Json) => String(matchers).includes('other'))
  return {
    text: [
      `${marker}/event/1`,
      `${marker}.example`,
      `${marker}@${marker}.example`,
      `${marker}-tag`,
      marker,
      `${marker}-route`,
    ].map((real): Pair => [real, real.replaceAll(marker, 'qqqq')]),
    event: found.results.map(({ url }: Json) => twin(url)),
    message: [
      [single, twin(single)[1].replace('/0', '/e')],
      ...told.messages.flatMap(({ url, id }: Json) =>
        url.startsWith('/messages') ? [[url, url.replace(id, `b${'0'.repeat(40)}`)] as const] : [],
      ),
    ],
    silence: ofOther.map(({ id }: Json): Pair => [
      id,
      id.startsWith('c') ? 'c00000000' : 's00000000',
    ]),
    item: kept.items.map(({ id }: Json) => twin(id)),
    feed: [['rival', 'nobdy']],
    account: [['other', 'nobdy']],
  }
}

/** Apart from times, tokens and what was asked for. */
function plain(body: string, asked: string): string {
  const forms = [asked, encodeURIComponent(asked), encodeURIComponent(asked).replaceAll('%20', '+')]
  return forms
    .reduce((text, form) => text.replaceAll(form, '?'), body.replaceAll('others', 'them'))
    .replaceAll(/\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?/g, 'T')
    .replaceAll(/name="form_token" value="[^"]*"/g, '')
    .replaceAll(/\b\d+(?:\.\d+)?(?= ?(?:ms|s|min|h|d)\b)/g, 'N')
    .replaceAll(/("(?:lag_s|lag_seconds)":)[\d.]+/g, '$1N')
}

interface Got {
  status: number
  text: string
}

async function get(path: string, asked: string): Promise<Got> {
  if (!path.startsWith('/api/v1')) {
    const { status, body } = await ana.get(path)
    return { status, text: plain(body, asked) }
  }
  const { status, text } = await askApi(page, path.slice('/api/v1'.length), { as: 'spy' })
  return { status, text: plain(text, asked) }
}

const views = ['/', '/told', '/not-told', '/rules', '/tenants', '/search']
const lists = [
  ...questions.filter(({ path }) => !path.includes(':')).map(({ path }) => `/api/v1${path}`),
  ...views,
]
const textNames = 'q text rule reason route recipient sink term matchers by state'.split(' ')

/** An address with something of the other account in it, and the same with something of nobody. */
function aRequest(): fc.Arbitrary<{ paths: Pair; asked: Pair }> {
  const more = fc.record(
    {
      since: fc.constantFrom('1d', '30d'),
      limit: fc.constantFrom('1', '200'),
      severity: fc.constantFrom('low', 'critical'),
      cursor: fc.constantFrom(...cursors),
      by: fc.constantFrom(...'any identifier login host words account reason feed'.split(' ')),
      account: fc.constant('main'),
    },
    { requiredKeys: [] },
  )
  const pairOf = (kinds: (keyof typeof pairs)[]) =>
    fc.constantFrom(...kinds.flatMap((kind) => pairs[kind]))
  const inQuery = fc
    .tuple(fc.constantFrom(...lists), fc.constantFrom(...textNames, 'account'), more)
    .chain(([path, name, rest]) =>
      pairOf(name === 'account' ? ['account'] : ['text', 'silence', 'feed']).map((asked) => ({
        asked,
        paths: asked.map((value) => {
          const query = new URLSearchParams({ ...rest, [name]: value })
          return `${path}?${query.toString()}`
        }) as unknown as Pair,
      })),
    )
  const inPath = pairOf(['event', 'message']).chain((asked) =>
    fc.constantFrom('', '/api/v1').map((root) => ({
      asked,
      paths: asked.map((value) => `${root}${value}`) as unknown as Pair,
    })),
  )
  return fc.oneof({ weight: 4, arbitrary: inQuery }, { weight: 1, arbitrary: inPath })
}

/** The name of the account stands as such nowhere, and so does the feed's. */
const others = new RegExp(`${marker}|\\brival\\b|["/>=:]other["/<&]|"other`)

test('no question tells of another account, or that something of it is there', async () => {
  await fc.assert(
    fc.asyncProperty(aRequest(), async ({ paths: [real, none], asked }) => {
      const [got, twin] = [await get(real, asked[0]), await get(none, asked[1])]
      expect({ path: real, ...got }).toEqual({ path: real, ...twin })
      expect(got.text).not.toMatch(others)
    }),
    { numRuns: runs({ short: 300, long: 3_000 }), ...seeded(), endOnFailure: true },
  )
})

test.each(['', '/api/v1'])(
  'each address below "%s" as it is, tells nothing either',
  async (root) => {
    for (const path of lists.filter((one) => one.startsWith('/api') === (root !== ''))) {
      const { status, text } = await get(path, '§')
      expect({ path, status, found: others.exec(text)?.[0] }).toEqual({ path, status: 200 })
    }
  },
)

describe('of what all accounts share', () => {
  const asked = async (path: string, as: keyof typeof tokens) =>
    (await askApi(page, path, { as })).json

  test('a sink shows its name, its type, and what of the account waits or is dead', async () => {
    const sinks: Json[] = await asked('/sinks', 'spy')
    expect(sinks.length).toBeGreaterThan(2)
    for (const { problems, ...sink } of sinks) {
      expect(Object.keys(sink)).toEqual(['sink', 'type', 'pending', 'dead_letters'])
      expect(problems.length).toBe(sink.dead_letters > 0 ? 1 : 0)
    }
  })

  test('the status tells nothing: no Redis, no daemon, no pause, no circuit', async () => {
    const [own, all] = [await asked('/status', 'spy'), await asked('/status?account=main', 'robot')]
    const told = ({ findings }: Json): string[] =>
      findings.map(({ check, detail }: Json) => `${check}: ${detail}`)
    expect(told(all)).toContainEqual(expect.stringContaining(marker))
    for (const line of told(own))
      expect(line).toMatch(/^(?:feed|account|delivery: \d+ dead letter)/)
  })

  test('a silence of their own account names no sink', async () => {
    const matchers = ['account="main"', 'type="paste"']
    const body = { matchers, reason: 'x', severity: 'low' }
    const { json } = await askApi(page, '/silences', { body, as: 'spy' })
    const [, id = ''] = json.url.split('/rules#silence-')
    expect(json).toEqual({
      done: true,
      said: [expect.stringMatching(`^Silence ${id} begins`)],
      url: `/rules#silence-${id}`,
    })
    await askApi(page, `/silences/${id}/expire`, { body: {}, as: 'spy' })
  })
})

test('who sees all is shown what the others must not see', async () => {
  const mara = await signIn(page, 'mara')
  for (const view of views) {
    const path = `${view}?q=${marker}`
    expect({ path, found: others.test((await mara.get(path)).body) }).toEqual({ path, found: true })
  }
})

describe('acts', () => {
  /** By token; and with the token of a form, which is made for the address of the page. */
  async function act(path: string, body: Record<string, string>, asked: string): Promise<Got> {
    const authorization = `Bearer ${tokens.spy}`
    const answer = await ask(page, `/api/v1${path}`, { headers: { authorization }, body })
    return { status: answer.status, text: plain(answer.body, asked) }
  }

  const why = { reason: 'x', severity: 'low' }
  /** `%` stands for what is of the other account, or of nobody. */
  const cases: [kind: keyof typeof pairs | 'sink', path: string, body: Record<string, string>][] = [
    ['item', '/items/resend', { item: '%' }],
    ['item', '/items/discard', { item: '%' }],
    ['silence', '/silences/%/expire', {}],
    ['feed', '/feeds/%/pause', why],
    ['feed', '/feeds/%/resume', {}],
    ['event', '%/triage', { action: 'ignore' }],
    ['event', '%/note', { note: 'x' }],
    ['sink', '/sinks/%/test', {}],
    ['sink', '/sinks/%/pause', why],
    ['sink', '/sinks/%/resume', {}],
    ['sink', '/sinks/%/flush', {}],
    ['text', '/silences', { ...why, matchers: 'type="%"' }],
    ['text', '/silences', { ...why, matchers: '%="x"' }],
    ['account', '/silences', { ...why, matchers: 'account="%"' }],
  ]

  function filled<T extends string | object>(template: T, of: string): T {
    return JSON.parse(JSON.stringify(template).replace('%', () => of)) as T
  }

  test('on what is of another account change nothing, and answer as if it were not there', async () => {
    const before = await kept()
    for (const [kind, path, body] of cases) {
      for (const [real, none] of kind === 'sink' ? [['soc', 'nobdy'] as const] : pairs[kind]) {
        const told = (of: string): Promise<Got> => act(filled(path, of), filled(body, of), of)
        const got = await told(real)
        expect({ path, real, ...got }).toEqual({ path, real, ...(await told(none)) })
        expect(got.status).toBeGreaterThanOrEqual(400)
        expect(got.text).not.toMatch(others)
      }
    }
    expect(await kept()).toEqual(before)
    expect(page.asked).toEqual([])
  })

  test('with a mistake do not say which labels the feeds of others have', async () => {
    const { text } = await act(
      '/silences',
      { matchers: `${marker.slice(0, 3)}="x"`, reason: 'x', severity: 'low' },
      '§',
    )
    expect(text).not.toMatch(others)
  })

  test('by a form of one’s own page need the form of that act', async () => {
    const { body } = await ana.get('/rules')
    const token = fieldsOf(body, '/silences').find(([name]) => name === 'form_token')!
    const [[item]] = pairs.item as [Pair]
    const { status } = await ana.post('/items/discard', [['item', item], token])
    expect(status).toBe(403)
  })

  /** All but sessions, and the record of acts, which has what was refused. */
  async function kept(): Promise<Map<string, string>> {
    const dumped = await dumpKeys(rig.redis)
    return new Map(
      [...dumped].filter(([name]) => !/:(?:session|form|guesses|acts|idle-acts)\b/.test(name)),
    )
  }
})
