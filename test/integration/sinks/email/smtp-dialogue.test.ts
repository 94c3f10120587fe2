/**
 * The commands of the SMTP dialogue × how a server may answer: what becomes of the mail.
 * Whose fault each code is at each stage stands in test/golden/recorded/smtp-codes.md.
 * The clock stands still.
 */
import { expect, onTestFinished, test, vi } from 'vitest'
import type { Clock } from '../../../../src/lib/clock.ts'
import { createLogger } from '../../../../src/lib/logger.ts'
import { secretFromText } from '../../../../src/lib/config/secret.ts'
import { createEmailSink } from '../../../../src/sinks/email/email-sink.ts'
import { type Sink, SinkError, type SinkReason } from '../../../../src/sinks/sink.ts'
import { aDelivery } from '../../../support/deliveries.ts'
import { type StillClock, stillClock } from '../../../support/still-clock.ts'
import {
  type RawSmtpServer,
  type Replies,
  type Step,
  startRawSmtpServer,
} from './raw-smtp-server.ts'

/** `waitsS`: the seconds of a silence that count. */
const rows: [Step, answer: string, SinkReason, waitsS?: number][] = [
  ['GREETING', 'banana', 'unavailable'],
  ['GREETING', 'hang', 'unavailable', 60],
  ['GREETING', 'close', 'unavailable'],
  ['GREETING', '450 busy', 'unavailable'],
  ['GREETING', '554 no SMTP service here', 'misconfigured'],
  ['EHLO', 'banana', 'unavailable'],
  ['EHLO', 'hang', 'unavailable', 60],
  ['EHLO', 'cut', 'unavailable'],
  ['EHLO', '550 5.7.1 your name is not welcome', 'misconfigured'],
  ['STARTTLS', 'hang', 'unavailable', 60],
  ['STARTTLS', 'close', 'unavailable'],
  ['STARTTLS', '454 4.7.0 no TLS now', 'unavailable'],
  ['STARTTLS', '502 5.5.1 no such command', 'misconfigured'],
  ['AUTH', 'hang', 'unavailable', 60],
  ['AUTH', 'cut', 'unavailable'],
  ['AUTH', '454 4.7.0 later', 'unavailable'],
  ['AUTH', '535 5.7.8 wrong', 'unauthorized'],
  ['MAIL', 'hang', 'unavailable', 60],
  ['MAIL', 'close', 'unavailable'],
  ['MAIL', '421 4.7.0 too many mails over this connection', 'unavailable'],
  ['MAIL', '451 later', 'unavailable'],
  ['MAIL', '503 5.5.1 sign in first', 'unavailable'],
  ['MAIL', '550 5.7.1 not your address', 'misconfigured'],
  ['RCPT', 'hang', 'unavailable', 60],
  ['RCPT', 'cut', 'unavailable'],
  ['RCPT', '421 4.3.2 closing', 'unavailable'],
  ['RCPT', '450 greylisted', 'recipient_deferred'],
  ['RCPT', '550 5.1.1 no such user', 'recipient_refused'],
  ['RCPT', '554 5.7.1 relay access denied', 'misconfigured'],
  ['DATA', 'hang', 'unavailable', 60],
  ['DATA', 'close', 'unavailable'],
  ['DATA', '451 4.3.0 later', 'unavailable'],
  ['DATA', '554 5.5.1 no valid recipients', 'misconfigured'],
  ['DATA', '550 5.1.1 no such user', 'recipient_refused'],
  ['BODY', '452 4.3.1 no room', 'unavailable'],
  ['BODY', 'cut', 'connection_lost'],
  ['END', 'close', 'connection_lost'],
  ['END', 'cut', 'connection_lost'],
  ['END', '421 4.3.2 closing', 'unavailable'],
  ['END', '451 later', 'unavailable'],
  ['END', '503 5.5.1 wrong order', 'unavailable'],
  ['END', '550 5.1.1 no such user', 'recipient_refused'],
  ['END', '554 no', 'rejected'],
  ['END', '552 5.2.3 too long', 'invalid'],
  ['END', '199 what', 'connection_lost'],
]
const ofMail: readonly Step[] = ['MAIL', 'RCPT', 'DATA', 'END']

test.each(rows)('%s: %s is %s', async (step, answer, outcome, waitsS) => {
  const rig = await startRig(step)
  const isReply = /^\d{3} /.test(answer)
  // a refusal is the recipient's where it names him; a silence may be, once he was named
  const isNamed = step === 'DATA' || step === 'RCPT'
  const isOwn = outcome.startsWith('recip') || (isNamed && !isReply)
  expect(await rig.observe(step, answer)).toEqual({
    outcome,
    scope: isOwn || (step === 'RCPT' && outcome === 'misconfigured') ? 'destination' : undefined,
    status: isReply ? Number(answer.slice(0, 3)) : undefined,
    saysAnswer: isReply,
    waitsS: waitsS === undefined ? [] : [waitsS],
  })
  await expect.poll(() => rig.server.openConnections()).toBe(0)
})

