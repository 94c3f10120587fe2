/**
 * The connections to one mail server. Each send reads the URL anew, so a rotated password takes
 * effect with the next send, and connections of the old one end after the message they carry. Never
 * retries or requeues a message: every attempt is the caller's.
 */
import { Readable } from 'node:stream'
import { callbackify } from 'node:util'
import {
  createTransport,
  type SendMailOptions,
  type SMTPPoolOptions,
  type SMTPPoolSentMessageInfo,
  type Transporter,
} from 'nodemailer'
import { findProxy, openTunnel, OutboundError, readTlsSettings } from '../../lib/outbound.ts'
import { explainTlsFailure } from '../../lib/web-address.ts'
import { type SendOptions, SinkError, type SinkReason, tooLate } from '../sink.ts'
import type { EmailConfig } from './config.ts'

interface SmtpSendOptions extends SendOptions {
  /** Leaked secrets that the mail shows in clear. */
  secrets: readonly string[]
}

interface SmtpPool {
  /**
   * Resolves with the server's reply to the accepted message. Throws SinkError. Neither contains a
   * secret.
   */
  send(mail: SendMailOptions, options: SmtpSendOptions): Promise<string>
  /** Connects and signs in, and resolves with where. Throws SinkError. */
  reach(signal: AbortSignal): Promise<string>
  close(): void
}

type Transport = Transporter<SMTPPoolSentMessageInfo, SMTPPoolOptions>

export const maxConnections = 4

/** For each of DNS, connecting, greeting and TLS. */
export const setUpTimeoutMs = 10_000

/**
 * RFC 5321, 4.5.3.2.6: a client that waits less for the reply to the final dot causes duplicates.
 */
export const answerTimeoutMs = 600_000

export function createSmtpPool(config: EmailConfig): SmtpPool {
  const sends = new WeakMap<AbortSignal, RunningSend>()
  let current: { key: string; tls: unknown; transport: Transport } | undefined

  function transportTo(address: SmtpAddress): Transport {
    const key = JSON.stringify(address)
    const tls = readTlsSettings(config).secureContext
    if (current?.key === key && current.tls === tls) return current.transport
    current?.transport.close()
    const transport = openTransport(address, config)
    guardBodies(transport, sends)
    current = { key, tls, transport }
    return transport
  }

  return {
    async send(mail, { signal, mayBegin = () => true, secrets }) {
      const address = readSmtpAddress(config)
      const redact = createRedactor(address, secrets)
      const refusal = new AbortController()
      const ownSignal = AbortSignal.any([signal, refusal.signal])
      const running: RunningSend = { mayBegin, refusal, hasBegun: false }
      sends.set(ownSignal, running)
      try {
        const { response } = await transportTo(address).sendMail({ ...mail, signal: ownSignal })
        return redact(response)
      } catch (error) {
        if (refusal.signal.aborted) throw new SinkError('unavailable', tooLate)
        const progress = { hasBodyStarted: running.hasBegun, isAborted: ownSignal.aborted }
        throw errorFromFailure(error, progress, redact)
      }
    },
    async reach(signal) {
      const address = readSmtpAddress(config)
      const abandoned = rejectWhenAborted(signal)
      let transport: Transport | undefined
      try {
        transport = openTransport(address, config, setUpTimeoutMs)
        await Promise.race([transport.verify(), abandoned])
        const { host, port, user } = address
        return `${user === '' ? 'connected' : 'signed in'} to ${host}:${port}`
      } catch (error) {
        const progress = { hasBodyStarted: false, isAborted: signal.aborted, isTrial: true }
        throw errorFromFailure(error, progress, createRedactor(address))
      } finally {
        transport?.close({ force: true })
      }
    },
    close() {
      current?.transport.close({ force: true })
      current = undefined
    },
  }
}

