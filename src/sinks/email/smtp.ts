/**
 * Sends mails, each over a connection of its own. No mail meets a connection that a firewall forgot
 * or that a refused mail left out of step. The URL is read anew for each, so a rotated password
 * takes effect at once. Never retries a mail: every attempt is the caller's.
 */
import { Readable } from 'node:stream'
import MailComposer from 'nodemailer/lib/mail-composer'
import SMTPConnection, {
  type SMTPConnectionCustomAuthContext,
  type SMTPConnectionOptions,
} from 'nodemailer/lib/smtp-connection'
import { type Clock, withTimeout } from '../../lib/clock.ts'
import { openTunnel, OutboundError, readTlsSettings, type TlsSettings } from '../../lib/outbound.ts'
import { isLoopback } from '../../lib/config/web-address.ts'
import { revealSecret, type SendOptions, SinkError, tooLate } from '../sink.ts'
import type { EmailConfig } from './config.ts'
import { type AccessTokens, createAccessTokens } from './oauth.ts'
import { errorFromFailure } from './smtp-blame.ts'
import { createRedactor } from './smtp-redaction.ts'

type Mail = ConstructorParameters<typeof MailComposer>[0] & object

/** How long each step may take, ms. */
export const smtpLimits = {
  /**
   * A proxy's tunnel, and then all until the message begins: nothing was given away yet, so a new
   * connection is the better bet.
   */
  beginMs: 60_000,
  /**
   * Each silence from then on. RFC 5321, 4.5.3.2.6: a client that waits less for the reply to the
   * final dot causes duplicates.
   */
  answerMs: 600_000,
} as const

interface SmtpSendOptions extends SendOptions {
  /** The mail shows leaked secrets in clear. */
  showsSecrets: boolean
}

export interface Mailer {
  /**
   * Resolves with the server's reply to the accepted mail. Throws SinkError. Neither contains a
   * secret.
   */
  send(mail: Mail, options: SmtpSendOptions): Promise<string>
  /** Connects and signs in, and resolves with where. Throws SinkError. */
  reach(signal: AbortSignal): Promise<string>
  close(): void
}

export function createMailer(config: EmailConfig, clock: Clock): Mailer {
  const tokens = config.oauth && createAccessTokens(config.oauth, config, clock)
  const closing = new AbortController()

  function talk<T>(task: Omit<Call<T>, 'address' | 'token'>): Promise<T> {
    return withTimeout(Infinity, [task.signal, closing.signal], async (signal) => {
      const address = readSmtpAddress(config)
      const attempt = async (token?: string, login = { isOver: false }): Promise<T> => {
        const options = await dial(address, config)
        const work: Work<T> = (dialogue) => {
          login.isOver = true
          return task.work(dialogue)
        }
        return converse({ ...task, work, address, token, signal }, { options, clock })
      }
      return tokens ? signInWithToken(tokens, attempt, signal) : attempt()
    })
  }

  return {
    send(mail, { signal, mayBegin = () => true, showsSecrets }) {
      const work: Work<string> = (dialogue) => sendMessage(mail, dialogue, mayBegin)
      return talk({ signal, showsSecrets, isTrial: false, work })
    },
    async reach(signal) {
      const { user, host, port } = readSmtpAddress(config)
      const said = `${user === '' ? 'connected' : 'signed in'} to ${host}:${port}`
      return talk({ signal, showsSecrets: false, isTrial: true, work: async () => said })
    },
    close() {
      closing.abort()
      void tokens?.close()
    },
  }
}

/**
 * A token that was good until now may have been withdrawn: then a new one is tried, once. A token that
 * let in is good, and the mail may have gone.
 */
async function signInWithToken<T>(
  tokens: AccessTokens,
  attempt: (token: string, login: { isOver: boolean }) => Promise<T>,
  signal: AbortSignal,
): Promise<T> {
  for (;;) {
    const { token, isNew } = await tokens.get(signal)
    const login = { isOver: false }
    try {
      return await attempt(token, login)
    } catch (error) {
      const isRefused = error instanceof SinkError && error.reason === 'unauthorized'
      if (login.isOver || !isRefused) throw error
      tokens.refuse(token)
      if (isNew) throw error
    }
  }
}

interface Call<T> {
  address: SmtpAddress
  /** Signs in by XOAUTH2. */
  token: string | undefined
  signal: AbortSignal
  showsSecrets: boolean
  /** No mail is to be sent. */
  isTrial: boolean
  /** What is done once signed in. */
  work: Work<T>
}

