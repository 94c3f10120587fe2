/**
 * Client, commands and sandbox against what the service's public documents say of each operation:
 * paths, parameters, bodies, and answers in four manners. What is said there stands in
 * `test/fixtures/published-api.ts`.
 */
import { PassThrough } from 'node:stream'
import { text } from 'node:stream/consumers'
import { afterAll, describe, expect, onTestFinished, test } from 'vitest'
import { runProgram } from '../../../src/cli/program.ts'
import { parseCredential } from '../../../src/feed-types/credentials.ts'
import { parseItem } from '../../../src/feed-types/events.ts'
import { systemClock } from '../../../src/lib/clock.ts'
import { startSandbox, type Sandbox } from '../../../src/sandbox/sandbox.ts'
import type { UpstreamClient } from '../../../src/upstream/client.ts'
import { eventFilterTypes } from '../../../src/upstream/resources/enumerations.ts'
import type {
  Fields,
  Operation as Row,
  SearchPage,
} from '../../../src/upstream/resources/operation.ts'
import { operations as tocsinOperations } from '../../../src/upstream/resources/operations.ts'
import {
  operations,
  vocabularies,
  type Operation,
  type Shape,
} from '../../fixtures/published-api.ts'
import { startHttpServer } from '../../support/http-server.ts'
import { redisForTests } from '../../support/ledger.ts'
import { requestsOf } from '../../support/operation-requests.ts'
import {
  answersOf,
  fieldsOf,
  manners,
  operationFor,
  problemsOf,
  requestProblems,
  valueOf,
  type Manner,
} from '../../support/published-api.ts'
import { json, pretendService } from '../../support/replica.ts'
import { aFile } from '../cli/tocsin.ts'
import { aReplica, asked } from './operations/scene.ts'

const tests = redisForTests()
const counts = { requests: 0, answers: 0, rehearsed: 0 }
const covered = new Set<string>()

afterAll(() => {
  const { requests, answers, rehearsed } = counts
  process.stdout.write(
    `public documents: ${covered.size} of ${operations.length} operations, ${requests} requests and ${answers} answers checked, ${rehearsed} requests rehearsed in the sandbox\n`,
  )
})

const uid = 'paste/site/1'
const uuid = '7e5f1c70-0000-4000-8000-000000000001'

interface PublishedService {
  url: string
  client: UpstreamClient
  /** What of the requests so far is not as the documents have it. */
  problems: () => string[]
}

/** Answers every operation in one manner, and checks every request. */
async function aPublishedService(manner: Manner): Promise<PublishedService> {
  const server = await startHttpServer()
  onTestFinished(() => server.stop())
  const problems: string[] = []
  const service = pretendService(server)
  service.answer(({ method, path, body }) => {
    counts.requests += 1
    // what it said itself goes back to it as it came
    const isItsOwn = (problem: string): boolean =>
      method === 'PUT' && /added_later|word_of_tomorrow/.test(problem)
    problems.push(...requestProblems({ method, path, body }).filter((one) => !isItsOwn(one)))
    const operation = operationFor(method, path)
    if (!operation) return json(404, { detail: 'Not Found' })
    covered.add(operation.name)
    counts.answers += 1
    return json(200, pageFor(operation, manner, { path, body }))
  })
  const { client } = aReplica(tests, { baseUrl: server.url })
  return { url: server.url, client, problems: () => problems }
}

/** The page that the request's cursor names. */
function pageFor(
  operation: Operation,
  manner: Manner,
  { path, body }: { path: string; body: string },
): unknown {
  const query = new URLSearchParams(path.split('?')[1])
  const given = body === '' ? {} : (JSON.parse(body) as { from?: string })
  const cursor = query.get('search_after') ?? query.get('from') ?? given.from
  const wanted = query.get('uid')
  const status = operation.name.includes('/requests/') ? { status: 'completed' } : {}
  const fixed = { ...status, ...(wanted !== null && { uid: wanted }) }
  const pages = answersOf(operationWithItems(operation, query), manner, fixed)
  if (cursor === undefined) return pages[0]
  const isLast = pages.length === 2 || cursor === 'cursor-2'
  return pages[isLast ? pages.length - 1 : 1]
}