function rejectWhenAborted(signal: AbortSignal): Promise<never> {
  const { promise, reject } = Promise.withResolvers<never>()
  const giveUp = (): void => reject(new Error('the time was up'))
  signal.addEventListener('abort', giveUp, { once: true })
  if (signal.aborted) giveUp()
  return promise
}

function openTransport(
  address: SmtpAddress,
  config: EmailConfig,
  socketTimeoutMs: number = answerTimeoutMs,
): Transport {
  const { host, port, isImplicitTls, user, password } = address
  // Behind a proxy, a name of this machine is one of the proxy's.
  const isLoopback = isLoopbackHost(host) && findProxy(config, host) === undefined
  const getSocket = callbackify(async (_options: unknown) => {
    const end = { hostname: host, port, timeoutMs: setUpTimeoutMs }
    const connection = await openTunnel(config, end)
    return connection === undefined ? false : { connection }
  })
  return createTransport({
    pool: true,
    host,
    port,
    secure: isImplicitTls,
    requireTLS: config.tls === 'required' && !isImplicitTls && !isLoopback,
    ignoreTLS: config.tls === 'off',
    getSocket,
    tls: {
      ...readTlsSettings(config),
      // A relay on this machine may even be used in clear, so an unknown certificate is acceptable.
      ...(isLoopback && !isImplicitTls && { rejectUnauthorized: false }),
    },
    ...(user !== '' && { auth: { user, pass: password } }),
    maxConnections,
    maxRequeues: 0,
    connectionTimeout: setUpTimeoutMs,
    greetingTimeout: setUpTimeoutMs,
    dnsTimeout: setUpTimeoutMs,
    socketTimeout: socketTimeoutMs,
    socketCloseTimeout: 1000,
    maxResponseSize: 64 * 1024,
    disableFileAccess: true,
    disableUrlAccess: true,
  })
}

interface RunningSend {
  mayBegin: () => boolean
  /** Aborted when `mayBegin` said no: that closes the connection, so the server drops the message. */
  refusal: AbortController
  /** The message began to flow. */
  hasBegun: boolean
}

/**
 * Asks `mayBegin` when a message is first read, and notes that it begins. nodemailer reports a lost
 * connection before and after DATA alike, but it reads the stream only once the server has said 354.
 */
function guardBodies(transport: Transport, sends: WeakMap<AbortSignal, RunningSend>): void {
  transport.use('stream', (mail, done) => {
    const running = mail.data.signal && sends.get(mail.data.signal)
    if (running) {
      mail.message?.processFunc((body) => Readable.from(readIfHeld(body, running)))
    }
    done()
  })
}

async function* readIfHeld(body: Readable, running: RunningSend): AsyncGenerator<unknown> {
  if (!running.mayBegin()) {
    running.refusal.abort()
    throw new SinkError('unavailable', tooLate)
  }
  running.hasBegun = true
  yield* body
}

/** The fields of nodemailer's errors that are read here. */
interface SmtpFault {
  message: string
  code: string
  originalCode: string
  command: string
  response: string
  responseCode: number | undefined
}

interface SendProgress {
  /** The server said 354 and the message began to flow. */
  hasBodyStarted: boolean
  isAborted: boolean
  /** No message was to be sent. */
  isTrial?: boolean
}

/**
 * Builds the SinkError of a failed send; `redact` removes secrets from the server's text. A message
 * counts as accepted only after the reply to the final dot: a loss before its first byte was read
 * for sending is certainly no delivery (`unavailable`), and after any later loss the outcome is
 * unknown.
 */
export function errorFromFailure(
  error: unknown,
  progress: SendProgress,
  redact: (text: string) => string,
): SinkError {
  if (error instanceof OutboundError) {
    return new SinkError(error.isMisconfigured ? 'misconfigured' : 'unavailable', error.message)
  }
  const fault = readFault(error)
  const reason = classifyFault(fault, progress)
  const tls = fault.responseCode === undefined ? explainTlsFailure(error, 'smtps') : undefined
  const serverText = tls ?? redact(fault.response || fault.message)
  const code = fault.responseCode
  const isUnmet = progress.isTrial === true && reason === 'unavailable'
  const unmet = `the mail server ${code === undefined ? 'was not reached' : 'cannot be used now'}`
  const summary = isUnmet ? unmet : (summaries[reason] ?? 'the mail server failed')
  return new SinkError(
    reason,
    serverText === '' ? summary : `${summary}: ${serverText}`,
    code === undefined ? {} : { status: code },
  )
}