test.each(rows.filter(([step, answer]) => ofMail.includes(step) && /^[45]/.test(answer)))(
  'where the server takes commands in a row %s: %s is %s',
  async (step, answer, outcome) => {
    const pipelining = { EHLO: '250-raw.test\r\n250-PIPELINING\r\n250-AUTH PLAIN\r\n250 8BITMIME' }
    const refused = step === 'MAIL' || step === 'RCPT' ? { DATA: '503 5.5.1 no' } : {}
    const rig = await startRig(step, { ...pipelining, ...refused })
    expect(await rig.observe(step, answer)).toMatchObject({ outcome, saysAnswer: true })
  },
)

test.each(['GREETING', 'STARTTLS'] as const)(
  'a server that is silent at %s for nearly a minute has the rest of it',
  async (step) => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'Date'] })
    onTestFinished(() => void vi.useRealTimers())
    const ehlo = '250-raw.test\r\n250-STARTTLS\r\n250-AUTH PLAIN\r\n250 8BITMIME'
    const silent = step === 'STARTTLS' ? '220 hang' : 'hang'
    const rig = await startRig(step, { EHLO: ehlo, [step]: silent })
    const sent = rig.send().catch((error: unknown) => error)
    await expect.poll(() => rig.server.hangsAt()).toBe(step)
    vi.advanceTimersByTime(59_000)
    rig.clock.expire()
    expect(await sent).toMatchObject({ message: expect.stringContaining('no answer within 60 s') })
  },
)

test('the answer to a message is awaited until the send ends, and is lost then', async () => {
  const rig = await startRig('END', { END: 'hang' })
  const stop = new AbortController()
  const sent = rig.send(stop.signal).catch((error: unknown) => error)
  await expect.poll(() => rig.server.hangsAt()).toBe('END')
  expect(rig.clock.waits()).toEqual([])
  stop.abort()
  expect(await sent).toMatchObject({ reason: 'timeout', scope: undefined })
})

test.each(['GREETING', 'EHLO', 'AUTH', 'MAIL'] as const)(
  'after close() no mail goes out where %s is awaited',
  async (step) => {
    const rig = await startRig(step, { [step]: 'hang' })
    const sent = rig.send().catch((error: unknown) => error)
    await expect.poll(() => rig.server.hangsAt()).toBe(step)
    await rig.close()
    await expect.poll(() => rig.server.openConnections()).toBe(0)
    expect(await sent).toMatchObject({ reason: 'unavailable' })
    rig.server.script({})
    const again = await rig.send().catch((error: unknown) => error)
    expect(again).toMatchObject({ reason: 'unavailable' })
    expect(rig.server.connections()).toBe(1)
    expect(rig.server.mails).toEqual([])
  },
)

interface Rig {
  server: RawSmtpServer
  clock: StillClock
  send(signal?: AbortSignal): Promise<void>
  close(): Promise<void>
  observe(step: Step, answer: string): Promise<Observation>
}

async function startRig(step: Step, base: Replies = {}): Promise<Rig> {
  const server = await startRawSmtpServer()
  onTestFinished(() => server.refuse())
  const clock = stillClock()
  const sink = sinkFor(server, clock, step)
  const send = async (signal = AbortSignal.timeout(60_000)): Promise<void> => {
    await sink.send(aDelivery(sink), { signal })
  }
  server.script(base)
  return {
    server,
    clock,
    send,
    close: () => sink.close(),
    async observe(step, answer) {
      server.script({ ...base, [step]: answer, ...(step === 'EHLO' && { HELO: answer }) })
      const sent = send().catch((error: unknown) => error)
      const waitsS = answer === 'hang' ? await untilSilent(server, clock, step) : []
      const error = await sent
      if (!(error instanceof SinkError)) throw new Error('expected a SinkError', { cause: error })
      const { reason, scope, status, message } = error
      const saysAnswer = /^\d{3} /.test(answer) && message.includes(answer)
      return { outcome: reason, scope, status, saysAnswer, waitsS }
    },
  }
}

interface Observation {
  outcome: SinkReason
  scope: string | undefined
  status: number | undefined
  saysAnswer: boolean
  waitsS: number[]
}

async function untilSilent(
  server: RawSmtpServer,
  clock: StillClock,
  step: Step,
): Promise<number[]> {
  await expect.poll(() => server.hangsAt(), { interval: 5 }).toBe(step)
  const waits = clock.waits()
  clock.expire()
  return waits
}

/** Connects to this machine, and yet is not one of the names under which mail may go in clear. */
const notLoopback = '0.0.0.0'

function sinkFor({ port }: RawSmtpServer, clock: Clock, step: Step): Sink {
  const host = step === 'STARTTLS' ? notLoopback : '127.0.0.1'
  const sink = createEmailSink(
    {
      name: 'oncall',
      type: 'email',
      smtp: secretFromText(`smtp://relay:pw-1@${host}:${port}`),
      from: 'tocsin@example.com',
      to: ['oncall@example.com'],
      tls: 'required',
      limitPerSecond: undefined,
      digest: undefined,
      reveal: false,
      autoSubmitted: true,
    },
    { logger: createLogger({ level: 'silent' }), clock },
  )
  onTestFinished(() => sink.close())
  return sink
}