/** The expansion's answer is of the field that was asked for. */
function operationWithItems(operation: Operation, query: URLSearchParams): Operation {
  const { answer } = operation
  if (typeof answer !== 'object' || !('oneOf' in answer)) return operation
  return { ...operation, answer: answer.oneOf[query.get('field') === 'cookies' ? 1 : 0] as Shape }
}

/** Operations that the fixture leaves out: what they answer is told in a word, or nowhere. */
const undocumented = new Set([
  'events.act',
  'events.note',
  'credentials.act',
  'assets.get',
  'assets.delete',
  'reports.request',
  'reports.list',
  'tenants.list',
  'tokens.test',
])

const requests = requestsOf({
  uid,
  policy: uuid,
  reportRequest: uuid,
  report: 5,
  credentialHash: '43804850e72d054f3648660557330630',
  asset: 77,
  doomed: 77,
})
const rows = tocsinOperations.filter(
  ({ name, onlyBy }) => onlyBy === undefined && !undocumented.has(name),
)

/** All items of a request, page after page until `next` is empty. */
async function askAll(client: UpstreamClient, row: Row, request: Fields): Promise<unknown[]> {
  const items: unknown[] = []
  for (let from: string | null = null; ;) {
    const answer = await client.call(row as Row<Fields>, { ...request, from }, asked())
    if (!row.paging) return Array.isArray(answer) ? (answer as unknown[]) : []
    const { page } = answer as SearchPage
    items.push(...page.items)
    if (!page.next) return items
    from = page.next
  }
}

/** What is wrong with an item as the daemon reads it; null: nothing. */
function wrongWith(row: Row, item: unknown): unknown {
  const readers: [RegExp, (item: unknown) => { ok: boolean }][] = [
    [/^events\.search/, parseItem],
    [/^credentials\.(search|feed|tenant)/, (one) => parseCredential(one, 'high')],
  ]
  const read = readers.find(([names]) => names.test(row.name))?.[1]
  const parsed = read?.(item)
  if (parsed && !parsed.ok) return parsed
  return row.item?.safeParse(item).error ?? null
}

describe.each(manners)('answers with %s', (manner) => {
  test.each(rows)('are read by the client whole: $name', async (row) => {
    for (const request of requests[row.name] ?? []) {
      const { client, problems } = await aPublishedService(manner)
      const items = await askAll(client, row, request)
      expect(problems()).toEqual([])
      expect(items.map((item) => wrongWith(row, item))).toEqual(items.map(() => null))
      expect(items.length >= (row.paging ? 3 : 0)).toBe(true)
    }
  })

  test('are read by what takes more than one request', async () => {
    const { client, problems } = await aPublishedService(manner)
    const given = { name: 'a', search_types: ['leak'], risks: [4] } as const
    const domain = { ...given, type: 'domain', data: { fqdn: 'a.example' } } as const
    const email = { ...given, type: 'email', data: { email: 'a@a.example' } } as const
    for (const one of [domain, email]) {
      const asset = { ...one, search_types: [...one.search_types], risks: [...one.risks] }
      await client.createAsset({ asset: { ...asset, assets_group_id: 5 }, ...asked() })
      if (one === domain) await client.changeAsset({ id: 77, asset, ...asked() })
    }
    await client.toggleAsset({ id: 77, isDisabled: true, ...asked() })
    await client.deleteAsset({ id: 77, ...asked() })
    await client.listGroups({}, asked())
    await client.listIdentifiers({ types: ['domain'] }, asked())
    await client.checkHealth(AbortSignal.timeout(20_000))
    expect(await client.getEvent({ uid, ...asked() })).toMatchObject({ kind: 'detail' })
    expect(problems()).toEqual([])
  })

  const byHand: string[][] = [
    ['events', 'search', '--domain=example.com', '--all'],
    ['events', 'search', '--name=Ann Lee'],
    ['events', 'search', '--group=1042', '--severity=high', '--type=leak', '--since=7d', '--all'],
    ['events', 'search', '--tenant', '--all'],
    ['events', 'search', '--identifier=77', '--all'],
    ['events', 'get', uid],
    ['credentials', 'search', '--domain=a.example', '--include=urls', '--all'],
    ['assets', 'list', '--group=5', '--type=domain', '--enabled', '--all'],
    ['groups', 'list', '--all'],
  ]
  const commands = [
    ...byHand,
    ...rows.flatMap(({ name, paging, changes }) =>
      (requests[name] ?? []).slice(0, 1).map((request) => {
        const { size, ...others } = request
        return [
          'api',
          name,
          'REQUEST',
          JSON.stringify(paging ? others : request),
          ...(paging ? ['--all', ...(size === undefined ? [] : [`--size=${Number(size)}`])] : []),
          ...(changes ? ['--yes'] : []),
        ]
      }),
    ),
  ]

  test('are understood by every command, whose requests the service takes', async () => {
    const { url, problems } = await aPublishedService(manner)
    const config = aFile('tocsin.yaml', configText(url))
    for (const command of commands) {
      const { code, said } = await run([...command.flatMap(asOptions), '--config', config])
      expect([command, code, code === 0 ? '' : said]).toEqual([command, 0, ''])
      expect(problems()).toEqual([])
    }
  })
})

