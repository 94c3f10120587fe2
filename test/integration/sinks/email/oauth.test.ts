/** Mail by access tokens: a token server like Entra's and a mail server that takes XOAUTH2 alone. */
import { inspect } from 'node:util'
import { describe, expect, onTestFinished, test } from 'vitest'
import { createLogger } from '../../../../src/lib/logger.ts'
import { secretFromFile, secretFromText, type Secret } from '../../../../src/lib/config/secret.ts'
import { createEmailSink } from '../../../../src/sinks/email/email-sink.ts'
import { type Sink, SinkError } from '../../../../src/sinks/sink.ts'
import { aDelivery } from '../../../support/deliveries.ts'
import type { ScriptedAnswer } from '../../../support/http-server.ts'
import { application, type Microsoft, startMicrosoft } from '../../../support/microsoft.ts'
import { type StillClock, stillClock } from '../../../support/still-clock.ts'
import { startRawSmtpServer } from './raw-smtp-server.ts'

const lifeMs = 3_599_000

describe('a token', () => {
  test('lets mails in, and serves later mails until its life is nearly over', async () => {
    const { microsoft, clock, send } = await arrange()
    await send()
    clock.pass(lifeMs * 0.89)
    await send()
    expect(microsoft.given).toHaveLength(1)
    const { headers, body } = microsoft.tokens.requests[0]!
    expect(headers['content-type']).toBe('application/x-www-form-urlencoded')
    expect(Object.fromEntries(new URLSearchParams(body))).toEqual({
      grant_type: 'client_credentials',
      client_id: application.clientId,
      client_secret: application.clientSecret,
      scope: application.scope,
    })
    clock.pass(lifeMs * 0.02)
    await send()
    expect(microsoft.given).toHaveLength(2)
    expect(microsoft.mails).toHaveLength(3)
    expect(microsoft.logins).toEqual([true, true, true])
  })

  test('that was withdrawn is replaced at once', async () => {
    const { microsoft, send } = await arrange()
    await send()
    microsoft.withdraw()
    await send()
    expect(microsoft.mails).toHaveLength(2)
    expect(microsoft.logins).toEqual([true, false, true])
    expect(microsoft.given).toHaveLength(2)
  })

  test.each(['MAIL', 'RCPT', 'END'] as const)(
    'stays good where the server asks for a sign-in at %s, and the mail goes once',
    async (step) => {
      const server = await startRawSmtpServer()
      onTestFinished(() => server.refuse())
      const usual = { EHLO: '250-raw.test\r\n250-AUTH XOAUTH2\r\n250 8BITMIME' }
      const { microsoft, send, failure } = await arrange(undefined, server)
      server.script(usual)
      await send()
      server.script({ ...usual, [step]: '550 5.7.57 not signed in' })
      expect((await failure()).reason).toBe('unauthorized')
      expect(server.connections()).toBe(2)
      expect(microsoft.given).toHaveLength(1)
    },
  )

  test('is replaced once, not again and again, where the new one is refused too', async () => {
    const { microsoft, send, failure } = await arrange()
    await send()
    microsoft.refuseAll('535 5.7.3 Authentication unsuccessful')
    expect(await failure()).toMatchObject({
      reason: 'unauthorized',
      message: 'the mail server refuses the sign-in: 535 5.7.3 Authentication unsuccessful',
    })
    expect(microsoft.logins).toEqual([true, false, false])
    expect((await failure()).reason).toBe('unauthorized')
    expect(microsoft.logins).toEqual([true, false, false, false])
    microsoft.refuseAll(undefined)
    await send()
  })
})

