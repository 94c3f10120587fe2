import { once } from 'node:events'
import { request, type IncomingMessage } from 'node:http'
import { afterEach, beforeEach, expect, test } from 'vitest'
import type { FaultInput } from '../../../src/sandbox/server.ts'
import { startSandbox, type Sandbox } from '../../../src/sandbox/sandbox.ts'
import { ask, post, searchGroup, tokenOf, type Answer } from './client.ts'

let sandbox: Sandbox
let token: string

beforeEach(async () => {
  sandbox = await startSandbox({ enforceLimits: false })
  sandbox.addEvents(10)
  token = await tokenOf(sandbox)
})
afterEach(() => sandbox.close())

function struckBy(fault: Omit<FaultInput, 'on'>): Promise<Answer> {
  sandbox.faults.add({ on: '/firework/*', times: 1, ...fault })
  return searchGroup(sandbox, token)
}

test.each([
  [{ status: 400 }, { error: { code: 'BAD_REQUEST', data: null } }],
  [
    { status: 400, code: 'INVALID_IDENTIFIER_DATA' },
    { error: { code: 'INVALID_IDENTIFIER_DATA' } },
  ],
  [{ status: 401 }, { error: { code: 'UNAUTHORIZED' } }],
  [
    { status: 403, body: 'message' as const, message: 'no' },
    { message: 'no', code: 'FORBIDDEN' },
  ],
  [{ status: 422 }, { detail: [{ loc: ['body'] }] }],
  [{ status: 500 }, { error: { code: 'ERROR' } }],
])('%o answers once with its status and shape', async (fault, body) => {
  const answer = await struckBy({ effect: 'status', ...fault })
  expect(answer).toMatchObject({ status: fault.status, json: body })
  expect((await searchGroup(sandbox, token)).status).toBe(200)
})

test.each([502, 504])('a gateway says %i in plain text', async (status) => {
  const answer = await struckBy({ effect: 'status', status })
  expect(answer).toMatchObject({ status, text: 'upstream request timeout', json: undefined })
  expect(answer.headers.get('content-type')).toContain('text/plain')
})

test('a 429 tells when to come back, if so asked', async () => {
  const told = await struckBy({ effect: 'status', status: 429, headers: { 'retry-after': '7' } })
  expect(told).toMatchObject({ status: 429, json: { error: { code: 'RATELIMIT_REACHED' } } })
  expect(told.headers.get('retry-after')).toBe('7')
  const untold = await struckBy({ effect: 'status', status: 429 })
  expect(untold.headers.get('retry-after')).toBeNull()
})

test('a fault may strike the requests of some organizations alone', async () => {
  const other = await startSandbox({
    organizations: [
      { id: 7, keys: [{ key: 'fw_sandbox', tenants: [42] }] },
      { id: 8, keys: [{ key: 'fw_other', tenants: [43] }] },
    ],
  })
  try {
    other.faults.add({ on: '*', effect: 'status', status: 503, organizations: [8] })
    await expect(tokenOf(other, 'fw_other', 43)).rejects.toThrow('no token: 503')
    const admitted = await tokenOf(other)
    expect((await searchGroup(other, admitted)).status).toBe(200)
  } finally {
    await other.close()
  }
})

test('a hanging request is never answered, and closing ends it', async () => {
  const hanging = struckBy({ effect: 'hang' })
  await expect.poll(() => sandbox.requests.at(-1)?.fault).toBe('hang')
  expect(sandbox.requests.at(-1)?.status).toBeNull()
  await Promise.all([expect(hanging).rejects.toThrow('fetch failed'), sandbox.close()])
})

test('an answer cut in the middle, and one that is lost, break the connection', async () => {
  await expect(struckBy({ effect: 'cut' })).rejects.toThrow('terminated')
  await expect(struckBy({ effect: 'lose-answer' })).rejects.toThrow('fetch failed')
  await expect(struckBy({ effect: 'refuse' })).rejects.toThrow('fetch failed')
  expect((await searchGroup(sandbox, token)).status).toBe(200)
  expect(sandbox.requests.slice(-4).map(({ status }) => status)).toEqual([null, null, null, 200])
})

