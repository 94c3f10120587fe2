import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import os, { tmpdir } from 'node:os'
import { join } from 'node:path'
import { getCACertificates, setDefaultCACertificates } from 'node:tls'
import { SMTPServer, type SMTPServerOptions } from 'smtp-server'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { systemClock, type Clock } from '../../../../src/lib/clock.ts'
import { createLogger } from '../../../../src/lib/logger.ts'
import { secretFromFile, secretFromText } from '../../../../src/lib/config/secret.ts'
import type { EmailConfig } from '../../../../src/sinks/email/config.ts'
import { createEmailSink } from '../../../../src/sinks/email/email-sink.ts'
import { SinkError, type Delivery, type Sink } from '../../../../src/sinks/sink.ts'
import { aDelivery, aMember } from '../../../support/deliveries.ts'
import { aBusyDigest } from '../../../support/summaries.ts'
import { parseMail } from './parse-mail.ts'
import { startRawSmtpServer, type RawSmtpServer } from './raw-smtp-server.ts'
import { testCertificate, testKey } from './test-certificate.ts'

/** Connects to this machine, and yet is not one of the names under which mail may go in clear. */
const notLoopback = '0.0.0.0'

describe('a mail', () => {
  test('says by its headers what it is, whence it comes and that nobody should answer', async () => {
    const server = await rawServer()
    const sink = emailSink({ smtp: `smtp://127.0.0.1:${server.port}` })
    await send(sink)
    const { headers } = parseMail(server.mails[0]!)
    expect(Object.fromEntries(headers)).toMatchObject({
      from: 'Tocsin <tocsin@example.com>',
      to: 'oncall@example.com',
      subject: '[HIGH] Stealer log: user alice (matched example[.]com) in stealer_logs_live',
      date: 'Sun, 01 Nov 2026 12:34:56 +0000',
      'message-id': '<0123456789abcdef.d876c66bad34ef8c@example.com>',
      'in-reply-to': '<brand.2026-11-01.tocsin@example.com>',
      references: '<brand.2026-11-01.tocsin@example.com>',
      'list-id': '<brand.tocsin.example.com>',
      'auto-submitted': 'auto-generated',
      'x-auto-response-suppress': 'All',
    })
    expect(server.commands).toContain('MAIL FROM:<tocsin@example.com>')
    expect(server.commands).toContain('RCPT TO:<oncall@example.com>')
  })

  test('does not say that it is automatic where a ticket system would drop it for that', async () => {
    const server = await rawServer()
    const smtp = `smtp://127.0.0.1:${server.port}`
    await send(emailSink({ smtp, autoSubmitted: true }))
    await send(emailSink({ smtp, autoSubmitted: false }))
    const [usual, plain] = server.mails.map((mail) => parseMail(mail).headers)
    expect(usual!.get('auto-submitted')).toBe('auto-generated')
    expect([...usual!.keys()].filter((name) => !plain!.has(name))).toEqual(['auto-submitted'])
  })

  test('an attached file arrives byte for byte, beside the two parts of the text', async () => {
    const server = await rawServer()
    const sink = emailSink({ smtp: `smtp://127.0.0.1:${server.port}` })
    expect(sink.canAttach).toBe(true) // what makes the file at all
    const table = Array.from({ length: 5000 }, (_, index) => `"${index}"\r\n`).join('')
    const attachment = {
      fileName: 'tocsin-digest-2026-11-21.csv',
      contentType: 'text/csv; charset=utf-8',
      content: new Uint8Array(Buffer.from(table)),
    }
    await send(sink, { ...aBusyDigest(3), attachment })
    const raw = server.mails[0] ?? ''
    expect(raw).toMatch(/^Content-Type: multipart\/mixed/m)
    expect(raw).toMatch(/^Content-Type: multipart\/alternative/m)
    const file = raw.slice(raw.search(/^Content-Type: text\/csv/m))
    expect(file).toMatch(/filename=tocsin-digest-2026-11-21\.csv/)
    const encoded = /\r\n\r\n([A-Za-z0-9+/=\r\n]+?)\r\n--/.exec(file)?.[1] ?? ''
    expect(Buffer.from(encoded, 'base64').toString()).toBe(table)
  })
})

test.each([
  ['soc-1.example.com', undefined, 'soc-1.example.com'],
  ['tocsin-7f9c', undefined, '[IPv6:::1]'],
  ['localhost.localdomain', undefined, '[IPv6:::1]'],
  ['soc_1.example.com', undefined, '[IPv6:::1]'],
  ['tocsin-7f9c', '[10.0.0.5]', '[10.0.0.5]'],
  ['tocsin-7f9c', '[127.0.0.1]', '[127.0.0.1]'],
])('a host called %s with hello %s greets as %s', async (name, hello, said) => {
  const host = vi.spyOn(os, 'hostname').mockReturnValue(name)
  onTestFinished(() => host.mockRestore())
  const server = await rawServer('::1')
  await send(emailSink({ smtp: `smtp://[::1]:${server.port}`, hello }))
  expect(server.commands[0]).toBe(`EHLO ${said}`)
})

