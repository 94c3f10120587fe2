/**
 * The client against what the service's public documents say of each operation:
 * paths, parameters, bodies, and answers in three manners. What is said there stands in
 * `test/fixtures/published-api.ts`.
 */
import { describe, expect, onTestFinished, test } from 'vitest'
import { parseCredential } from '../../../src/feeds/types/credentials.ts'
import { parseItem } from '../../../src/feeds/types/events.ts'
import type { UpstreamClient } from '../../../src/upstream/client.ts'
import type {
  Fields,
  Operation as Row,
  SearchPage,
} from '../../../src/upstream/resources/operation.ts'
import { operations as tocsinOperations } from '../../../src/upstream/resources/operations.ts'
import type { Operation, Shape } from '../../fixtures/published-api.ts'
import { startHttpServer } from '../../support/http-server.ts'
import { redisForTests } from '../../support/ledger.ts'
import { requestsOf } from '../../support/operation-requests.ts'
import {
  answersOf,
  manners,
  operationFor,
  requestProblems,
  type Manner,
} from '../../support/published-api.ts'
import { json, pretendService } from '../../support/replica.ts'
import { aReplica, asked } from './operations/scene.ts'

const tests = redisForTests()

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
    // what it said itself goes back to it as it came
    const isItsOwn = (problem: string): boolean =>
      method === 'PUT' && /added_later|word_of_tomorrow/.test(problem)
    problems.push(...requestProblems({ method, path, body }).filter((one) => !isItsOwn(one)))
    const operation = operationFor(method, path)
    if (!operation) return json(404, { detail: 'Not Found' })
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
    [/^credentials\.(search|feed|tenant)/, (one) => parseCredential(one, { severity: 'high' })],
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

  test('are read as a full event, and as a service that is well', async () => {
    const { client, problems } = await aPublishedService(manner)
    await client.checkHealth(AbortSignal.timeout(20_000))
    const kind = manner === 'required' ? 'none' : 'detail'
    expect(await client.getEvent({ uid, ...asked() })).toMatchObject({ kind })
    expect(problems()).toEqual([])
  })
})
