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

function slackSink(options: { url?: Secret } = {}): Sink {
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