const summaries: Partial<Record<SinkReason, string>> = {
  recipient_refused: 'the mail server refuses the recipient',
  unauthorized: 'the mail server refuses the user or the password',
  invalid: 'the mail server refuses the message',
  misconfigured: 'the mail server cannot be used as configured',
  unavailable: 'the mail server did not take the message',
  timeout: 'the mail server took the message and did not answer in time',
  connection_lost: 'the connection was lost while the mail server took the message',
}

function readFault(error: unknown): SmtpFault {
  const fields = (error instanceof Error ? error : {}) as Partial<Record<keyof SmtpFault, unknown>>
  const text = (name: keyof SmtpFault): string => {
    const value = fields[name]
    return typeof value === 'string' ? value : ''
  }
  return {
    message: text('message'),
    code: text('code'),
    originalCode: text('originalCode'),
    command: text('command'),
    response: text('response'),
    responseCode: typeof fields.responseCode === 'number' ? fields.responseCode : undefined,
  }
}

function classifyFault(fault: SmtpFault, progress: SendProgress): SinkReason {
  const reply = fault.responseCode ?? 0
  if (reply >= 500 && reply < 600) return classifyRefusal(fault, reply)
  if (reply >= 400 && reply < 500) return 'unavailable'
  if (progress.hasBodyStarted) {
    return progress.isAborted || fault.code === 'ETIMEDOUT' ? 'timeout' : 'connection_lost'
  }
  if (progress.isAborted) return 'unavailable'
  return classifyBeforeBody(fault)
}

const authenticationReplies = new Set([530, 534, 535, 538]) // RFC 4954, section 6

function classifyRefusal(fault: SmtpFault, reply: number): SinkReason {
  if (fault.code === 'EAUTH' || authenticationReplies.has(reply)) return 'unauthorized'
  // wrong order of commands: the session is at fault, not the message
  if (reply === 503) return 'unavailable'
  if (fault.command === 'STARTTLS') return 'misconfigured'
  if (fault.command === 'RCPT TO') return 'recipient_refused'
  if (fault.command === 'MAIL FROM') return reply === 552 ? 'invalid' : 'misconfigured'
  if (fault.command === 'DATA')
    return isAboutMailbox(fault.response) ? 'recipient_refused' : 'invalid'
  return 'unavailable'
}

/**
 * RFC 3463: 5.1.x is the address, 5.2.x the mailbox, except 5.2.3, which is the message's length.
 */
function isAboutMailbox(response: string): boolean {
  return /^\d{3}[ -]5\.(?:1\.\d+|2\.(?!3\b)\d+)\b/.test(response)
}

function classifyBeforeBody(fault: SmtpFault): SinkReason {
  if (isCertificateFault(fault)) return 'misconfigured'
  switch (fault.code) {
    case 'EAUTH':
    case 'ENOAUTH':
      return 'unauthorized'
    case 'EENVELOPE': // an address that nodemailer itself refuses
    case 'ECONFIG':
    case 'EREQUIRETLS':
    case 'ERR_ACCESS_DENIED':
      return 'misconfigured'
    default: // refused, DNS, greeting, TLS cut, pool closed: nothing was accepted
      return 'unavailable'
  }
}

/**
 * Node's words for a certificate that does not verify, and OpenSSL's for a peer that speaks no TLS.
 */
