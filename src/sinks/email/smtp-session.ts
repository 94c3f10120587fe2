/**
 * One connection to a mail server, from the greeting to the last mail. Every reply has its limit of
 * time; what fails is a SinkError that says whose fault it was.
 */
import { Socket } from 'node:net'
import os from 'node:os'
import { Readable } from 'node:stream'
import MailComposer from 'nodemailer/lib/mail-composer'
import SMTPConnection, {
  type SMTPConnectionCustomAuthContext,
  type SMTPConnectionOptions,
} from 'nodemailer/lib/smtp-connection'
import type { Clock } from '../../lib/clock.ts'
import { SinkError, tooLate } from '../sink.ts'
import { errorFromFailure, stageByVerb, type SmtpStage } from './smtp-blame.ts'
import { createRedactor } from './smtp-redaction.ts'

export type Mail = ConstructorParameters<typeof MailComposer>[0] & object

/** How long each reply is awaited, ms. */
export const smtpLimits = {
  /** Connecting, and the greeting. */
  setUpMs: 10_000,
  /** Every command: nothing was given away yet, so a new connection is the better bet. */
  commandMs: 30_000,
  /**
   * The end of a message. RFC 5321, 4.5.3.2.6: a client that waits less for the reply to the final
   * dot causes duplicates.
   */
  answerMs: 600_000,
  /** Each block of a message. RFC 5321, 4.5.3.2.5. */
  blockMs: 180_000,
  /** RSET, which tests a connection that has been idle: a firewall may have forgotten it. */
  testMs: 5_000,
  /** How long a connection is kept for the next mail. */
  idleMs: 10_000,
}

/** nodemailer's limits would end first: one of them covers all from the name of the host to TLS. */
const unlimitedMs = 3_600_000

export interface SmtpLogin {
  user: string
  password: string
  /** Signs in by XOAUTH2. */
  token?: string | undefined
}

interface SessionOptions {
  connection: SMTPConnectionOptions
  login: SmtpLogin
  /** undefined: the name of this host if it is whole, else the address of the socket. */
  hello: string | undefined
  clock: Clock
  /** No mail is to be sent. */
  isTrial: boolean
}

interface SendStep {
  signal: AbortSignal
  mayBegin: () => boolean
  /** The mail shows leaked secrets in clear. */
  showsSecrets: boolean
}

type Awaited = SmtpStage | 'body' | 'reset' | 'idle'
type Done<T> = (error?: Error | null, result?: T) => void

export class SmtpSession {
  readonly #options: SessionOptions
  readonly #connection: SMTPConnection
  /** Commands without a reply yet, oldest first; never empty but between two steps. */
  #awaited: Awaited[] = ['connect']
  #stage: Awaited = 'connect'
  #hasBegun = false
  #timer = new AbortController()
  #fail: (error: Error) => void = () => undefined