type Work<T> = (dialogue: Dialogue) => Promise<T>

interface Dialogue {
  connection: SMTPConnection
  /** Makes text of the server fit for logs. */
  redact: (text: string) => string
  /** Called right before the first byte of the message is written. */
  begin: () => void
  fail: (error: Error) => void
}

interface Means {
  options: SMTPConnectionOptions
  clock: Clock
}

/** Connects, signs in, does the work and leaves. Throws SinkError, which says whose fault it was. */
async function converse<T>(
  { address, token, signal, showsSecrets, isTrial, work }: Call<T>,
  { options, clock }: Means,
): Promise<T> {
  const { user, password } = address
  const redact = createRedactor({ user, password, token }, showsSecrets)
  const progress = { isTrial, isAnonymous: user === '', isNamed: false, hasBegun: false }
  /** nodemailer's log tells where the socket is, and each command. */
  function follow({ localAddress }: { localAddress?: string }, text: unknown): void {
    const isNameless = options.name === undefined && !fullName.test(connection.name)
    if (localAddress !== undefined && isNameless) connection.name = addressLiteral(localAddress)
    if (String(text).startsWith('RCPT ')) progress.isNamed = true
  }
  const connection = new SMTPConnection({
    ...options,
    connectionTimeout: smtpLimits.beginMs,
    greetingTimeout: smtpLimits.beginMs,
    socketTimeout: smtpLimits.answerMs,
    socketCloseTimeout: 1000,
    maxResponseSize: 64 * 1024,
    transactionLog: true,
    logger: { debug: follow },
    customAuth: { TOKEN: (context) => signInByToken(context, user, token ?? '') },
  })
  const { promise: failure, reject: fail } = Promise.withResolvers<never>()
  failure.catch(() => undefined) // it may come when all is over
  connection.on('error', fail)
  // nodemailer says afterwards why, if it knows
  connection.on('end', () => setImmediate(() => fail(new Error('the connection was closed'))))
  const giveUp = (): void => fail(new Error('given up'))
  signal.addEventListener('abort', giveUp, { once: true })
  const timer = startTimer(clock, fail)
  const begin = (): void => {
    progress.hasBegun = true
    timer.abort()
  }
  try {
    if (signal.aborted) options.connection?.destroy()
    signal.throwIfAborted()
    const signedIn = signIn(connection, { user, password, token })
    const done = signedIn.then(() => work({ connection, redact, begin, fail }))
    const result = await Promise.race([failure, done])
    connection.quit()
    return result
  } catch (error) {
    throw errorFromFailure(error, { ...progress, isAborted: signal.aborted }, redact)
  } finally {
    timer.abort()
    signal.removeEventListener('abort', giveUp)
    connection.close()
  }
}

/** Fails what has not begun in time; ends when it is aborted. */
function startTimer(clock: Clock, fail: (error: Error) => void): AbortController {
  const timer = new AbortController()
  void clock.sleep(smtpLimits.beginMs, timer.signal).then(() => {
    const silence = new Error(`no answer within ${smtpLimits.beginMs / 1000} s`)
    if (!timer.signal.aborted) fail(Object.assign(silence, { code: 'ETIMEDOUT' }))
  })
  return timer
}

/** No `localhost.localdomain`, and no address in brackets, as nodemailer calls a host without a domain. */
const fullName = /^(?!localhost)[a-z\d.-]+$/i

/** RFC 5321, 4.1.3. */
function addressLiteral(address: string): string {
  const bare = address.replace(/^::ffff:(?=\d+\.)/i, '').replace(/%.*$/, '')
  return bare.includes(':') ? `[IPv6:${bare}]` : `[${bare}]`
}

type Done<T> = (error?: Error | null, result?: T) => void

function call<T>(start: (done: Done<T>) => void): Promise<T> {
  return new Promise((resolve, reject) =>
    start((error, result) => (error ? reject(error) : resolve(result as T))),
  )
}

async function signIn(
  connection: SMTPConnection,
  { user, password, token }: { user: string; password: string; token: string | undefined },
): Promise<void> {
  await call((done) => connection.connect(done))
  if (user === '') return
  if (!connection.allowsAuth) throw new SinkError('misconfigured', noSignIn)
  const login = { user, pass: password, ...(token !== undefined && { method: 'TOKEN' }) }
  await call((done) => connection.login(login, done))
}