function isCertificateFault({ originalCode, code, message }: SmtpFault): boolean {
  const words = `${originalCode} ${code} ${message}`
  return /CERT|SELF_SIGNED|UNABLE_TO_|ALTNAME|ERR_SSL_|ERR_TLS_|wrong version number/i.test(words)
}

const maxLength = 160

/** Code and enhanced status code (RFC 3463): the part of a reply that quotes nothing. */
const statusCodes = /^\d{3}(?:[ -]\d\.\d{1,3}\.\d{1,3})?(?:[ -]|$)/u

/**
 * A shorter secret cannot be told apart from the words around it: then the whole rest of the reply
 * is removed.
 */
const minPieceLength = 4

/**
 * Makes a server's text fit for a log line: one line, printable, short, and without the password in
 * any form that the server has seen. `leaked` are the secrets in the mail: a server that refuses a
 * mail may quote any part of it, so every run of four of their characters is removed, in base64
 * too.
 */
export function createRedactor(
  { user, password }: SmtpAddress,
  leaked: readonly string[] = [],
): (text: string) => string {
  const base64 = (text: string): string => Buffer.from(text).toString('base64')
  const forms = [
    base64(`\u0000${user}\u0000${password}`),
    base64(password),
    encodeURIComponent(password),
    password,
  ]
  return (text) => {
    const line = toOneLine(text)
    const ours = password === '' ? line : forms.reduce(hide, line)
    const clean = leaked.length === 0 ? ours : withoutPieces(ours, leaked)
    return clean.length <= maxLength ? clean : `${clean.slice(0, maxLength - 1).toWellFormed()}…`
  }
}

function toOneLine(text: string): string {
  return text.replace(/[\p{C}\p{Z}\s]+/gu, ' ').trim()
}

function withoutPieces(line: string, leaked: readonly string[]): string {
  const status = statusCodes.exec(line)?.[0] ?? ''
  const secrets = leaked.map(toOneLine)
  if (secrets.some(({ length }) => length < minPieceLength)) return status.replace(/[ -]$/u, '')
  const pieces = new Set([...leaked.flatMap(base64Forms), ...secrets].flatMap(splitPieces))
  return status + hidePieces(line.slice(status.length), pieces)
}

function splitPieces(text: string): string[] {
  return Array.from({ length: Math.max(0, text.length - minPieceLength + 1) }, (_, from) =>
    text.slice(from, from + minPieceLength),
  )
}

/**
 * Base64 encodes three bytes as four letters, so a secret has three forms, by where in the mail it
 * begins.
 */
function base64Forms(secret: string): string[] {
  const bytes = Buffer.from(secret)
  return [0, 1, 2].map((skipped) => bytes.subarray(skipped).toString('base64'))
}

function hidePieces(text: string, pieces: ReadonlySet<string>): string {
  const isHidden = new Uint8Array(text.length)
  for (let from = 0; from + minPieceLength <= text.length; from += 1) {
    if (pieces.has(text.slice(from, from + minPieceLength)))
      isHidden.fill(1, from, from + minPieceLength)
  }
  let shown = ''
  for (let at = 0; at < text.length; at += 1) {
    if (isHidden[at] !== 1) shown += text.charAt(at)
    else if (isHidden[at - 1] !== 1) shown += '<secret>'
  }
  return shown
}

function hide(text: string, secret: string): string {
  return text.replaceAll(secret, '<secret>')
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
  const url = parseUrl(revealUrl(config))
  const defaultPort = url && defaultPorts[url.protocol]
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

function revealUrl(config: EmailConfig): string {
  try {
    return config.smtp.reveal()
  } catch {
    throw misconfiguredError(config, 'the file of the smtp URL cannot be read; check smtp_file')
  }
}

/** Drops the parser's error, which quotes the URL. */
function parseUrl(text: string): URL | undefined {
  return URL.canParse(text) ? new URL(text) : undefined
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

/** Whether mail to this host never leaves the machine. */
function isLoopbackHost(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127(\.\d{1,3}){3}$/.test(host)
}
