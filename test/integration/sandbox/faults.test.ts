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

test('a fault strikes as often as it says, only where it says', async () => {
  sandbox.faults.add({ on: '/firework/*/1042/_search', effect: 'status', status: 500, times: 2 })
  expect((await searchGroup(sandbox, token, {}, 1043)).status).toBe(200)
  const statuses = []
  for (let count = 0; count < 3; count++) statuses.push((await searchGroup(sandbox, token)).status)
  expect(statuses).toEqual([500, 500, 200])
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