/** Path and query as options, all else in a file. */
function asOptions(word: string, at: number, words: string[]): string[] {
  if (word === 'REQUEST') return []
  if (words[at - 1] !== 'REQUEST') return [word]
  const row = rows.find(({ name }) => name === words[1])!
  const request = JSON.parse(word) as Fields
  const { inOptions = [], inBody = [] } = Object.groupBy(Object.entries(request), ([name]) =>
    row.path.includes(`{${name}}`) || row.query?.shape[name] ? 'inOptions' : 'inBody',
  )
  const options = inOptions.map(
    ([name, value]) => `--${name.replaceAll('_', '-')}=${[value].flat().map(String).join(',')}`,
  )
  if (!row.body) return options
  return [...options, '--body', aFile('body.json', JSON.stringify(Object.fromEntries(inBody)))]
}

function configText(url: string): string {
  return `redis: { url: "${tests.server.url}", prefix: published-${counts.requests} }
accounts:
  main: { base_url: "${url}", api_key: fw_k3y, limits: { search: 100, basic: 100 } }
feeds:
  brand: { type: events, identifier_group: 1042 }
sinks:
  soc: { type: slack, url: "https://hooks.slack.com/services/T0/B0/hush-hush" }
route: { sinks: [soc] }
`
}

async function run(args: string[]): Promise<{ code: number; said: string }> {
  const [input, output, errors] = [new PassThrough(), new PassThrough(), new PassThrough()]
  input.end()
  const clock = { ...systemClock, sleep: () => Promise.resolve() }
  const stop = new AbortController().signal
  const code = await runProgram(args, { input, output, errors, stop, clock })
  output.end()
  errors.end()
  return { code, said: (await text(errors)) + (await text(output)).slice(0, 500) }
}

