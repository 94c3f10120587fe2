/** A mock mail server: accepts every mail, and fails at any step that a fault strikes. */
import { once } from 'node:events'
import type { AddressInfo, Socket } from 'node:net'
import { SMTPServer, type SMTPServerDataStream, type SMTPServerSession } from 'smtp-server'
import { systemClock } from '../../lib/clock.ts'
import type { Faults, Occasion } from '../server.ts'
import type { Inbox } from './received.ts'

interface MailReceiver {
  port: number
  close(): Promise<void>
}

interface MailReceiverOptions {
  host: string
  port: number
  faults: Faults
  inbox: Inbox
  closing: AbortSignal
}

/** The open connections by their remote port. */
type Sockets = Map<number, Socket>

export async function startMailReceiver(options: MailReceiverOptions): Promise<MailReceiver> {
  const sockets: Sockets = new Map()
  const server = createSmtpServer(createStep(options, sockets), options.inbox)
  server.on('error', () => {}) // a client that disconnects is no error here
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

function createSmtpServer(step: Step, inbox: Inbox): SMTPServer {
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
        step(session, { on: 'smtp:data' }, { done, take: () => storeMail(body, session, inbox) })
      void readStream(stream).then(end, () => {})
    },
  })
}

/** `take` runs if the step is accepted, before its answer is sent or lost. */
interface StepCallbacks {
  take?: () => void
  done: (refusal?: Error | null) => void
}

/** Runs one step of a mail: applies the fault that is due, or goes on. */
type Step = (session: SMTPServerSession, occasion: Occasion, ends: StepCallbacks) => Promise<void>

function createStep({ faults, closing }: MailReceiverOptions, sockets: Sockets): Step {
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

async function readStream(stream: SMTPServerDataStream): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of stream) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks).toString('utf8')
}

function storeMail(body: string, session: SMTPServerSession, inbox: Inbox): void {
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

/** The parts of a mail that tests ask about: headers, subject, text, HTML, attachments. */
interface ParsedMail {
  /** Names in lower case, values unfolded; repeated headers are joined by a comma. */
  headers: Record<string, string>
  subject: string
  text: string
  html: string
  attachments: { name: string; content: string }[]
}

export function parseMail(message: string): ParsedMail {
  const { headers } = splitPart(message)
  const mail: ParsedMail = {
    headers,
    subject: decodeWords(headers['subject'] ?? ''),
    text: '',
    html: '',
    attachments: [],
  }
  readPart(message, mail)
  return mail
}

function readPart(part: string, mail: ParsedMail): void {
  const { headers, body } = splitPart(part)
  const type = headers['content-type'] ?? 'text/plain'
  const boundary = /boundary="?([^";]+)"?/i.exec(type)?.[1]
  if (boundary !== undefined) {
    const inner = `\r\n${body}`.split(`\r\n--${boundary}`).slice(1)
    for (const each of inner.filter((text) => !text.startsWith('--'))) {
      readPart(each.replace(/^[ \t]*\r\n/, ''), mail)
    }
    return
  }
  const content = decodeBody(body, headers['content-transfer-encoding'] ?? '7bit')
  const name = /filename="?([^";]+)"?/i.exec(headers['content-disposition'] ?? '')?.[1]
  if (name !== undefined) mail.attachments.push({ name: decodeWords(name), content })
  else if (/^text\/html/i.test(type)) mail.html += content
  else mail.text += content
}

function splitPart(part: string): { headers: Record<string, string>; body: string } {
  const end = part.indexOf('\r\n\r\n')
  const head = end === -1 ? part : part.slice(0, end)
  const headers: Record<string, string> = {}
  for (const line of head.replaceAll(/\r\n[ \t]+/g, ' ').split('\r\n')) {
    const colon = line.indexOf(':')
    const name = line.slice(0, colon).trim().toLowerCase()
    const value = line.slice(colon + 1).trim()
    if (colon > 0) headers[name] = name in headers ? `${headers[name]}, ${value}` : value
  }
  return { headers, body: end === -1 ? '' : part.slice(end + 4) }
}

function decodeBody(body: string, encoding: string): string {
  switch (encoding.toLowerCase()) {
    case 'base64':
      return Buffer.from(body, 'base64').toString('utf8')
    case 'quoted-printable':
      return decodeQuoted(body.replaceAll(/=\r?\n/g, ''))
    default:
      return body
  }
}

/** Decodes the encoded words of a header (RFC 2047), in UTF-8 as nodemailer writes them. */
function decodeWords(text: string): string {
  return text
    .replaceAll(/\?=\s+=\?/g, '?==?')
    .replaceAll(/=\?utf-8\?([bq])\?([^?]*)\?=/gi, (_word, kind: string, coded: string) =>
      kind.toLowerCase() === 'b'
        ? Buffer.from(coded, 'base64').toString('utf8')
        : decodeQuoted(coded.replaceAll('_', ' ')),
    )
}

function decodeQuoted(text: string): string {
  const bytes = text.replaceAll(/=([0-9a-f]{2})/gi, (_all, hex: string) =>
    String.fromCharCode(Number.parseInt(hex, 16)),
  )
  return Buffer.from(bytes, 'latin1').toString('utf8')
}
