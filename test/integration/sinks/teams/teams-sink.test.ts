import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { systemClock } from '../../../../src/lib/clock.ts'
import { createLogger } from '../../../../src/lib/logger.ts'
import { secretFromFile, secretFromText, type Secret } from '../../../../src/lib/secret.ts'
import { SinkError, type Sink } from '../../../../src/sinks/sink.ts'
import { createTeamsSink } from '../../../../src/sinks/teams/teams-sink.ts'
import { aDelivery } from '../../../support/deliveries.ts'
import { startHttpServer, type HttpServer } from '../../../support/http-server.ts'

let server: HttpServer
let folder: string

beforeEach(async () => {
  server = await startHttpServer()
  folder = mkdtempSync(join(tmpdir(), 'teams-sink-'))
})

afterEach(async () => {
  await server.stop()
  rmSync(folder, { recursive: true })
})

test('a 202 is accepted, and the receipt says that nothing is posted yet', async () => {
  const sink = teamsSink()
  server.script({ status: 202 })
  const { answer } = await sink.send(aDelivery(sink), { signal: patience() })
  expect(answer).toBe(
    '202: the workflow took the message and posts it later; its run history shows whether it did',
  )
  const [{ method, path, headers } = {}] = server.requests
  expect({ method, path }).toEqual({ method: 'POST', path: '/invoke?sig=abc' })
  expect(headers?.['content-type']).toBe('application/json; charset=utf-8')
})

test('a workflow with an answer of its own is taken at its word', async () => {
  const sink = teamsSink()
  server.script({ status: 200, body: 'posted' })
  const { answer } = await sink.send(aDelivery(sink), { signal: patience() })
  expect(answer).toBe('200: the workflow answered')
})

test.each([
  [
    { status: 400, body: '{"error":{"code":"WorkflowTriggerIsNotEnabled","message":"…"}}' },
    'the workflow answered 400 WorkflowTriggerIsNotEnabled; turn the workflow on in Teams, or make a new one, and copy its whole URL into this sink',
  ],
  [
    { status: 404 },
    'the workflow answered 404; turn the workflow on in Teams, or make a new one, and copy its whole URL into this sink',
  ],
  [
    { status: 401 },
    'the workflow answered 401; the signature in the URL does not hold (any more): copy the URL of the workflow again',
  ],
])('the answer %j is said with its remedy', async (answer, message) => {
  server.script(answer)
  const error = await failureOf(teamsSink())
  expect(error).toMatchObject({ message, status: answer.status })
  expect(server.requests).toHaveLength(1)
})

test('the URL is read from its file at each send, and a connector in it is refused then too', async () => {
  const file = join(folder, 'url')
  const sink = teamsSink({ url: secretFromFile(file) })
  for (const path of ['/old?sig=a', '/new?sig=b']) {
    writeFileSync(file, `${server.url}${path}\n`)
    await sink.send(aDelivery(sink), { signal: patience() })
  }
  expect(server.requests.map(({ path }) => path)).toEqual(['/old?sig=a', '/new?sig=b'])
  writeFileSync(file, 'https://acme.webhook.office.com/webhookb2/the-secret')
  const error = await failureOf(sink)
  expect(error.reason).toBe('misconfigured')
  expect(error.message).toContain('make a workflow in Teams')
  expect(error.message).not.toContain('the-secret')
})

function teamsSink(options: { url?: Secret; allowPrivate?: boolean } = {}): Sink {
  return createTeamsSink(
    {
      name: 'soc',
      type: 'teams',
      url: secretFromText(`${server.url}/invoke?sig=abc`),
      limitPerSecond: 2,
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

function patience(): AbortSignal {
  return AbortSignal.timeout(45_000)
}
