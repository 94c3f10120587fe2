import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { systemClock } from '../../../../src/lib/clock.ts'
import { createLogger } from '../../../../src/lib/logger.ts'
import { secretFromFile, secretFromText, type Secret } from '../../../../src/lib/secret.ts'
import { SinkError, type Sink } from '../../../../src/sinks/sink.ts'
import { createSlackSink } from '../../../../src/sinks/slack/slack-sink.ts'
import { aDelivery } from '../../../support/deliveries.ts'
import { startHttpServer, type HttpServer } from '../../../support/http-server.ts'

let server: HttpServer
let folder: string

beforeEach(async () => {
  server = await startHttpServer()
  folder = mkdtempSync(join(tmpdir(), 'slack-sink-'))
})

afterEach(async () => {
  await server.stop()
  rmSync(folder, { recursive: true })
})

test('refused blocks are followed at once by the same in plain words', async () => {
  const sink = slackSink()
  server.script((_request, index) =>
    index === 0 ? { status: 400, body: 'invalid_blocks' } : { status: 200, body: 'ok' },
  )
  const delivery = aDelivery(sink, { mayBeRepeat: true, attempt: 2 })
  const { answer } = await sink.send(delivery, { signal: patience() })
  expect(answer).toContain('plain words')
  const plain = bodyOf(1)
  expect(plain['blocks']).toBeUndefined()
  expect(plain).toMatchObject({ unfurl_links: false, unfurl_media: false })
  expect(plain['text']).toContain('HIGH Stealer log')
  expect(plain['text']).toContain('May be a repeat')
  expect(plain['text']).toContain(delivery.id)
})

test('a lost answer to the plain words is an answer lost', async () => {
  const sink = slackSink()
  server.script((_request, index) =>
    index === 0 ? { status: 400, body: 'invalid_blocks' } : 'cut',
  )
  expect((await failureOf(sink)).reason).toBe('connection_lost')
})

test('a sink that is gone is asked only once', async () => {
  const sink = slackSink()
  server.script({ status: 404, body: 'no_service' })
  const error = await failureOf(sink)
  expect(error.message).toBe(
    'slack answered 404 no_service; make a new incoming webhook in Slack and put its URL into this sink',
  )
  expect(error.status).toBe(404)
  expect(server.requests).toHaveLength(1)
})

test('a redirect is not followed', async () => {
  const sink = slackSink()
  server.script({ status: 307, headers: { location: `${server.url}/elsewhere` } })
  expect((await failureOf(sink)).reason).toBe('redirected')
  expect(server.requests.map(({ path }) => path)).toEqual(['/services/T0/B0/token'])
})

test('server errors are not tried again', async () => {
  const sink = slackSink()
  server.script({ status: 503 })
  expect((await failureOf(sink)).reason).toBe('unavailable')
  expect(server.requests).toHaveLength(1)
})

test.each(['http://hooks.slack.com/services/x', 'https://user:pw@hooks.slack.com/x', 'nonsense'])(
  'the URL %s is refused without repeating it',
  async (text) => {
    const error = await failureOf(slackSink({ url: secretFromText(text), allowPrivate: false }))
    expect(error.reason).toBe('misconfigured')
    expect(error.message).not.toContain(text)
  },
)

test('a server that speaks no TLS gets nothing', async () => {
  const url = secretFromText(`https://127.0.0.1:${server.port}/services/T0/B0/token`)
  const error = await failureOf(slackSink({ url }))
  expect(error.reason).toBe('misconfigured')
  expect(server.requests).toEqual([])
})

test('the URL is read from its file at each send', async () => {
  const file = join(folder, 'url')
  const sink = slackSink({ url: secretFromFile(file) })
  expect((await failureOf(sink)).reason).toBe('misconfigured')
  for (const path of ['/services/old', '/services/new']) {
    writeFileSync(file, `${server.url}${path}\n`)
    await sink.send(aDelivery(sink), { signal: patience() })
  }
  expect(server.requests.map(({ path }) => path)).toEqual(['/services/old', '/services/new'])
})

test('that no connection came in time is said in words', async () => {
  const sink = slackSink()
  const signal = AbortSignal.abort(new DOMException('the time is up', 'TimeoutError'))
  await expect(sink.send(aDelivery(sink), { signal })).rejects.toMatchObject({
    reason: 'unavailable',
    message: 'slack was not reached (the time was up)',
  })
})

function slackSink(options: { url?: Secret; allowPrivate?: boolean } = {}): Sink {
  return createSlackSink(
    {
      name: 'soc',
      type: 'slack',
      url: secretFromText(`${server.url}/services/T0/B0/token`),
      limitPerSecond: 1,
      allowPrivate: true,
      digest: undefined,
      reveal: false,
      ...options,
    },
    { logger: createLogger({ level: 'silent' }), clock: systemClock },
  )
}

async function failureOf(sink: Sink): Promise<SinkError> {
  const error = await sink.send(aDelivery(sink), { signal: patience() }).catch((e: unknown) => e)
  if (error instanceof SinkError) return error
  throw new Error(`expected a SinkError, not ${JSON.stringify(error)}`, { cause: error })
}

function bodyOf(index: number): Record<string, unknown> {
  return JSON.parse(server.requests[index]!.body) as Record<string, unknown>
}

function patience(): AbortSignal {
  return AbortSignal.timeout(45_000)
}