const noSignIn =
  'the mail server offers no sign-in: remove user and password, or use the submission port 587'

/** XOAUTH2: a server says by a challenge what it has against a token, and refuses it afterwards. */
async function signInByToken(
  context: SMTPConnectionCustomAuthContext,
  user: string,
  token: string,
): Promise<void> {
  const response = Buffer.from(`user=${user}\u0001auth=Bearer ${token}\u0001\u0001`)
  const first = await context.sendCommand(`AUTH XOAUTH2 ${response.toString('base64')}`)
  const { status } = first.status === 334 ? await context.sendCommand('') : first
  if (status !== 235) throw new Error('Invalid login')
}

/** What a mail names is never read from a file or an address. */
const noAccess = { disableFileAccess: true, disableUrlAccess: true }

async function sendMessage(
  mail: Mail,
  { connection, redact, begin, fail }: Dialogue,
  mayBegin: () => boolean,
): Promise<string> {
  const message = new MailComposer({ ...mail, ...noAccess }).compile()
  /** nodemailer reads the message only once the server has said 354. */
  async function* readIfHeld(): AsyncGenerator<unknown> {
    if (!mayBegin()) {
      fail(new SinkError('unavailable', tooLate)) // nodemailer would write into the error
      throw new Error(tooLate)
    }
    begin()
    yield* message.createReadStream() as AsyncIterable<unknown>
  }
  const { response } = await call<{ response: string }>((done) =>
    connection.send(message.getEnvelope(), Readable.from(readIfHeld()), done),
  )
  return redact(response)
}

/** Where and how to connect, by the proxy if there is one. Throws SinkError. */
async function dial(
  { host, port, isImplicitTls }: SmtpAddress,
  config: EmailConfig,
): Promise<SMTPConnectionOptions> {
  const end = { hostname: host, port, timeoutMs: smtpLimits.beginMs }
  const connection = await openTunnel(config, end).catch(throwAsSinkError)
  // behind a proxy, a name of this machine is one of the proxy's
  const isOwn = isLoopback(host) && connection === undefined
  return {
    ...(connection && { connection }),
    host,
    port,
    ...(config.hello !== undefined && { name: config.hello }),
    secure: isImplicitTls,
    requireTLS: config.tls === 'required' && !isImplicitTls && !isOwn,
    ignoreTLS: config.tls === 'off',
    tls: {
      ...readTls(config),
      // A relay on this machine may even be used in clear, so an unknown certificate is acceptable.
      ...(isOwn && !isImplicitTls && { rejectUnauthorized: false }),
    },
  }
}

function readTls(config: EmailConfig): TlsSettings {
  try {
    return readTlsSettings(config)
  } catch (error) {
    return throwAsSinkError(error)
  }
}

function throwAsSinkError(error: unknown): never {
  if (!(error instanceof OutboundError)) throw error
  throw new SinkError(error.reason, error.message)
}

/** The mail server and login, parsed from the operator's URL. */
interface SmtpAddress {
  host: string
  port: number
  /** TLS from the first byte: smtps://. */
  isImplicitTls: boolean
  user: string
  password: string
}

const defaultPorts: Record<string, number> = { 'smtp:': 587, 'smtps:': 465 }

/**
 * Reads the URL anew, file included. Throws SinkError `misconfigured`, never with a part of the
 * URL.
 */
export function readSmtpAddress(config: EmailConfig): SmtpAddress {
  const url = URL.parse(revealSecret(config.smtp, 'smtp_file'))
  const defaultPort = defaultPorts[url?.protocol ?? '']
  if (!url || defaultPort === undefined || url.hostname === '') {
    throw misconfiguredError(
      config,
      'smtp must read smtp://host or smtps://host, with user and password',
    )
  }
  return {
    host: url.hostname.replace(/^\[(.*)\]$/, '$1'),
    port: Number(url.port) || defaultPort,
    isImplicitTls: url.protocol === 'smtps:',
    user: decode(config, url.username),
    password: decode(config, url.password),
  }
}

function decode(config: EmailConfig, text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    throw misconfiguredError(config, 'user or password in smtp has a stray %; write it as %25')
  }
}

function misconfiguredError(config: EmailConfig, what: string): SinkError {
  return new SinkError('misconfigured', `sink ${config.name}: ${what}`)
}
