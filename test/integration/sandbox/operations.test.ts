/** Every row of the table of operations: the sandbox answers it, and checks its requests by it. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { plainQuery, toDocument } from '../../../src/sandbox/api/query.ts'
import { startSandbox, type Sandbox } from '../../../src/sandbox/sandbox.ts'
import {
  buildRequest,
  type Fields,
  type Operation,
  parameterNames,
} from '../../../src/upstream/resources/operation.ts'
import { operations } from '../../../src/upstream/resources/operations.ts'
import { requestsOf } from '../../support/operation-requests.ts'
import { ask, post, tokenOf, type Answer } from './client.ts'

let sandbox: Sandbox
let token: string
let requests: Record<string, readonly Fields[]>

beforeAll(async () => {
  sandbox = await startSandbox({ enforceLimits: false })
  token = await tokenOf(sandbox)
  const uid = 'stealer_log/stealer_logs_live/1'
  const identifiers = [{ id: 77, name: 'example.com' }]
  sandbox.addEvent({ uid, type: 'stealer_log', groupIds: [1042], identifiers })
  sandbox.addCredentials([{ hash: 'pa55', identityName: 'a@example.com', identifierIds: [77] }])
  const { reportId, id } = sandbox.addReportRequest({ readyAtMs: 0 })
  const policy = { name: 'x', type: 'INCLUDED_KEYWORDS', value: { keywords: ['x'] } }
  const authorization = `Bearer ${token}`
  const made = await post(`${sandbox.url}/firework/v4/matching-policies`, policy, { authorization })
  const feed = await ask(`${sandbox.url}/firework/v2/me/feed/credentials`, {
    headers: { authorization },
  })
  const { items } = feed.json as { items: { credential_hash: string }[] }
  requests = {
    ...requestsOf({
      uid,
      asset: 77,
      doomed: 78,
      report: reportId,
      reportRequest: id,
      policy: (made.json as { uuid: string }).uuid,
      credentialHash: items[0]!.credential_hash,
    }),
    'reports.download': [{ report_id: reportId, format: 'pdf' }],
  }
})
afterAll(() => sandbox.close())

interface Sent {
  path: string
  body?: unknown
}

function built(row: Operation): Sent & { method: string } {
  return buildRequest(row, requests[row.name]?.[0] ?? {})
}

function send(row: Operation, { path, body }: Sent, authorization: string): Promise<Answer> {
  return ask(sandbox.url + path, {
    method: row.method,
    headers: { authorization, 'content-type': 'application/json' },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  })
}

const open = ['tokens.generate', 'health.check']
/** How a request that breaks a row is refused, by the version of its path. */
function refusalOf({ path }: Operation): object {
  const isOlder = /^\/firework\/v[23]\//.test(path)
  if (isOlder) return { status: 400, json: { code: 'BAD_REQUEST' } }
  return { status: 422, json: { detail: [{ ctx: {} }] } }
}

describe('a request that breaks its row is refused, in the shape of its version', () => {
  test.each(operations.filter(({ query }) => query !== undefined))(
    'a parameter that $name has not',
    async (row) => {
      const { path, body } = built(row)
      const more = `${path}${path.includes('?') ? '&' : '?'}no_such_parameter=1`
      expect(await send(row, { path: more, body }, `Bearer ${token}`)).toMatchObject(refusalOf(row))
    },
  )

  test.each(operations.filter(({ body }) => body !== undefined))(
    'a body of $name that is none',
    async (row) => {
      const { path } = built(row)
      expect(await send(row, { path, body: [7] }, `Bearer ${token}`)).toMatchObject(refusalOf(row))
    },
  )

  test.each(operations.filter((row) => parameterNames(row).length > 0))(
    'a parameter in the path of $name that is none',
    async (row) => {
      const { body } = built(row)
      const path = row.path.replaceAll(/\{\w+\}/g, '%20')
      expect(await send(row, { path, body }, `Bearer ${token}`)).toMatchObject(refusalOf(row))
    },
  )
})

describe('a request without a token', () => {
  test.each(operations.filter(({ name }) => !open.includes(name)))(
    'is refused: $name',
    async (row) => {
      expect((await send(row, built(row), 'Bearer none')).status).toBe(401)
    },
  )
})

test.each([
  ['fresh', true],
  ['fres', false],
  ['fres*', true],
  ['*', true],
  ['stale fresh', true],
  ['"fresh log"', true],
  ['"log fresh"', false],
  ['type:paste', true],
  ['type:leak', false],
])('a query for %s finds by words and fields: %s', (query, isFound) => {
  const [event] = sandbox.addEvents(1, {
    type: 'paste',
    highlights: { content: ['a <mark>Fresh</mark> log'] },
  })
  expect(plainQuery(query)(toDocument(event!))).toBe(isFound)
})