  private constructor(options: SessionOptions) {
    this.#options = options
    this.#connection = new SMTPConnection({
      ...options.connection,
      socket: new Socket(), // nodemailer's would give each address a share of `connectionTimeout`
      connectionTimeout: unlimitedMs,
      greetingTimeout: unlimitedMs,
      dnsTimeout: smtpLimits.setUpMs,
      socketTimeout: unlimitedMs,
      socketCloseTimeout: 1000,
      maxResponseSize: 64 * 1024,
      transactionLog: true,
      logger: { debug: (entry: LogEntry, text: unknown) => this.#follow(entry, String(text)) },
      customAuth: { TOKEN: (context) => signInByToken(context, options.login) },
    })
    this.#connection.on('error', (error: Error) => this.#fail(error))
    this.#connection.on('end', () => {
      this.#await([])
      // nodemailer says afterwards why, if it knows
      queueMicrotask(() => this.#fail(new Error('the connection was closed')))
    })
  }

  /** Connects, begins TLS and signs in. Throws SinkError. */
  static async open(options: SessionOptions, signal: AbortSignal): Promise<SmtpSession> {
    const session = new SmtpSession(options)
    const connection = session.#connection
    const { user, password, token } = options.login
    const login = { user, pass: password, ...(token !== undefined && { method: 'TOKEN' }) }
    session.#await(['connect'])
    await session.#run((done) => connection.connect(done), { signal })
    if (user === '') return session
    if (!connection.allowsAuth) {
      session.leave()
      throw new SinkError('misconfigured', noSignIn)
    }
    await session.#run((done) => connection.login(login, done), { signal })
    return session
  }

  get isOpen(): boolean {
    return !this.#connection.destroyed
  }

  /** Resolves with the reply to the accepted message, without a secret. Throws SinkError. */
  async send(mail: Mail, { signal, mayBegin, showsSecrets }: SendStep): Promise<string> {
    const message = new MailComposer({ ...mail, ...noAccess }).compile()
    const body = Readable.from(this.#readIfHeld(message.createReadStream(), mayBegin))
    this.#hasBegun = false
    const { response } = await this.#run<{ response: string }>(
      (done) => this.#connection.send(message.getEnvelope(), body, done),
      { signal, showsSecrets },
    )
    return createRedactor(this.#options.login, showsSecrets)(response)
  }

  /** nodemailer reads the message only once the server has said 354. */
  async *#readIfHeld(body: Readable, mayBegin: () => boolean): AsyncGenerator<unknown> {
    if (!mayBegin()) {
      this.#fail(new SinkError('unavailable', tooLate)) // nodemailer would write into the error
      throw new Error(tooLate)
    }
    this.#hasBegun = true
    for await (const chunk of body as AsyncIterable<Buffer>) {
      for (let at = 0; at < chunk.length; at += blockLength) {
        this.#await(['body'])
        yield chunk.subarray(at, at + blockLength)
      }
    }
  }

  /** Keeps the connection for a while. */
  rest(): void {
    this.#await(['idle'])
  }

  /** Whether it can be used again; also ends what a refused mail has left. */
  async isAlive(signal: AbortSignal): Promise<boolean> {
    this.#await([])
    return this.#run<boolean>((done) => this.#connection.reset(done), { signal }).catch(() => false)
  }

  /** Ends a connection that is in order. */
  leave(): void {
    this.#connection.quit()
    this.close()
  }

  close(): void {
    this.#await([])
    this.#connection.close()
  }

  /** A step that fails without the server's refusal, which leaves all in order, ends the connection. */
  async #run<T>(
    start: (done: Done<T>) => void,
    { signal, showsSecrets }: { signal: AbortSignal; showsSecrets?: boolean },
  ): Promise<T> {
    const { promise, resolve, reject } = Promise.withResolvers<T>()
    const giveUp = (): void =>
      reject(new Error(`given up while waiting for ${describe(this.#stage)}`))
    this.#fail = reject
    signal.addEventListener('abort', giveUp, { once: true })
    try {
      if (signal.aborted) giveUp()
      else start((error, result) => (error ? reject(error) : resolve(result as T)))
      return await promise
    } catch (error) {
      const { isTrial, login } = this.#options
      const progress = {
        stage: stageOf(this.#stage),
        hasBegun: this.#hasBegun,
        isAborted: signal.aborted,
        isTrial,
        isAnonymous: login.user === '',
      }
      if (!isRefusal(error)) this.close()
      throw errorFromFailure(error, progress, createRedactor(login, showsSecrets))
    } finally {
      if (this.#stage === 'body') this.close() // answered too soon: its rest would follow
      signal.removeEventListener('abort', giveUp)
      this.#fail = () => undefined
    }
  }

  /** nodemailer's log tells each command and reply, and where the socket is. */
  #follow({ tnx, localAddress }: LogEntry, text: string): void {
    const [awaited] = this.#awaited
    if (localAddress !== undefined) {
      this.#connection.name = this.#options.hello ?? nameOfHost() ?? addressLiteral(localAddress)
      this.#await(['greeting'])
    } else if (tnx === 'message') {
      this.#await(['message']) // its final dot is written
    } else if (tnx === 'client') {
      const [verb = ''] = text.split(' ', 1)
      const stage = verb === 'RSET' ? 'reset' : (stageByVerb[verb] ?? 'auth')
      this.#await([...(awaited === 'starttls' ? [] : this.#awaited), stage])
    } else if (tnx === 'server' && awaited !== 'starttls') {
      this.#await(this.#awaited.slice(1)) // that of STARTTLS begins the handshake
    }
  }

  #await(stages: Awaited[]): void {
    this.#timer.abort()
    this.#awaited = stages
    const [stage] = stages
    if (stage === undefined) return
    this.#stage = stage
    this.#timer = new AbortController()
    const { signal } = this.#timer
    const ms = limitOf(stage)
    void this.#options.clock.sleep(ms, signal).then(() => {
      if (signal.aborted) return
      const silence = new Error(`${describe(stage)} did not come within ${ms / 1000} s`)
      this.#fail(Object.assign(silence, { code: 'ETIMEDOUT' }))
      if (stage === 'idle') this.leave()
      else this.close()
    })
  }
}

