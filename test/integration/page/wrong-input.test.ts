/** What nobody may ask: each parameter and field by its name, ids that nothing has, and the description of all. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { z } from 'zod'
import { acts, questions } from '../../../src/page/tables.ts'
import { ask } from '../../support/door.ts'
import {
  askApi,
  type Json,
  type PageRig,
  signIn,
  startPageRig,
  tokens,
} from '../../support/page-rig.ts'

let rig: PageRig
/** Of an event that is there, and of the silence of the configuration. */
let names: Readonly<Record<string, string>>

beforeAll(async () => {
  rig = await startPageRig()
  const [added] = rig.add('main', 1, { type: 'paste', severity: 'medium' })
  await rig.settled()
  const id = rig.ledger('main').fingerprints.recordId(added!.uid)
  names = { account: 'main', id, name: 'soc' }
})
afterAll(() => rig?.stop())

function fill(path: string): string {
  return path.replaceAll(/:(\w+)/g, (_whole, name: string) => {
    if (path.startsWith('/feeds')) return 'brand'
    return path.startsWith('/messages') ? `b${'0'.repeat(40)}` : names[name]!
  })
}

const long = 'x'.repeat(601)

/** By the names of parameters; a text is sent as it is. */
const wrongQueries: Readonly<Record<string, readonly string[]>> = {
  account: ['main&account=other'],
  since: ['yesterday', '2099-01-01T00:00Z', '-1h', long],
  until: ['later', '1w2', long],
  by: ['moon', ''],
  severity: ['loud', 'critical&severity=low'],
  state: ['asleep'],
  limit: ['0', '201', '1.5', 'ten', '-1', '1e9'],
  cursor: ['%00', '/told?cursor=1', 'e30', 'x'.repeat(12_001)],
  at: ['0', '-5', 'now'],
  event: ['main', 'main/1'],
  id: [],
}

const problem = 'application/problem+json; charset=utf-8'

const usualLength = ['sink', 'recipient', 'route', 'text', 'q', 'reason', 'rule', 'term']

/** Where a cursor or another word is read only together with others. */
const together: Readonly<Record<string, string>> = {
  '/events cursor': '&q=x&by=words',
}

const queryCases = questions.flatMap(({ path, query }) =>
  Object.keys(query.shape).flatMap((name) => {
    const isInPath = path.includes(`:${name}`)
    const wrong = usualLength.includes(name) ? [long, 'a&' + `${name}=b`] : wrongQueries[name]
    return isInPath
      ? []
      : (wrong ?? ['no case for it']).map((value) => ({
          path,
          name,
          value,
          shown: value.slice(0, 20),
        }))
  }),
)

test.each(queryCases)(
  '$path?$name=$shown is refused by its name',
  async ({ path, name, value }) => {
    const more = together[`${path} ${name}`] ?? ''
    const { status, json, headers } = await askApi(rig, `${fill(path)}?${name}=${value}${more}`)
    expect({ status, detail: json.detail }).toMatchObject({
      status: 400,
      detail: expect.stringMatching(new RegExp(`^${name}\\b`)),
    })
    expect(headers['content-type']).toBe(problem)
  },
)

test('a mistake in the query of the file is refused before the file begins', async () => {
  const mara = await signIn(rig, 'mara')
  for (const query of ['since=yesterday', 'until=later', 'limit=0']) {
    const { status, headers, body } = await mara.get(`/told.csv?${query}`)
    const of = body.toLowerCase().includes(`<p>${query.split('=')[0]}: `)
    expect([query, status, of]).toEqual([query, 400, true])
    expect(headers['content-disposition']).toBeUndefined()
  }
})

const wrongFields: Readonly<Record<string, readonly unknown[]>> = {
  item: [undefined, 7, 'soc', ['main'], [{}], Array(501).fill('main/i:0:0:soc')],
  reason: [undefined, '', '  ', 'x'.repeat(501), 'two\nlines', 7],
  matchers: [undefined, 7, [], ['type'], ['nothing="x"'], ['type=~"("']],
  for: ['soon', '31d', '', 7, '-2h'],
  severity: [undefined, 'loud', ''],
  machines: ['perhaps', 1],
  action: [undefined, 'delete'],
  note: [undefined, 7, 'x'.repeat(4_001)],
}

const silence = { matchers: ['type="paste"'], for: '2h', reason: 'why', severity: 'low' }

const bodyCases = acts.flatMap(({ path, input }) =>
  Object.keys(input.shape as z.ZodRawShape)
    .filter((name) => !path.includes(`:${name}`))
    .flatMap((name) =>
      (wrongFields[name] ?? ['no case for it']).map((value) => {
        return { path, name, shown: JSON.stringify(value)?.slice(0, 30), value }
      }),
    ),
)

