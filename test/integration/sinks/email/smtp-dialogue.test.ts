/**
 * The commands of the SMTP dialogue × how a server may answer: what becomes of the mail and of the
 * connection. Whose fault each code is at each stage stands in test/golden/recorded/smtp-codes.md.
 * The clock stands still.
 */
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import type { Clock } from '../../../../src/lib/clock.ts'
import { createLogger } from '../../../../src/lib/logger.ts'
import { secretFromText } from '../../../../src/lib/config/secret.ts'
import { createEmailSink } from '../../../../src/sinks/email/email-sink.ts'
import type { Attachment } from '../../../../src/messages/csv.ts'
import { type Delivery, type Sink, SinkError, type SinkReason } from '../../../../src/sinks/sink.ts'
import { aDelivery } from '../../../support/deliveries.ts'
import { type StillClock, stillClock } from '../../../support/still-clock.ts'
import {
  type RawSmtpServer,
  type Replies,
  type Step,
  startRawSmtpServer,
} from './raw-smtp-server.ts'

interface Case {
  step: Step
  /** As the server's script has it: a reply, `hang`, `close` or `cut`. */
  answer: string
  /** `delivered`: over a fresh connection at once. */
  outcome: SinkReason | 'delivered'
  /** How long a silence lasts before it counts, s. */
  waitsS?: number | undefined
}