describe('recipients', () => {
  test('are a destination each, by an id that does not tell the address', () => {
    const to = ['oncall@example.com', 'Ops@Example.com', 'ops@example.com']
    const { destinations } = emailSink({ smtp: 'smtp://127.0.0.1', to })
    expect(destinations.map(({ id }) => id)).toEqual([
      'oncall:d876c66bad34ef8c',
      'oncall:af3c82544f648b38',
    ])
    expect(destinations[0]!.label).toBe('oncall@example.com')
  })

  test('get their own mail each, with an id of its own', async () => {
    const server = await rawServer()
    const to = ['one@example.com', 'two@example.com']
    const sink = emailSink({ smtp: `smtp://127.0.0.1:${server.port}`, to })
    for (const destination of sink.destinations) await send(sink, { destination })
    const headers = server.mails.map((mail) => parseMail(mail).headers)
    expect(headers.map((each) => each.get('to'))).toEqual(to)
    expect(new Set(headers.map((each) => each.get('message-id'))).size).toBe(2)
  })

  test('that a delivery brings along, and the configuration does not know, get nothing', async () => {
    const server = await rawServer()
    const sink = emailSink({ smtp: `smtp://127.0.0.1:${server.port}` })
    const destination = { id: 'oncall:0000000000000000', label: 'evil@example.net' }
    expect((await failureOf(sink, { destination })).reason).toBe('misconfigured')
    expect(server.commands).toEqual([])
  })
})

describe('a server that quotes the mail', () => {
  const secret = 'Pangolin-clear'
  const members = [aMember({ secret })]

  test('on refusing it gives the codes, and no words that may quote the leaked secret', async () => {
    const server = await rawServer()
    server.script({ END: `554 5.7.1 refused for <Password: ${secret}> in line 9` })
    const sink = emailSink({ smtp: `smtp://127.0.0.1:${server.port}`, reveal: true })
    const { message, status } = await failureOf(sink, { members })
    expect(status).toBe(554)
    expect(message).toContain('554 5.7.1 (the rest may quote the leaked secret)')
    expect(message).not.toContain(secret)
  })

  test('on accepting it leaves no leaked secret in the receipt', async () => {
    const server = await rawServer()
    server.script({ END: `250 2.0.0 queued "${secret.slice(0, 8)}` })
    const sink = emailSink({ smtp: `smtp://127.0.0.1:${server.port}`, reveal: true })
    const signal = AbortSignal.timeout(45_000)
    const { answer } = await sink.send(aDelivery(sink, { members }), { signal })
    expect(answer).toBe('250 2.0.0 (the rest may quote the leaked secret)')
  })
})

test('the password is that which its file holds now', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'email-sink-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const file = join(folder, 'smtp')
  const { port } = await smtpServer({ onAuth: acceptPassword('new-one') })
  const sink = createEmailSink(
    { ...config, to: ['oncall@example.com'], smtp: secretFromFile(file) },
    environment(),
  )
  onTestFinished(() => sink.close())
  expect((await failureOf(sink)).message).toContain('smtp_file')
  writeFileSync(file, `smtp://relay:old-one@127.0.0.1:${port}\n`)
  const refused = await failureOf(sink)
  expect(refused.reason).toBe('unauthorized')
  expect(refused.message).not.toContain('old-one')
  writeFileSync(file, `smtp://relay:new-one@127.0.0.1:${port}\n`)
  await send(sink)
})

describe('a sign-in', () => {
  test('that the server does not offer is said, not left out', async () => {
    const server = await rawServer()
    server.script({ EHLO: '250-raw.test\r\n250 8BITMIME' })
    const sink = emailSink({ smtp: `smtp://relay:pw-1@127.0.0.1:${server.port}` })
    const said =
      'the mail server offers no sign-in: remove user and password, or use the submission port 587'
    expect(await failureOf(sink)).toMatchObject({ reason: 'misconfigured', message: said })
    const reached = sink.reach(AbortSignal.timeout(10_000)).catch((error: unknown) => error)
    expect(await reached).toMatchObject({ reason: 'misconfigured', message: said })
    expect(server.mails).toEqual([])
    await expect.poll(() => server.openConnections()).toBe(0)
  })

  test.each(['503 5.5.1 sign in first', '530 5.7.0 sign in first'])(
    'that is configured nowhere is what %s asks for',
    async (answer) => {
      const server = await rawServer()
      server.script({ MAIL: answer })
      const error = await failureOf(emailSink({ smtp: `smtp://127.0.0.1:${server.port}` }))
      expect(error).toMatchObject({
        reason: 'unauthorized',
        message: `the mail server wants a user and a password: ${answer}`,
      })
    },
  )
})

