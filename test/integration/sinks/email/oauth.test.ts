/** Mail by access tokens: a token server like Entra's and a mail server that takes XOAUTH2 alone. */
import { setImmediate } from 'node:timers/promises'
import { inspect } from 'node:util'
import { describe, expect, onTestFinished, test } from 'vitest'
import { createLogger } from '../../../../src/lib/logger.ts'
import { secretFromFile, secretFromText } from '../../../../src/lib/secret.ts'
import type { OAuthConfig } from '../../../../src/sinks/email/config.ts'
import { createEmailSink } from '../../../../src/sinks/email/email-sink.ts'
import { type Sink, SinkError } from '../../../../src/sinks/sink.ts'
import { aDelivery } from '../../../support/deliveries.ts'
import { application, type Microsoft, startMicrosoft } from '../../../support/microsoft.ts'
import { type StillClock, stillClock } from '../../../support/still-clock.ts'

const lifeMs = 3_599_000

describe('a token', () => {
  test('lets mails in, and is asked for once for all connections', async () => {
    const { microsoft, send, afresh } = await arrange()
    await Promise.all([send(), send(), send()])
    await afresh()
    await send()
    expect(microsoft.mails).toHaveLength(4)
    expect(microsoft.logins).toEqual([true, true, true, true])
    expect(microsoft.given).toHaveLength(1)
    const { headers, body } = microsoft.tokens.requests[0]!
    expect(headers['content-type']).toBe('application/x-www-form-urlencoded')
    expect(Object.fromEntries(new URLSearchParams(body))).toEqual({
      grant_type: 'client_credentials',
      client_id: application.clientId,
      client_secret: application.clientSecret,
      scope: application.scope,
    })
  })

  test('is renewed well before it ends', async () => {
    const { microsoft, clock, send, afresh } = await arrange()
    await send()
    clock.pass(lifeMs * 0.74)
    await afresh()
    await send()
    expect(microsoft.given).toHaveLength(1)
    clock.pass(lifeMs * 0.02)
    await afresh()
    await send()
    await expect.poll(() => microsoft.given.length).toBe(2)
    expect(microsoft.mails).toHaveLength(3)
  })

  test('serves until it ends where a new one is not to be had', async () => {
    const { microsoft, clock, send, failure, afresh } = await arrange()
    await send()
    microsoft.answerTokens({ status: 503 })
    clock.pass(lifeMs * 0.9)
    await afresh()
    await send()
    clock.pass(lifeMs * 0.1)
    await afresh()
    expect(await failure()).toMatchObject({ reason: 'unavailable', status: 503 })
    expect(microsoft.mails).toHaveLength(2)
  })

  test('is renewed beside the mails: a token server that is silent holds none up', async () => {
    const { microsoft, clock, send, afresh } = await arrange()
    await send()
    microsoft.answerTokens('hang')
    clock.pass(lifeMs * 0.8)
    await afresh()
    await send()
    await afresh()
    await send()
    expect(microsoft.mails).toHaveLength(3)
    expect(microsoft.tokens.requests).toHaveLength(2)
  })

  test('is asked for again a minute after it was not to be had', async () => {
    const { microsoft, clock, send, afresh } = await arrange()
    await send()
    microsoft.answerTokens({ status: 503 })
    clock.pass(lifeMs * 0.76)
    await afresh()
    await send()
    await expect.poll(() => microsoft.tokens.requests.length).toBe(2)
    for (const _ of [1, 2, 3]) {
      clock.pass(1000)
      await afresh()
      await send()
    }
    expect(microsoft.tokens.requests).toHaveLength(2)
    await expect
      .poll(async () => {
        clock.pass(61_000)
        await afresh()
        await send()
        return microsoft.tokens.requests.length
      })
      .toBe(3)
  })

  test('that was refused is not used again while a new one is awaited', async () => {
    const { microsoft, clock, sink, send, afresh } = await arrange()
    await send()
    microsoft.answerTokens('hang')
    microsoft.withdraw()
    clock.pass(lifeMs * 0.8)
    await afresh()
    const stop = new AbortController()
    const sent = sink
      .send(aDelivery(sink), { signal: stop.signal })
      .catch((error: unknown) => error)
    await expect.poll(() => microsoft.logins).toEqual([true, false])
    stop.abort()
    expect(await sent).toMatchObject({ reason: 'unavailable' })
    expect(microsoft.logins).toEqual([true, false])
    expect(microsoft.tokens.requests).toHaveLength(2)
  })

  test('that was withdrawn is replaced at once', async () => {
    const { microsoft, send, afresh } = await arrange()
    await send()
    microsoft.withdraw()
    await afresh()
    await send()
    expect(microsoft.mails).toHaveLength(2)
    expect(microsoft.logins).toEqual([true, false, true])
    expect(microsoft.given).toHaveLength(2)
  })

  test('is replaced once, not again and again, where the new one is refused too', async () => {
    const { microsoft, send, failure, afresh } = await arrange()
    await send()
    microsoft.refuseAll('535 5.7.3 Authentication unsuccessful')
    await afresh()
    expect((await failure()).reason).toBe('unauthorized')
    expect(microsoft.logins).toEqual([true, false, false])
    expect((await failure()).reason).toBe('unauthorized')
    expect(microsoft.logins).toEqual([true, false, false, false])
    microsoft.refuseAll(undefined)
    await send()
  })
})