const rows: [Step, answer: string, Case['outcome'], waitsS?: number][] = [
  ['GREETING', 'hang', 'unavailable', 10],
  ['GREETING', 'close', 'unavailable'],
  ['GREETING', '450 busy', 'unavailable'],
  ['GREETING', '554 no SMTP service here', 'misconfigured'],
  ['EHLO', 'hang', 'unavailable', 30],
  ['EHLO', 'cut', 'unavailable'],
  ['EHLO', '550 5.7.1 your name is not welcome', 'misconfigured'],
  ['STARTTLS', 'hang', 'unavailable', 30],
  ['STARTTLS', 'close', 'unavailable'],
  ['STARTTLS', '454 4.7.0 no TLS now', 'unavailable'],
  ['STARTTLS', '502 5.5.1 no such command', 'misconfigured'],
  ['AUTH', 'hang', 'unavailable', 30],
  ['AUTH', 'cut', 'unavailable'],
  ['AUTH', '454 4.7.0 later', 'unavailable'],
  ['AUTH', '535 5.7.8 wrong', 'unauthorized'],
  ['RSET', 'hang', 'delivered', 5],
  ['RSET', 'close', 'delivered'],
  ['RSET', '421 4.4.2 closing', 'delivered'],
  ['RSET', '500 what', 'delivered'],
  ['MAIL', 'hang', 'unavailable', 30],
  ['MAIL', 'close', 'unavailable'],
  ['MAIL', '421 4.7.0 too many mails over this connection', 'unavailable'],
  ['MAIL', '451 later', 'unavailable'],
  ['MAIL', '503 5.5.1 sign in first', 'unavailable'],
  ['MAIL', '550 5.7.1 not your address', 'misconfigured'],
  ['RCPT', 'hang', 'unavailable', 30],
  ['RCPT', 'cut', 'unavailable'],
  ['RCPT', '421 4.3.2 closing', 'unavailable'],
  ['RCPT', '450 greylisted', 'recipient_deferred'],
  ['RCPT', '550 5.1.1 no such user', 'recipient_refused'],
  ['RCPT', '554 5.7.1 relay access denied', 'misconfigured'],
  ['DATA', 'hang', 'unavailable', 30],
  ['DATA', 'close', 'unavailable'],
  ['DATA', '451 4.3.0 later', 'unavailable'],
  ['DATA', '554 5.5.1 no valid recipients', 'misconfigured'],
  ['DATA', '550 5.1.1 no such user', 'recipient_refused'],
  ['END', 'hang', 'timeout', 600],
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
const cases = rows.map(([step, answer, outcome, waitsS]): Case => ({
  step,
  answer,
  outcome,
  waitsS,
}))
const ofMail: readonly Step[] = ['MAIL', 'RCPT', 'DATA', 'END']

test.each(cases.filter(({ step }) => step !== 'RSET'))(
  'on a fresh connection $step: $answer is $outcome',
  async (row) => {
    const rig = await startRig(row)
    expect(await rig.observe(row)).toEqual(expectedOn('fresh', row))
  },
)

test.each(cases.filter(({ step }) => step === 'RSET' || ofMail.includes(step)))(
  'on a reused connection $step: $answer is $outcome',
  async (row) => {
    const rig = await startRig(row)
    await rig.send()
    expect(await rig.observe(row)).toEqual(expectedOn('reused', row))
    expect(rig.server.commands).toContain('RSET')
  },
)

test.each(cases.filter(({ step, answer }) => ofMail.includes(step) && /^[45]/.test(answer)))(
  'where the server takes commands in a row $step: $answer is $outcome',
  async (row) => {
    const pipelining = { EHLO: '250-raw.test\r\n250-PIPELINING\r\n250-AUTH PLAIN\r\n250 8BITMIME' }
    const refused = row.step === 'MAIL' || row.step === 'RCPT' ? { DATA: '503 5.5.1 no' } : {}
    const rig = await startRig(row, { ...pipelining, ...refused })
    expect(await rig.observe(row)).toEqual(expectedOn('fresh', row))
  },
)

test('a connection is not kept longer than ten seconds for the next mail', async () => {
  const rig = await startRig({ step: 'END' })
  await rig.send()
  expect(rig.clock.waits()).toEqual([10])
  rig.clock.expire()
  await expect.poll(() => rig.server.openConnections()).toBe(0)
  expect(rig.server.commands.at(-1)).toBe('QUIT')
  await rig.send()
  expect(rig.server.connections()).toBe(2)
})

test('of several idle connections one that is silent speaks for all', async () => {
  const rig = await startRig({ step: 'END' })
  await Promise.all([rig.send(), rig.send(), rig.send()])
  expect(rig.server.connections()).toBe(3)
  rig.server.script({ RSET: 'hang' })
  const sent = rig.send()
  await expect.poll(() => rig.server.hangsAt()).toBe('RSET')
  expect(rig.clock.waits()).toContain(5)
  rig.clock.expire(5)
  await sent
  expect(rig.server.connections()).toBe(4)
  await expect.poll(() => rig.server.openConnections()).toBe(1)
})

describe('a body that the server takes no more', () => {
  const attachmentOf = (megabytes: number): Attachment => ({
    fileName: 'digest.csv',
    contentType: 'text/csv',
    content: new Uint8Array(megabytes * 1024 * 1024),
  })
  const attachment = attachmentOf(24) // more than the buffers between two processes hold

  test('ends after three minutes, not ten', async () => {
    const rig = await startRig({ step: 'BODY' }, { BODY: 'hang' })
    const sent = rig.send({ attachment }).catch((error: unknown) => error)
    await expect.poll(() => rig.server.hangsAt()).toBe('BODY')
    expect(rig.clock.waits()).toEqual([180])
    rig.clock.expire()
    expect(await sent).toMatchObject({
      reason: 'timeout',
      message: expect.stringContaining('room for the message did not come within 180 s'),
    })
    expect(rig.clock.waits()).toEqual([])
  })

  test('has that time for each block, and the reply to its end has ten minutes', async () => {
    const rig = await startRig({ step: 'END' }, { END: 'hang' })
    const sleep = vi.spyOn(rig.clock, 'sleep')
    const sent = rig.send({ attachment: attachmentOf(2) }).catch((error: unknown) => error)
    await expect.poll(() => rig.server.hangsAt()).toBe('END')
    expect(rig.clock.waits()).toEqual([600])
    expect(sleep.mock.calls.filter(([ms]) => ms === 180_000).length).toBeGreaterThan(32)
    rig.clock.expire()
    expect(await sent).toMatchObject({ reason: 'timeout' })
  })

  test('and is refused meanwhile leaves no connection in the middle of it', async () => {
    const rig = await startRig({ step: 'BODY' }, { BODY: '452 4.3.1 no room' })
    const sent = rig.send({ attachment }).catch((error: unknown) => error)
    expect(await sent).toMatchObject({ reason: 'unavailable', status: 452 })
    await expect.poll(() => rig.server.openConnections()).toBe(0)
  })
})

describe('after close() no mail goes out', () => {
  test.each(['GREETING', 'EHLO', 'AUTH', 'MAIL'] as const)('where %s is awaited', async (step) => {
    const rig = await startRig({ step }, { [step]: 'hang' })
    const sent = rig.send().catch((error: unknown) => error)
    await expect.poll(() => rig.server.hangsAt()).toBe(step)
    await rig.close()
    await expect.poll(() => rig.server.openConnections()).toBe(0)
    expect(await sent).toMatchObject({ reason: 'unavailable' })
    rig.server.script({})
    expect(await rig.send().catch((error: unknown) => error)).toMatchObject({
      reason: 'unavailable',
    })
    expect(rig.server.connections()).toBe(1)
    expect(rig.server.mails).toEqual([])
  })

  test('where an idle connection is tested', async () => {
    const rig = await startRig({ step: 'RSET' })
    await rig.send()
    rig.server.script({ RSET: 'hang' })
    const sent = rig.send().catch((error: unknown) => error)
    await expect.poll(() => rig.server.hangsAt()).toBe('RSET')
    await rig.close()
    rig.clock.expire()
    expect(await sent).toMatchObject({ reason: 'unavailable' })
    await expect.poll(() => rig.server.openConnections()).toBe(0)
    expect(rig.server.mails).toHaveLength(1)
  })
})

interface Rig {
  server: RawSmtpServer
  clock: StillClock
  send(overrides?: Partial<Delivery>): Promise<void>
  close(): Promise<void>
  observe(row: Case): Promise<Observation>
}

async function startRig({ step }: { step: Step }, base: Replies = {}): Promise<Rig> {
  const server = await startRawSmtpServer()
  onTestFinished(() => server.refuse())
  const clock = stillClock()
  const sink = sinkFor(server, clock, step)
  const send = async (overrides: Partial<Delivery> = {}): Promise<void> => {
    await sink.send(aDelivery(sink, overrides), { signal: AbortSignal.timeout(60_000) })
  }
  server.script(base)
  return {
    server,
    clock,
    send,
    close: () => sink.close(),
    async observe({ answer }) {
      const before = server.connections()
      server.script({ ...base, [step]: answer, ...(step === 'EHLO' && { HELO: answer }) })
      const sent = send().catch((error: unknown) => error)
      const waitsS = answer === 'hang' ? await untilSilent(server, clock, step) : undefined
      const error = await sent
      const failure = error instanceof SinkError ? error : undefined
      const opened = server.connections()
      server.script({ ...base, ...(step === 'STARTTLS' && { STARTTLS: '502 no' }) })
      await send().catch(() => undefined) // whether something is left of it for the next mail
      return {
        outcome: failure?.reason ?? (error === undefined ? 'delivered' : 'another error'),
        scope: failure?.scope,
        status: failure?.status,
        saysAnswer: /^\d{3} /.test(answer) && failure?.message.includes(answer) === true,
        waitsS,
        opened: opened - before,
        next: server.connections() === opened ? 'the same' : 'a fresh one',
      }
    },
  }
}

interface Observation {
  outcome: string
  scope: string | undefined
  status: number | undefined
  saysAnswer: boolean
  waitsS: number | undefined
  /** Connections for it. */
  opened: number
  /** The connection of the next mail. */
  next: 'the same' | 'a fresh one'
}

function expectedOn(
  connection: 'fresh' | 'reused',
  { step, answer, outcome, waitsS }: Case,
): Observation {
  const isDelivered = outcome === 'delivered'
  const isReply = /^\d{3} /.test(answer) && !isDelivered
  const isOwn =
    step === 'RCPT' ? !isReply || outcome !== 'unavailable' : outcome.startsWith('recip')
  const isInStep = ofMail.includes(step) && /^(?!421|503)[45]/.test(answer)
  return {
    outcome,
    scope: isOwn ? 'destination' : undefined,
    status: isReply ? Number(answer.slice(0, 3)) : undefined,
    saysAnswer: isReply,
    waitsS,
    opened: connection === 'fresh' || isDelivered ? 1 : 0,
    next: isDelivered || isInStep ? 'the same' : 'a fresh one',
  }
}

async function untilSilent(
  server: RawSmtpServer,
  clock: StillClock,
  step: Step,
): Promise<number | undefined> {
  await expect.poll(() => server.hangsAt(), { interval: 5 }).toBe(step)
  const [seconds, ...others] = clock.waits()
  clock.expire()
  return others.length === 0 ? seconds : Number.NaN
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
