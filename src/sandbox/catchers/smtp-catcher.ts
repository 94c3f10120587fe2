/** A pretend mail server: takes every mail, and fails at any step where a fault says so. */
import { once } from 'node:events'
import type { AddressInfo, Socket } from 'node:net'
import { SMTPServer, type SMTPServerDataStream, type SMTPServerSession } from 'smtp-server'
import { systemClock } from '../../runtime/clock.ts'
import type { Faults, Occasion } from '../faults.ts'
import { parseMail } from './mail-parser.ts'
import type { Inbox } from './received.ts'

export interface SmtpCatcher {
  port: number
  close(): Promise<void>
}

export interface SmtpOptions {
  host: string
  port: number
  faults: Faults
  inbox: Inbox
  closing: AbortSignal
}

/** The open connections by the port at their other end. */
type Sockets = Map<number, Socket>

export async function startSmtpCatcher(options: SmtpOptions): Promise<SmtpCatcher> {
  const sockets: Sockets = new Map()
  const server = createServer(createSteps(options, sockets), options.inbox)
  server.on('error', () => {}) // a client that goes away is its own affair
  server.server.on('connection', (socket: Socket) => {
    const from = socket.remotePort ?? 0
    sockets.set(from, socket)
    socket.once('close', () => sockets.delete(from))
  })
  server.listen(options.port, options.host)
  await once(server.server, 'listening')
  return {
    port: (server.server.address() as AddressInfo).port,
    async close() {
      const closed = new Promise<void>((resolve) => server.close(resolve))
      for (const socket of sockets.values()) socket.destroy()
      await closed
    },
  }
}

function createServer(step: Step, inbox: Inbox): SMTPServer {
  return new SMTPServer({
    authOptional: true,
    allowInsecureAuth: true,
    disabledCommands: ['STARTTLS'],
    disableReverseLookup: true,
    closeTimeout: 1,
    onConnect: (session, done) => void step(session, { on: 'smtp:connect' }, { done }),
    onAuth: ({ username = 'anyone' }, session, done) =>
      void step(
        session,
        { on: 'smtp:auth' },
        { done: (refusal) => done(refusal, refusal ? {} : { user: username }) },
      ),
    onMailFrom: (_address, session, done) => void step(session, { on: 'smtp:mail' }, { done }),
    onRcptTo: ({ address }, session, done) =>
      void step(session, { on: 'smtp:rcpt', recipient: address }, { done }),
    onData: (stream, session, done) => {
      const end = (body: string): Promise<void> =>
        step(session, { on: 'smtp:data' }, { done, take: () => keep(body, session, inbox) })
      void textOf(stream).then(end, () => {})
    },
  })
}

/** `take` runs where the step is accepted, before its answer is given or lost. */
interface StepEnds {
  take?: () => void
  done: (refusal?: Error | null) => void
}

/** One step of a mail: the fault that is due there, or on. */
type Step = (session: SMTPServerSession, occasion: Occasion, ends: StepEnds) => Promise<void>

function createSteps({ faults, closing }: SmtpOptions, sockets: Sockets): Step {
  return async (session, occasion, { take, done }) => {
    const fault = faults.strike(occasion)
    const cut = (): unknown => sockets.get(session.remotePort)?.destroy()
    if (fault?.effect === 'hang') return
    if (fault?.effect === 'refuse' || fault?.effect === 'cut') return void cut()
    if (fault?.effect === 'status') {
      const refusal = new Error(fault.message ?? 'refused by the sandbox')
      return done(Object.assign(refusal, { responseCode: fault.status }))
    }
    if (fault?.effect === 'delay') await systemClock.sleep(fault.ms, closing)
    take?.()
    if (fault?.effect === 'lose-answer') cut()
    else done()
  }
}

async function textOf(stream: SMTPServerDataStream): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of stream) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks).toString('utf8')
}

function keep(body: string, session: SMTPServerSession, inbox: Inbox): void {
  const { headers, ...parts } = parseMail(body)
  const recipients = session.envelope.rcptTo.map(({ address }) => address)
  const { mailFrom } = session.envelope
  inbox.take({
    sink: 'email',
    id: headers['message-id'] ?? null,
    atMs: systemClock.now(),
    to: recipients.join(','),
    headers,
    body,
    json: null,
    mail: { from: mailFrom ? mailFrom.address : '', recipients, ...parts },
  })
}