async function stored(): Promise<string> {
  const [silences, circuit] = await Promise.all([
    rig.redis.hgetall(rig.keys.shared('silences')),
    rig.redis.hgetall(rig.keys.shared('circuit', 'soc')),
  ])
  return JSON.stringify([silences, circuit['paused'], rig.sandbox.events()[0]!.notes])
}

test.each(bodyCases)(
  'POST $path with $name $shown is refused by its name, and nothing is done',
  async ({ path, name, value }) => {
    const before = await stored()
    const body = { ...(path === '/silences' && silence), [name]: value }
    const { status, json } = await askApi(rig, fill(path), { body })
    expect({ status, detail: json.detail }).toMatchObject({
      status: 400,
      detail: expect.stringMatching(new RegExp(`^${name}\\b`)),
    })
    expect(await stored()).toBe(before)
  },
)

describe('what nothing has', () => {
  const zeros = '0'.repeat(24)
  test.each([
    `/events/main/${zeros}`,
    `/events/nobody/${zeros}`,
    `/messages/b${'0'.repeat(40)}`,
    '/status?account=nobody',
    '/messages?account=nobody',
  ])('%s is not found', async (path) => {
    const { status, headers } = await askApi(rig, path)
    expect([status, headers['content-type']]).toEqual([404, problem])
  })

  test.each([
    ['/items/resend', { item: `main/i:${zeros}:0:soc` }],
    ['/items/discard', { item: `nobody/i:${zeros}:0:soc` }],
    ['/sinks/nothing/test', {}],
    ['/sinks/nothing/pause', { reason: 'x' }],
    ['/sinks/nothing/resume', {}],
    ['/sinks/nothing/flush', {}],
    ['/feeds/nothing/pause', { reason: 'x' }],
    ['/feeds/nothing/resume', {}],
    ['/silences/nothing/expire', {}],
    [`/events/main/${zeros}/triage`, { action: 'ignore' }],
    [`/events/main/${zeros}/note`, { note: 'x' }],
  ])('POST %s is not found', async (path, body) => {
    const { status, json } = await askApi(rig, path, { body })
    expect([status, json.title]).toEqual([404, 'Not found'])
  })

  test.each([
    ['GET', '/nothing'],
    ['POST', '/nothing/at/all'],
    ['POST', '/status'],
    ['PUT', '/silences'],
    ['GET', '/sinks/soc/pause'],
    ['PATCH', '/openapi.json'],
  ])('%s %s is a problem: there is no such address or method', async (method, path) => {
    const headers = { authorization: `Bearer ${tokens.robot}` }
    const answer = await ask(rig, `/api/v1${path}`, { method, headers })
    expect([answer.status, answer.headers['content-type']]).toEqual([404, problem])
    expect(JSON.parse(answer.body)).toMatchObject({ type: 'about:blank', status: 404 })
  })

  test('an address that is not there is not told to strangers', async () => {
    for (const method of ['GET', 'POST', 'DELETE'])
      expect((await ask(rig, '/api/v1/nothing', { method })).status).toBe(401)
  })

  test.each(['/events/main/XYZ', '/messages/soc', '/messages/b123'])(
    '%s has no id in it, and says so',
    async (path) => {
      const { status, json } = await askApi(rig, path)
      expect([status, json.detail]).toEqual([400, expect.stringMatching(/^id\b/)])
    },
  )
})

describe('the description', () => {
  test('has every address of the tables, with its parameters and fields, and no other', async () => {
    const { json } = await askApi(rig, '/openapi.json')
    const described = Object.entries<Json>(json.paths).flatMap(([path, of]) =>
      Object.keys(of).map((method) => `${method} ${path}`),
    )
    const templated = (path: string): string => `/api/v1${path.replaceAll(/:(\w+)/g, '{$1}')}`
    expect(described.toSorted()).toEqual(
      [
        ...questions.map(({ path }) => `get ${templated(path)}`),
        ...acts.map(({ path }) => `post ${templated(path)}`),
      ].toSorted(),
    )
    for (const { path, query } of questions) {
      const { parameters } = json.paths[templated(path)].get
      const given: string[] = parameters.map((one: Json) => one.name)
      expect(given.toSorted()).toEqual(Object.keys(query.shape).toSorted())
    }
    for (const { path, input } of acts) {
      const { parameters, requestBody } = json.paths[templated(path)].post
      const fields = Object.keys(requestBody.content['application/json'].schema.properties)
      const given: string[] = [...parameters.map((one: Json) => one.name), ...fields]
      expect(given.toSorted()).toEqual(Object.keys(input.shape).toSorted())
    }
  })
})