interface LogEntry {
  tnx?: string
  localAddress?: string
}

/** Of a message, at once. */
const blockLength = 64 * 1024

const noSignIn =
  'the mail server offers no sign-in: remove user and password, or use the submission port 587'

/** What a mail names is never read from a file or an address. */
const noAccess = { disableFileAccess: true, disableUrlAccess: true }

function limitOf(stage: Awaited): number {
  const { setUpMs, commandMs, answerMs, blockMs, testMs, idleMs } = smtpLimits
  if (stage === 'connect' || stage === 'greeting') return setUpMs
  if (stage === 'body') return blockMs
  if (stage === 'message') return answerMs
  if (stage === 'reset') return testMs
  return stage === 'idle' ? idleMs : commandMs
}

function stageOf(awaited: Awaited): SmtpStage {
  if (awaited === 'body') return 'message'
  return awaited === 'reset' || awaited === 'idle' ? 'mail' : awaited
}

const words: Partial<Record<Awaited, string>> = {
  connect: 'the connection',
  greeting: 'the greeting',
  hello: 'the answer to EHLO',
  mail: 'the answer to MAIL FROM',
  rcpt: 'the answer to RCPT TO',
  body: 'room for the message',
  message: 'the answer to the message',
}

function describe(stage: Awaited): string {
  return words[stage] ?? `the answer to ${stage.toUpperCase()}`
}

/** The server refused a mail, waits for the next command, and is not out of step with us (503). */
function isRefusal(error: unknown): boolean {
  const { code, response } = (error ?? {}) as { code?: string; response?: string }
  return (code === 'EENVELOPE' || code === 'EMESSAGE') && /^(?!421|503)[45]/.test(response ?? '')
}

/** XOAUTH2: a server says by a challenge what it has against a token, and refuses it afterwards. */
async function signInByToken(
  context: SMTPConnectionCustomAuthContext,
  { user, token = '' }: SmtpLogin,
): Promise<void> {
  const response = Buffer.from(`user=${user}\u0001auth=Bearer ${token}\u0001\u0001`)
  const first = await context.sendCommand(`AUTH XOAUTH2 ${response.toString('base64')}`)
  const { status } = first.status === 334 ? await context.sendCommand('') : first
  if (status !== 235) throw new Error('Invalid login')
}

/** RFC 5321, 4.1.4: a name without a domain is none. */
function nameOfHost(): string | undefined {
  const name = os.hostname()
  const isWhole = /^(?!localhost)[a-z\d-]+(\.[a-z\d-]+)*\.[a-z][a-z\d-]*$/i.test(name)
  return isWhole ? name : undefined
}

/** RFC 5321, 4.1.3. */
function addressLiteral(address: string): string {
  const bare = address.replace(/^::ffff:(?=\d+\.)/i, '').replace(/%.*$/, '')
  return bare.includes(':') ? `[IPv6:${bare}]` : `[${bare}]`
}