describe('encryption', () => {
  const withPassword = (port: number, scheme = 'smtp'): string =>
    `${scheme}://relay:pw-1@${notLoopback}:${port}`
  const encrypted = { onAuth: acceptPassword('pw-1') }

  test('begins before the password off loopback', async () => {
    trustTestCertificate()
    const { port, mails, secured } = await smtpServer(encrypted)
    await send(emailSink({ smtp: withPassword(port) }))
    expect(mails).toHaveLength(1)
    expect(secured).toEqual([true])
  })

  test('from the first byte is what smtps:// stands for', async () => {
    trustTestCertificate()
    const { port, secured } = await smtpServer({ ...encrypted, secure: true })
    await send(emailSink({ smtp: withPassword(port, 'smtps') }))
    expect(secured).toEqual([true])
  })

  test.each(['smtp', 'smtps'])('with an unknown certificate ends %s:// there', async (scheme) => {
    const { port, secured } = await smtpServer({ ...encrypted, secure: scheme === 'smtps' })
    const error = await failureOf(emailSink({ smtp: withPassword(port, scheme) }))
    expect(error.reason).toBe('misconfigured')
    expect(secured).toEqual([])
  })

  test('that the server does not offer ends the send before the password', async () => {
    const server = await rawServer()
    const error = await failureOf(emailSink({ smtp: withPassword(server.port) }))
    expect(error.reason).toBe('misconfigured')
    expect(server.commands.map((line) => line.slice(0, 8))).toEqual(['EHLO [12', 'STARTTLS'])
  })

  test('is used where a server on loopback offers it, whatever its certificate', async () => {
    const { port, secured } = await smtpServer(encrypted)
    await send(emailSink({ smtp: `smtp://relay:pw-1@127.0.0.1:${port}` }))
    expect(secured).toEqual([true])
  })

  test('is left out by the operator’s word', async () => {
    const server = await rawServer()
    await send(emailSink({ smtp: withPassword(server.port), tls: 'off' }))
    expect(server.mails).toHaveLength(1)
  })
})

test.each(['smtp://', 'https://mail.example.com', 'smtp://user:%zz@mail.example.com', 'pw-1'])(
  'the URL %s is refused without repeating it',
  async (smtp) => {
    const error = await failureOf(emailSink({ smtp }))
    expect(error.reason).toBe('misconfigured')
    expect(error.message.replace('smtp://host', '')).not.toContain(smtp)
  },
)

const config = {
  name: 'oncall',
  type: 'email',
  from: 'tocsin@example.com',
  tls: 'required',
  limitPerSecond: undefined,
  digest: undefined,
  reveal: false,
  autoSubmitted: true,
} as const

function environment(clock?: Clock): { logger: ReturnType<typeof createLogger>; clock: Clock } {
  const fixed = { ...systemClock, now: () => Date.UTC(2026, 10, 1, 12, 34, 56) }
  return { logger: createLogger({ level: 'silent' }), clock: clock ?? fixed }
}

function emailSink(
  options: Partial<Omit<EmailConfig, 'smtp'>> & { smtp: string },
  clock?: Clock,
): Sink {
  const smtp = secretFromText(options.smtp)
  const sink = createEmailSink(
    { ...config, ...options, smtp, to: options.to ?? ['oncall@example.com'] },
    environment(clock),
  )
  onTestFinished(() => sink.close())
  return sink
}

async function send(sink: Sink, overrides: Partial<Delivery> = {}): Promise<void> {
  await sink.send(aDelivery(sink, overrides), { signal: AbortSignal.timeout(45_000) })
}

async function failureOf(
  sink: Sink,
  overrides: Partial<Delivery> = {},
  signal = AbortSignal.timeout(45_000),
): Promise<SinkError> {
  const error = await sink.send(aDelivery(sink, overrides), { signal }).catch((e: unknown) => e)
  if (error instanceof SinkError) return error
  throw new Error(`expected a SinkError, not ${JSON.stringify(error)}`, { cause: error })
}

async function rawServer(host?: string): Promise<RawSmtpServer> {
  const server = await startRawSmtpServer(host)
  onTestFinished(() => server.refuse())
  return server
}

interface RunningServer {
  port: number
  mails: string[]
  /** For each sign-in: was it under TLS? */
  secured: boolean[]
}

async function smtpServer(options: SMTPServerOptions): Promise<RunningServer> {
  const mails: string[] = []
  const secured: boolean[] = []
  const server = new SMTPServer({
    key: testKey,
    cert: testCertificate,
    ...options,
    disableReverseLookup: true,
    onAuth(auth, session, callback) {
      secured.push(session.secure)
      options.onAuth?.call(this, auth, session, callback)
    },
    onData(stream, _session, callback) {
      let mail = ''
      stream.on('data', (chunk: Buffer) => (mail += chunk.toString('latin1')))
      stream.on('end', () => {
        mails.push(mail)
        callback()
      })
    },
  })
  server.on('error', () => undefined)
  server.listen(0, '127.0.0.1')
  await once(server.server, 'listening')
  onTestFinished(() => new Promise<void>((resolve) => server.close(() => resolve())))
  return { port: (server.server.address() as AddressInfo).port, mails, secured }
}

function acceptPassword(password: string): NonNullable<SMTPServerOptions['onAuth']> {
  return (auth, _session, callback) => {
    if (auth.password === password) callback(null, { user: auth.username })
    else callback(new Error(`not ${auth.password}`))
  }
}

function trustTestCertificate(): void {
  const usual = getCACertificates()
  setDefaultCACertificates([...usual, testCertificate])
  onTestFinished(() => setDefaultCACertificates(usual))
}