describe('the sandbox', () => {
  interface Rehearsal {
    sandbox: Sandbox
    send: (operation: Operation, asked: Sent) => Promise<{ status: number; body: unknown }>
  }
  interface Sent {
    query?: Record<string, unknown>
    body?: unknown
  }

  async function aRehearsal(): Promise<Rehearsal> {
    const sandbox = await startSandbox({ enforceLimits: false })
    onTestFinished(() => sandbox.close())
    const place = { groupIds: [1042], identifiers: [{ id: 77, name: 'example.com' }] }
    sandbox.addEvent({ ...place, uid, type: 'stealer_log', override: null })
    sandbox.addEvent({ ...place, uid: 'paste/site/2', override: 'critical', tags: ['vip'] })
    sandbox.addCredentials(3, { domain: 'example.com' })
    const headers = { authorization: sandbox.apiKeys[0]! }
    const grant = await fetch(`${sandbox.url}/tokens/generate`, { method: 'POST', headers })
    const { token } = (await grant.json()) as { token: string }
    const auth = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
    const send = async (operation: Operation, { query, body }: Sent) => {
      const [method = '', path = ''] = operation.name.split(' ')
      const search = new URLSearchParams(
        Object.entries(query ?? {}).flatMap(([key, value]) =>
          [value].flat().map((one): [string, string] => [key, String(one)]),
        ),
      )
      const answer = await fetch(`${sandbox.url}${await placeIn(path)}?${search.toString()}`, {
        method,
        headers: auth,
        ...(body !== undefined && { body: JSON.stringify(body) }),
      })
      const said = await answer.text()
      counts.rehearsed += 1
      return { status: answer.status, body: said === '' ? null : (JSON.parse(said) as unknown) }
    }
    const { reportId, id: requestId } = sandbox.addReportRequest({ readyAtMs: 0 })
    let policy: string | undefined
    const placeIn = async (path: string): Promise<string> => {
      if (path.includes('{policy_uuid}')) policy = await newPolicy()
      const ids: Record<string, string> = {
        identifier_group_id: '1042',
        assets_group_id: '1042',
        identifier_id: '77',
        asset_id: '77',
        organization_id: '7',
        policy_uuid: policy ?? uuid,
        report_id: String(reportId),
        request_info_id: requestId,
      }
      return path.replaceAll(/\{(\w+)\}/g, (_all, name: string) => ids[name] ?? name)
    }
    const newPolicy = async (): Promise<string> => {
      const answer = await fetch(`${sandbox.url}/firework/v4/matching-policies`, {
        method: 'POST',
        headers: auth,
        body: JSON.stringify({ name: 'x', type: 'INCLUDED_KEYWORDS', value: { keywords: ['a'] } }),
      })
      return ((await answer.json()) as { uuid: string }).uuid
    }
    return { sandbox, send }
  }

  /** Fields whose words depend on others, or on what the sandbox holds. */
  const given: Record<string, Record<string, unknown>> = {
    'POST /firework/v2/assets/': { type: 'domain', data: { fqdn: 'new.example' }, risks: [4] },
    'PUT /firework/v2/assets/{asset_id}': {
      type: 'domain',
      data: { fqdn: 'b.example' },
      risks: [4],
    },
    'GET /firework/v4/events/': { uid },
    'GET /firework/v4/events/_expand': { uid },
    'GET /firework/v2/activities/': { uid },
  }
  const writtenIdentifier = { data: { type: 'domain', fqdn: 'a.example' }, group_id: 1042 }
  const fixedFor = ({ name }: Operation): Record<string, unknown> => ({
    identifier_ids: [77],
    assets_group_id: 1042,
    from: undefined,
    search_after: undefined,
    ...given[name],
    ...(/^(POST|PUT) .*v4\/identifiers\//.test(name) && writtenIdentifier),
  })

  /** Every request that one more word, or one field less, makes of a body or query. */
  function variants(shape: Shape, whole: Record<string, unknown>): Record<string, unknown>[] {
    if (typeof shape !== 'object' || !('fields' in shape)) return []
    return fieldsOf(shape.fields).flatMap(({ name, shape: inner, isRequired }) => {
      if (whole[name] === undefined) return []
      const put = (value: unknown): Record<string, unknown> => ({ ...whole, [name]: value })
      const less = isRequired ? [] : [without(whole, name)]
      if (typeof inner !== 'object') return less
      if ('words' in inner) return [...less, ...inner.words.map(put)]
      if ('list' in inner && typeof inner.list === 'object' && 'words' in inner.list) {
        return [...less, put([]), ...inner.list.words.map((word) => put([word]))]
      }
      if ('between' in inner) return [...less, put(inner.between[0]), put(inner.between[1])]
      if ('oneOf' in inner) {
        return [...less, ...inner.oneOf.map((one) => put(valueOf(one, 'everything')))]
      }
      if ('fields' in inner) {
        const within = variants(inner, whole[name] as Record<string, unknown>)
        return [...less, ...within.map(put)]
      }
      return less
    })
  }

  function without(whole: Record<string, unknown>, name: string): Record<string, unknown> {
    return Object.fromEntries(Object.entries(whole).filter(([key]) => key !== name))
  }

  /** Requests that break what the documents say, each in one place. */
  function mistakes(shape: Shape, whole: Record<string, unknown>): Record<string, unknown>[] {
    if (typeof shape !== 'object' || !('fields' in shape)) return []
    return fieldsOf(shape.fields).flatMap(({ name, shape: inner, isRequired }) => {
      const put = (value: unknown): Record<string, unknown> => ({ ...whole, [name]: value })
      const less = isRequired ? [without(whole, name)] : []
      if (typeof inner !== 'object') return inner === 'flag' ? [...less, put('perhaps')] : less
      if ('words' in inner) return [...less, put('no_such_word')]
      if ('list' in inner && typeof inner.list === 'object' && 'words' in inner.list) {
        return [...less, put(['no_such_word'])]
      }
      if ('between' in inner) return [...less, put(inner.between[0] - 1), put(inner.between[1] + 1)]
      if ('oneOf' in inner) return [...less, put({ type: 'no_such_kind' })]
      if ('fields' in inner && typeof whole[name] === 'object') {
        const within = mistakes(inner, whole[name] as Record<string, unknown>)
        return [...less, ...within.map(put)]
      }
      return less
    })
  }

  const shapesOf = ({ body }: Operation): readonly Shape[] => {
    if (body === undefined) return []
    return typeof body === 'object' && 'oneOf' in body ? body.oneOf : [body]
  }

  const part = (operation: Operation): { shape: Shape; as: 'query' | 'body' }[] => [
    ...shapesOf(operation).map((shape) => ({ shape, as: 'body' as const })),
    ...(operation.query ? [{ shape: { fields: operation.query }, as: 'query' as const }] : []),
  ]

  /** Which fields of which operation the sandbox judges by more than the documents say. */
  const isJudgedByMore = (operation: Operation, request: Record<string, unknown>): boolean =>
    // its data, of each type
    (/^(POST|PUT) .*v4\/identifiers\//.test(operation.name) &&
      JSON.stringify(request['data']) !== JSON.stringify(writtenIdentifier.data)) ||
    (operation.name.includes('/assets/') && (request['type'] ?? 'domain') !== 'domain') ||
    (operation.name.startsWith('PUT') &&
      typeof request['value'] === 'object' &&
      !('keywords' in (request['value'] ?? {})))

  test.each(operations)(
    'takes what is documented, and answers as documented: $name',
    async (operation) => {
      const { send } = await aRehearsal()
      covered.add(operation.name)
      const requests = part(operation).flatMap(({ shape, as }) => {
        const fixed = fixedFor(operation)
        const all = (manner: Manner): Record<string, unknown> =>
          valueOf(shape, manner, fixed) as Record<string, unknown>
        const whole = all('everything')
        const each = [whole, all('required'), ...variants(shape, whole)]
        const odd = as === 'body' ? [{ ...whole, added_later: 1 }] : []
        return [...each, ...odd]
          .filter((request) => !isJudgedByMore(operation, request))
          .map((request): Sent => ({ [as]: defined(request) }))
      })
      for (const request of requests.length > 0 ? requests : [{}]) {
        const { status, body } = await send(operation, request)
        const said = JSON.stringify({ request, body })
        expect([status, said]).toEqual([200, said])
        expect(problemsOf(operation.answer, body, false)).toEqual([])
        counts.answers += 1
      }
    },
  )

  test.each(operations.filter((operation) => part(operation).length > 0))(
    'refuses what breaks the documents: $name',
    async (operation) => {
      const { send } = await aRehearsal()
      const requests = part(operation).flatMap(({ shape, as }) => {
        const whole = valueOf(shape, 'everything', fixedFor(operation)) as Record<string, unknown>
        return mistakes(shape, whole).map((request): Sent => ({ [as]: defined(request) }))
      })
      for (const request of requests) {
        const { status } = await send(operation, request)
        expect([status >= 400 && status < 500, JSON.stringify(request)]).toEqual([
          true,
          JSON.stringify(request),
        ])
      }
    },
  )

  test('takes every filter word of the documents, and refuses every item type that is none', async () => {
    const { send } = await aRehearsal()
    const search = operations.find(({ name }) => name.includes('tenant/_search'))!
    const filters = new Set(vocabularies.filters)
    const others = vocabularies.items.filter((type) => !filters.has(type))
    expect([filters.size, vocabularies.items.length, others.length]).toEqual([59, 76, 39])
    for (const type of others) {
      const { status } = await send(search, { body: { filters: { type: [type] } } })
      expect([type, status]).toEqual([type, 422])
    }
    expect(new Set(eventFilterTypes)).toEqual(filters)
  })
})

function defined(request: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(request).filter(([, value]) => value !== undefined))
}
