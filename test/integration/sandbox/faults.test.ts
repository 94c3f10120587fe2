/** Faults over HTTP: for whoever runs the sandbox, and for no web page. What each does shows in the daemon's tests. */
import { once } from 'node:events'
import { request, type IncomingMessage } from 'node:http'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startSandbox, type Sandbox } from '../../../src/sandbox/sandbox.ts'
import { ask, post } from './client.ts'

let sandbox: Sandbox
beforeAll(async () => {
  sandbox = await startSandbox()
})
afterAll(() => sandbox.close())

test('faults can be set, seen and cleared over HTTP', async () => {
  const url = `${sandbox.url}/_sandbox/faults`
  const health = `${sandbox.url}/firework/v4/health`
  await post(url, [{ on: '/firework/*', effect: 'status', status: 502, times: 2 }])
  expect((await ask(health)).status).toBe(502)
  expect((await ask(`${sandbox.url}/_sandbox/state`)).json).toMatchObject({
    faults: [{ on: '/firework/*', effect: 'status', hits: 1 }],
  })
  expect((await post(url, { on: '*', effect: 'explode' })).status).toBe(400)
  expect((await post(url, '{')).status).toBe(400)
  await ask(url, { method: 'DELETE' })
  expect((await ask(health)).status).not.toBe(502)
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
