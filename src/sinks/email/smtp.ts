/**
 * The connections to one mail server. Each send reads the URL anew, so a rotated password takes
 * effect with the next send, and connections of the old one end after the mail they carry. Never
 * retries a mail: every attempt is the caller's.
 */
import type { SMTPConnectionOptions } from 'nodemailer/lib/smtp-connection'
import { type Clock, withTimeout } from '../../lib/clock.ts'
import { openTunnel, OutboundError, readTlsSettings, type TlsSettings } from '../../lib/outbound.ts'
import { isLoopback } from '../../lib/config/web-address.ts'
import { revealSecret, type SendOptions, SinkError } from '../sink.ts'
import type { EmailConfig } from './config.ts'
import { type AccessTokens, createAccessTokens } from './oauth.ts'
import { type Mail, smtpLimits, SmtpSession } from './smtp-session.ts'

interface SmtpSendOptions extends SendOptions {
  /** The mail shows leaked secrets in clear. */
  showsSecrets: boolean
}

export class SmtpPool {
  readonly #config: EmailConfig
  readonly #clock: Clock
  readonly #tokens: AccessTokens | undefined
  readonly #closing = new AbortController()
  #idle: SmtpSession[] = []
  /** Whose connections are kept. */
  #current: string | undefined
  /** By whose certificates. */
  #tls: TlsSettings['secureContext']

  constructor(config: EmailConfig, clock: Clock) {
    this.#config = config
    this.#clock = clock
    this.#tokens = config.oauth && createAccessTokens(config.oauth, config, clock)
  }

  /**
   * Resolves with the server's reply to the accepted mail. Throws SinkError. Neither contains a
   * secret.
   */
  send(mail: Mail, options: SmtpSendOptions): Promise<string> {
    return this.#untilClosed(options.signal, (signal) => this.#send(mail, { ...options, signal }))
  }

  async #send(
    mail: Mail,
    { signal, mayBegin = () => true, showsSecrets }: SmtpSendOptions,
  ): Promise<string> {
    const address = readSmtpAddress(this.#config)
    const identity = JSON.stringify(address)
    const tls = readTls(this.#config).secureContext
    if (this.#current !== identity || this.#tls !== tls) this.#leaveIdle()
    this.#current = identity
    this.#tls = tls
    const session = (await this.#takeIdle(signal)) ?? (await this.#open(address, { signal }))
    try {
      return await session.send(mail, { signal, mayBegin, showsSecrets })
    } finally {
      this.#giveBack(session, identity)
    }
  }

  /** Connects and signs in, and resolves with where. Throws SinkError. */
  async reach(signal: AbortSignal): Promise<string> {
    const address = readSmtpAddress(this.#config)
    const session = await this.#untilClosed(signal, (either) =>
      this.#open(address, { signal: either, isTrial: true }),
    )
    session.leave()
    const { user, host, port } = address
    return `${user === '' ? 'connected' : 'signed in'} to ${host}:${port}`
  }

  close(): void {
    this.#closing.abort()
    this.#current = undefined
    this.#leaveIdle()
    void this.#tokens?.close()
  }

  #untilClosed<T>(signal: AbortSignal, work: (either: AbortSignal) => Promise<T>): Promise<T> {
    return withTimeout(Infinity, [signal, this.#closing.signal], work)
  }

  #open(
    address: SmtpAddress,
    { signal, isTrial = false }: { signal: AbortSignal; isTrial?: boolean },
  ): Promise<SmtpSession> {
    const { user, password } = address
    const { hello } = this.#config
    const common = { hello, clock: this.#clock, isTrial }
    const signIn = async (token?: string): Promise<SmtpSession> => {
      const connection = await dial(address, this.#config)
      if (signal.aborted) connection.connection?.destroy()
      return SmtpSession.open({ ...common, connection, login: { user, password, token } }, signal)
    }
    return this.#tokens ? signInWithToken(this.#tokens, signIn, signal) : signIn()
  }

  /** One connection that is silent or cut speaks for all that have been idle. */
  async #takeIdle(signal: AbortSignal): Promise<SmtpSession | undefined> {
    this.#idle = this.#idle.filter(({ isOpen }) => isOpen)
    const session = this.#idle.pop()
    if (session === undefined || (await session.isAlive(signal))) return session
    this.#leaveIdle()
    return undefined
  }

  #giveBack(session: SmtpSession, identity: string): void {
    if (!session.isOpen) return
    if (this.#current !== identity) return session.leave()
    session.rest()
    this.#idle.push(session)
  }

  #leaveIdle(): void {
    for (const session of this.#idle.splice(0)) session.leave()
  }
}

/** A token that was good until now may have been withdrawn: then a new one is tried, once. */
async function signInWithToken(
  tokens: AccessTokens,
  signIn: (token: string) => Promise<SmtpSession>,
  signal: AbortSignal,
): Promise<SmtpSession> {
  for (;;) {
    const { token, isNew } = await tokens.get(signal)
    try {
      return await signIn(token)
    } catch (error) {
      if (!(error instanceof SinkError && error.reason === 'unauthorized')) throw error
      tokens.refuse(token)
      if (isNew) throw error
    }
  }
}

/** Where and how to connect, by the proxy if there is one. Throws SinkError. */
async function dial(
  { host, port, isImplicitTls }: SmtpAddress,
  config: EmailConfig,
): Promise<SMTPConnectionOptions> {
  const end = { hostname: host, port, timeoutMs: smtpLimits.setUpMs }
  const connection = await openTunnel(config, end).catch(throwAsSinkError)
  // behind a proxy, a name of this machine is one of the proxy's
  const isOwn = isLoopback(host) && connection === undefined
  return {
    ...(connection && { connection }),
    host,
    port,
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
