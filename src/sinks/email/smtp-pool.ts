/**
 * The connections to one mail server. They are made from the URL as it reads at that moment, so a
 * rotated password takes effect with the next send, and connections of the old one end after the
 * message they carry. Never retries and never queues a message again: every attempt is the caller's.
 */
import type { Readable } from 'node:stream'
import { createTransport } from 'nodemailer'
import type {
  SendMailOptions,
  SMTPPoolOptions,
  SMTPPoolSentMessageInfo,
  Transporter,
} from 'nodemailer'
import type { EmailConfig } from './config.ts'
import { isLoopbackHost, readSmtpAddress, type SmtpAddress } from './smtp-address.ts'
import { smtpFailure } from './smtp-failure.ts'
import { redactorOf } from './smtp-reply.ts'

export interface SmtpSendOptions {
  signal: AbortSignal
  /** Leaked secrets that stand in the mail, in clear. */
  secrets: readonly string[]
}

export interface SmtpPool {
  /** Gives the server's reply to the accepted message. Throws SinkError. Neither says a secret. */
  send(mail: SendMailOptions, options: SmtpSendOptions): Promise<string>
  close(): void
}

type Transport = Transporter<SMTPPoolSentMessageInfo, SMTPPoolOptions>

export const maxConnections = 4

/** DNS, connecting, greeting and TLS each. */
export const setUpTimeoutMs = 10_000

/** RFC 5321, 4.5.3.2.6: who gives up earlier on the reply to the final dot makes duplicates. */
export const answerTimeoutMs = 600_000

export function createSmtpPool(config: EmailConfig): SmtpPool {
  const bodies = new WeakMap<AbortSignal, Readable>()
  let current: { address: SmtpAddress; transport: Transport } | undefined

  function transportTo(address: SmtpAddress): Transport {
    if (current !== undefined && isSame(current.address, address)) return current.transport
    current?.transport.close()
    const transport = openTransport(address, config)
    keepBodies(transport, bodies)
    current = { address, transport }
    return transport
  }

  return {
    async send(mail, { signal, secrets }) {
      const address = readSmtpAddress(config)
      const redact = redactorOf(address, secrets)
      const own = AbortSignal.any([signal])
      try {
        const { response } = await transportTo(address).sendMail({ ...mail, signal: own })
        return redact(response)
      } catch (error) {
        const hasBodyStarted = bodies.get(own)?.readableDidRead ?? false
        throw smtpFailure(error, { hasBodyStarted, isAborted: own.aborted }, redact)
      }
    },
    close() {
      current?.transport.close({ force: true })
      current = undefined
    },
  }
}

function openTransport(address: SmtpAddress, config: EmailConfig): Transport {
  const { host, port, isImplicitTls, user, password } = address
  const isLoopback = isLoopbackHost(host)
  return createTransport({
    pool: true,
    host,
    port,
    secure: isImplicitTls,
    requireTLS: config.tls === 'required' && !isImplicitTls && !isLoopback,
    ignoreTLS: config.tls === 'off',
    // A relay on this machine may speak in clear, so an unknown certificate is no loss there.
    ...(isLoopback && !isImplicitTls && { tls: { rejectUnauthorized: false } }),
    ...(user !== '' && { auth: { user, pass: password } }),
    maxConnections,
    maxRequeues: 0,
    connectionTimeout: setUpTimeoutMs,
    greetingTimeout: setUpTimeoutMs,
    dnsTimeout: setUpTimeoutMs,
    socketTimeout: answerTimeoutMs,
    socketCloseTimeout: 1000,
    maxResponseSize: 64 * 1024,
    disableFileAccess: true,
    disableUrlAccess: true,
  })
}

/**
 * Keeps the stream of each message, by the signal of its send. nodemailer reports a cut before and
 * after DATA alike, but it reads the stream only once the server has said 354.
 */
function keepBodies(transport: Transport, bodies: WeakMap<AbortSignal, Readable>): void {
  transport.use('stream', (mail, done) => {
    const { signal } = mail.data
    mail.message?.processFunc((body) => {
      if (signal !== undefined) bodies.set(signal, body)
      return body
    })
    done()
  })
}

function isSame(one: SmtpAddress, other: SmtpAddress): boolean {
  return JSON.stringify(one) === JSON.stringify(other)
}
