/** What Slack and Teams have of their own beside what every sink promises. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { systemClock } from '../../../src/lib/clock.ts'
import { createLogger } from '../../../src/lib/logger.ts'
import { secretFromFile, secretFromText } from '../../../src/lib/config/secret.ts'
import type { Delivery, Sink } from '../../../src/sinks/sink.ts'
import { createSlackSink } from '../../../src/sinks/slack/slack-sink.ts'
import { createTeamsSink } from '../../../src/sinks/teams/teams-sink.ts'
import { aDelivery } from '../../support/deliveries.ts'
import { startHttpServer, type HttpServer } from '../../support/http-server.ts'
import { failureOf } from './webhook/harness.ts'

let server: HttpServer
let folder: string

beforeEach(async () => {
  server = await startHttpServer()
  folder = mkdtempSync(join(tmpdir(), 'chat-sinks-'))
})

afterEach(async () => {
  await server.stop()
  rmSync(folder, { recursive: true })
})

test('refused blocks are followed at once by the same in plain words', async () => {
  const sink = chatSink('slack')
  server.script((_request, index) =>
    index === 0 ? { status: 400, body: 'invalid_blocks' } : { status: 200, body: 'ok' },
  )
  const delivery = aDelivery(sink, { mayBeRepeat: true, attempt: 2 })
  const { answer } = await sink.send(delivery, { signal: patience() })
  expect(answer).toContain('plain words')
  const plain = JSON.parse(server.requests[1]!.body) as Record<string, unknown>
  expect(plain['blocks']).toBeUndefined()
  expect(plain).toMatchObject({ unfurl_links: false, unfurl_media: false })
  expect(plain['text']).toContain('HIGH · Stealer log')
  expect(plain['text']).toContain('May be a repeat')
  expect(plain['text']).toContain(delivery.id)
})

test('a lost answer to the plain words is an answer lost', async () => {
  server.script((_request, index) =>
    index === 0 ? { status: 400, body: 'invalid_blocks' } : 'cut',
  )
  expect((await failureOf(send(chatSink('slack')))).reason).toBe('connection_lost')
})

test('a 202 of Teams is accepted, and the receipt says that nothing is posted yet', async () => {
  server.script({ status: 202 })
  expect(await send(chatSink('teams', '/invoke?sig=abc'))).toEqual({
    answer:
      '202: the workflow took the message and posts it later; its run history shows whether it did',
  })
  const [{ method, path, headers } = {}] = server.requests
  expect({ method, path }).toEqual({ method: 'POST', path: '/invoke?sig=abc' })
  expect(headers?.['content-type']).toBe('application/json; charset=utf-8')
})

test('a workflow with an answer of its own is taken at its word', async () => {
  server.script({ status: 200, body: 'posted' })
  expect(await send(chatSink('teams'))).toEqual({ answer: '200: the workflow answered' })
})

test.each([
  [
    'slack',
    { status: 404, body: 'no_service' },
    'slack answered 404 no_service; make a new incoming webhook in Slack and put its URL into this sink',
  ],
  [
    'teams',
    { status: 400, body: '{"error":{"code":"WorkflowTriggerIsNotEnabled","message":"…"}}' },
    'the workflow answered 400 WorkflowTriggerIsNotEnabled; turn the workflow on in Teams, or make a new one, and copy its whole URL into this sink',
  ],
  [
    'teams',
    { status: 401 },
    'the workflow answered 401; the signature in the URL does not hold (any more): copy the URL of the workflow again',
  ],
] as const)('%s says the answer %j with its remedy, once', async (type, answer, message) => {
  server.script(answer)
  expect(await failureOf(send(chatSink(type)))).toMatchObject({ message, status: answer.status })
  expect(server.requests).toHaveLength(1)
})

test.each(['slack', 'teams'] as const)(
  '%s reads its URL from the file at each send, and refuses what is not for it',
  async (type) => {
    const file = join(folder, 'url')
    const sink = chatSink(type, file)
    expect((await failureOf(send(sink))).reason).toBe('misconfigured')
    for (const path of ['/old?sig=a', '/new?sig=b']) {
      writeFileSync(file, `${server.url}${path}\n`)
      await send(sink)
    }
    expect(server.requests.map(({ path }) => path)).toEqual(['/old?sig=a', '/new?sig=b'])
    const host = type === 'slack' ? 'prod-1.westeurope.logic.azure.com' : 'hooks.slack.com'
    writeFileSync(file, `https://${host}/the-secret`)
    const { reason, message } = await failureOf(send(sink))
    expect(reason).toBe('misconfigured')
    expect(message).toContain(`write type: ${type === 'slack' ? 'teams' : 'slack'}`)
    expect(message).not.toContain('the-secret')
  },
)

/** `at`: a path at the server, or a file of the address. */
function chatSink(type: 'slack' | 'teams', at = '/services/T0/B0/token'): Sink {
  const url = at.startsWith(folder) ? secretFromFile(at) : secretFromText(`${server.url}${at}`)
  const config = {
    name: 'soc',
    url,
    limitPerSecond: 1,
    allowPrivate: true,
    digest: undefined,
    reveal: false,
  }
  const parts = { logger: createLogger({ level: 'silent' }), clock: systemClock }
  return type === 'slack'
    ? createSlackSink({ ...config, type }, parts)
    : createTeamsSink({ ...config, type }, parts)
}

function send(sink: Sink, delivery: Partial<Delivery> = {}): Promise<unknown> {
  return sink.send(aDelivery(sink, delivery), { signal: patience() })
}

function patience(): AbortSignal {
  return AbortSignal.timeout(45_000)
}