describe('each wrong way is said, with what to do', () => {
  test.each<[string, Partial<Record<'tokenPath' | keyof typeof application, string>>, string]>([
    [
      'the secret',
      { clientSecret: 'Jx9~another-secret.that-has-expired' },
      'the token server gives no token (401 invalid_client AADSTS7000215): client_secret is wrong or has expired: make a new one',
    ],
    [
      'the tenant',
      { tokenPath: '/no-such-tenant/oauth2/v2.0/token' },
      'the token server gives no token (400 invalid_request AADSTS90002): correct token_url: the tenant in it may not exist',
    ],
    [
      'the application',
      { clientId: '00000000-0000-0000-0000-000000000000' },
      'the token server gives no token (400 unauthorized_client AADSTS700016): it knows no such application: correct client_id, or the tenant in token_url',
    ],
    [
      'the scope',
      { scope: 'https://outlook.office365.com/SMTP.Send' },
      'the token server gives no token (400 invalid_scope AADSTS1002012): correct scope: Microsoft 365 takes https://outlook.office365.com/.default',
    ],
  ])('%s', async (_what, wrong, said) => {
    const { failure, sink, microsoft } = await arrange(wrong)
    const error = await failure()
    expect(error).toMatchObject({ reason: 'unauthorized', message: said })
    const reached = await sink.reach(AbortSignal.timeout(60_000)).catch((cause: unknown) => cause)
    expect(reached).toMatchObject({ reason: 'unauthorized', message: said })
    expect(microsoft.logins).toEqual([])
  })

  test.each([
    [
      '535 5.7.3 Authentication unsuccessful [AM0PR01CA0001]',
      '; the application needs SMTP.SendAsApp, and a right to this mailbox',
    ],
    [
      '535 5.7.139 Authentication unsuccessful, SmtpClientAuthentication is disabled for the Tenant.',
      '; SMTP AUTH may be off for this mailbox or its tenant',
    ],
    ['535 5.7.8 no', ''],
  ])('%s', async (answer, hint) => {
    const { microsoft, failure } = await arrange()
    microsoft.refuseAll(answer)
    const { reason, message } = await failure()
    expect(reason).toBe('unauthorized')
    expect(message).toBe(`the mail server refuses the user or the token: ${answer}${hint}`)
  })

  test.each<[string, Parameters<Microsoft['answerTokens']>[0], object]>([
    ['nothing there', { status: 404 }, { reason: 'misconfigured' }],
    [
      'another page',
      { status: 200, body: '<html>sign in</html>' },
      { reason: 'misconfigured', message: expect.stringContaining('correct token_url') },
    ],
    ['a redirect', { status: 302, headers: { location: '/' } }, { reason: 'misconfigured' }],
    [
      'a token with a line break in it',
      { status: 200, body: '{"access_token":"abc\\n"}' },
      {
        reason: 'unavailable',
        message: 'the token server gave a token that no sign-in can hold',
      },
    ],
    [
      'an empty token',
      { status: 200, body: '{"access_token":""}' },
      { reason: 'misconfigured', message: expect.stringContaining('correct token_url') },
    ],
    [
      'too many requests',
      { status: 429, headers: { 'retry-after': '7' } },
      { reason: 'rate_limited', retryAfterMs: 7000 },
    ],
    ['trouble', { status: 500 }, { reason: 'unavailable' }],
    ['a cut', 'cut', { reason: 'unavailable' }],
    [
      'an error of unknown words',
      { status: 400, body: '{"error":"Oh No\\u0007"}' },
      { reason: 'misconfigured' },
    ],
  ])('%s in place of a token', async (_what, answer, expected) => {
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

  test('a secret whose file is gone', async () => {
    const { failure } = await arrange({}, secretFromFile('/no/such/file'))
    expect(await failure()).toMatchObject({
      reason: 'misconfigured',
      message: expect.stringMatching(/^client_secret cannot be read: /),
    })
  })
})

test('neither token nor secret is said by anybody, whatever the servers repeat', async () => {
  const { microsoft, send, failure, afresh, logged } = await arrange()
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
  await afresh()
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
  /** No connection is left. */
  afresh: () => Promise<void>
  logged: () => string
}

async function arrange(
  wrong: Partial<Record<'tokenPath' | keyof typeof application, string>> = {},
  clientSecret?: OAuthConfig['clientSecret'],
): Promise<Bench> {
  const microsoft = await startMicrosoft()
  onTestFinished(() => microsoft.stop())
  const clock = stillClock()
  const { clientId, scope, clientSecret: secret } = { ...application, ...wrong }
  const lines: string[] = []
  const sink = createEmailSink(
    {
      name: 'oncall',
      type: 'email',
      smtp: secretFromText(microsoft.smtpUrl),
      from: application.mailbox,
      to: ['oncall@example.com'],
      tls: 'required',
      oauth: {
        tokenUrl: wrong.tokenPath
          ? `${microsoft.tokens.url}${wrong.tokenPath}`
          : microsoft.tokenUrl,
        clientId,
        clientSecret: clientSecret ?? secretFromText(secret),
        scope,
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
    async afresh() {
      clock.expire()
      await setImmediate()
    },
    logged: () => lines.join(''),
  }
}