test('a token whose answer was lost has been handed out all the same', async () => {
  sandbox.faults.add({ on: '/tokens/generate', effect: 'lose-answer', times: 1 })
  await expect(tokenOf(sandbox)).rejects.toThrow('fetch failed')
  expect(sandbox.tokens.issued()).toBe(2)
})

test('a 200 can lie: half a JSON, or another shape', async () => {
  const half = await struckBy({ effect: 'invalid-json' })
  expect(half).toMatchObject({ status: 200, json: undefined })
  expect(half.text).toMatch(/^\{"items":/)
  expect(await struckBy({ effect: 'wrong-shape' })).toMatchObject({
    status: 200,
    json: { items: { 0: 'not a list' } },
  })
})

test('a delayed request is answered after its delay', async () => {
  const before = performance.now()
  expect((await struckBy({ effect: 'delay', ms: 60 })).status).toBe(200)
  expect(performance.now() - before).toBeGreaterThan(55)
})

test('a fault strikes as often as it says, only where it says', async () => {
  sandbox.faults.add({ on: '/firework/*/1042/_search', effect: 'status', status: 500, times: 2 })
  expect((await searchGroup(sandbox, token, {}, 1043)).status).toBe(200)
  const statuses = []
  for (let count = 0; count < 3; count++) statuses.push((await searchGroup(sandbox, token)).status)
  expect(statuses).toEqual([500, 500, 200])
})

test('a fault can wait for a cursor', async () => {
  sandbox.addEvents(10)
  sandbox.faults.add({ on: '/firework/*', effect: 'status', status: 400, withCursor: true })
  const first = await searchGroup(sandbox, token, { order: 'asc' })
  expect(first.status).toBe(200)
  const { next: from } = first.json as { next: string }
  expect((await searchGroup(sandbox, token, { order: 'asc', from })).status).toBe(400)
})

test('a fault with a probability strikes about that often', async () => {
  sandbox.faults.add({ on: '*', effect: 'status', status: 503, probability: 0.3 })
  const answers = await Promise.all(Array.from({ length: 100 }, () => searchGroup(sandbox, token)))
  const struck = answers.filter(({ status }) => status === 503).length
  expect(struck).toBeGreaterThan(10)
  expect(struck).toBeLessThan(60)
})

test('faults can be set, seen and cleared over HTTP', async () => {
  const url = `${sandbox.url}/_sandbox/faults`
  await post(url, [{ on: '/firework/*', effect: 'status', status: 502 }])
  expect((await searchGroup(sandbox, token)).status).toBe(502)
  expect((await ask(`${sandbox.url}/_sandbox/state`)).json).toMatchObject({
    faults: [{ on: '/firework/*', effect: 'status', hits: 1 }],
  })
  expect((await post(url, { on: '*', effect: 'explode' })).status).toBe(400)
  expect((await post(url, '{')).status).toBe(400)
  await ask(url, { method: 'DELETE' })
  expect((await searchGroup(sandbox, token)).status).toBe(200)
})

test.each([
  ['of another origin', { origin: 'https://attacker.example' }],
  ['without an origin that its browser tells', { origin: 'null' }],
  ['that its browser calls foreign', { 'sec-fetch-site': 'cross-site' }],
  ['whose name was made to lead here', { host: 'rebound.attacker.example' }],
])('a web page %s cannot set faults or read what stands', async (_which, headers) => {
  const { port } = new URL(sandbox.url)
  for (const [method, path] of [
    ['POST', '/_sandbox/faults'],
    ['GET', '/_sandbox/state'],
    ['DELETE', '/%5Fsandbox/faults'],
  ] as const) {
    const sent = request({ host: '127.0.0.1', port, method, path, headers })
    if (method === 'POST') sent.write('{"on":"*","effect":"status","status":500}')
    const [answer] = (await once(sent.end(), 'response')) as [IncomingMessage]
    expect(answer.resume().statusCode).toBe(403)
  }
  expect(sandbox.faults.list()).toEqual([])
})