describe('without a token', () => {
  const remedy = 'correct oauth (docs/sinks.md, Microsoft 365)'

  test('doctor and send say the codes of the refusal', async () => {
    const { failure, sink, microsoft } = await arrange('Jx9~another-secret.that-has-expired')
    const message = `the token server gives no token (401 invalid_client AADSTS7000215); ${remedy}`
    expect(await failure()).toMatchObject({ reason: 'unauthorized', message })
    const reached = await sink.reach(AbortSignal.timeout(60_000)).catch((cause: unknown) => cause)
    expect(reached).toMatchObject({ reason: 'unauthorized', message })
    expect(microsoft.logins).toEqual([])
  })

  const refused = { reason: 'unauthorized' }
  const answered = (body: string): ScriptedAnswer => ({ status: 200, body })
  test.each<[string, ScriptedAnswer, object]>([
    ['nothing there', { status: 404 }, refused],
    ['another page', answered('<html>sign in</html>'), refused],
    ['a redirect', { status: 302, headers: { location: '/' } }, refused],
    ['a token with a line break in it', answered('{"access_token":"abc\\n"}'), refused],
    ['an empty token', answered('{"access_token":""}'), refused],
    [
      'an error of unknown words',
      { status: 400, body: '{"error":"Oh No\\u0007"}' },
      { message: `the token server gives no token (400); ${remedy}` },
    ],
    [
      'too many requests',
      { status: 429, headers: { 'retry-after': '7' } },
      { reason: 'rate_limited', retryAfterMs: 7000 },
    ],
    ['trouble', { status: 500 }, { reason: 'unavailable' }],
    ['a cut', 'cut', { reason: 'unavailable', message: expect.stringContaining('no answer') }],
  ])('%s fails the mail', async (_what, answer, expected) => {
    const { microsoft, failure } = await arrange()
    microsoft.answerTokens(answer)
    expect(await failure()).toMatchObject(expected)
    expect(microsoft.logins).toEqual([])
  })

  test('a token server that is silent holds no send beyond its signal', async () => {
    const { microsoft, sink } = await arrange()
    microsoft.answerTokens('hang')
    const stop = new AbortController()
    const sent = sink
      .send(aDelivery(sink), { signal: stop.signal })
      .catch((error: unknown) => error)
    await expect.poll(() => microsoft.tokens.requests.length).toBe(1)
    stop.abort()
    expect(await sent).toMatchObject({ reason: 'unavailable' })
  })

  test('a secret whose file is gone is the operator to mend', async () => {
    const { failure } = await arrange(secretFromFile('/no/such/file'))
    expect(await failure()).toMatchObject({
      reason: 'misconfigured',
      message: expect.stringMatching(/^client_secret cannot be read: /),
    })
  })
})

test('neither token nor secret is said by anybody, whatever the servers repeat', async () => {
  const { microsoft, send, failure, logged } = await arrange()
  microsoft.answerTokens({
    status: 401,
    body: JSON.stringify({
      error: 'invalid_client',
      error_description: `AADSTS7000215: not ${application.clientSecret}`,
    }),
  })
  const told = [await failure()]
  microsoft.answerTokens(undefined)
  await send()
  const [token = ''] = microsoft.given
  const login = Buffer.from(
    `user=${application.mailbox}\u0001auth=Bearer ${token}\u0001\u0001`,
  ).toString('base64')
  microsoft.refuseAll(`535 5.7.3 no ${token} nor ${token.slice(0, 20)} nor ${login}`)
  told.push(await failure())
  const said = `${inspect(told, { depth: 9 })}${told.map(({ message }) => message).join()}${logged()}`
  for (const secret of [
    application.clientSecret,
    token,
    token.slice(0, 20),
    login,
    login.slice(40, 90),
  ]) {
    expect(said).not.toContain(secret)
  }
  expect(said).toContain('535 5.7.3')
  expect(logged()).toContain('mail accepted')
})

interface Bench {
  microsoft: Microsoft
  clock: StillClock
  sink: Sink
  send: () => Promise<void>
  failure: () => Promise<SinkError>
  logged: () => string
}

/** `server`: takes the mails instead of Microsoft's. */
async function arrange(
  secret: Secret | string = application.clientSecret,
  server?: { port: number },
): Promise<Bench> {
  const microsoft = await startMicrosoft()
  onTestFinished(() => microsoft.stop())
  const clock = stillClock()
  const lines: string[] = []
  const sink = createEmailSink(
    {
      name: 'oncall',
      type: 'email',
      smtp: secretFromText(server ? `smtp://relay@127.0.0.1:${server.port}` : microsoft.smtpUrl),
      from: application.mailbox,
      to: ['oncall@example.com'],
      tls: 'required',
      oauth: {
        tokenUrl: microsoft.tokenUrl,
        clientId: application.clientId,
        clientSecret: typeof secret === 'string' ? secretFromText(secret) : secret,
        scope: application.scope,
      },
      limitPerSecond: undefined,
      digest: undefined,
      reveal: false,
      autoSubmitted: true,
    },
    {
      logger: createLogger({
        level: 'trace',
        destination: { write: (line) => void lines.push(line) },
      }),
      clock,
    },
  )
  onTestFinished(() => sink.close())
  const send = async (): Promise<void> => {
    await sink.send(aDelivery(sink), { signal: AbortSignal.timeout(60_000) })
  }
  return {
    microsoft,
    clock,
    sink,
    send,
    async failure() {
      const error = await send().catch((cause: unknown) => cause)
      if (error instanceof SinkError) return error
      throw new Error('expected a SinkError', { cause: error })
    },
    logged: () => lines.join(''),
  }
}
