/**
 * Mail over SMTP, of one event or a summary of several, for one recipient at a time, because a server
 * that takes a mail for two may refuse one of them. Accepted means that the server answered the
 * message's end with 2xx.
 */
import { signalWithin, type Clock } from '../../runtime/clock.ts'
import type { Logger } from '../../runtime/logger.ts'
import { destinationsOf } from '../destinations.ts'
import { SinkError, type Delivery, type Receipt, type Sink } from '../sink.ts'
import type { EmailConfig } from './config.ts'
import { composeMail } from './mail.ts'
import { answerTimeoutMs, createSmtpPool, maxConnections, setUpTimeoutMs } from './smtp-pool.ts'

export interface EmailEnvironment {
  logger: Logger
  clock: Clock
}

/** Connecting, signing in and the message take little; the reply to it may take its full time. */
const emailSendTimeoutMs = answerTimeoutMs + 3 * setUpTimeoutMs

export function createEmailSink(config: EmailConfig, { logger, clock }: EmailEnvironment): Sink {
  const { name, limitPerSecond } = config
  const pool = createSmtpPool(config)
  const destinations = destinationsOf(config)

  /** From the configuration, never from the delivery: a queue may not name recipients. */
  function addressOf(destinationId: string): string {
    const destination = destinations.find(({ id }) => id === destinationId)
    if (destination !== undefined) return destination.label
    throw new SinkError(
      'misconfigured',
      `sink ${name}: ${destinationId} is not among its recipients`,
    )
  }

  async function send(delivery: Delivery, signal: AbortSignal): Promise<Receipt> {
    const mail = composeMail(delivery, {
      sink: name,
      from: config.from,
      to: addressOf(delivery.destination.id),
      nowMs: clock.now(),
    })
    const secrets = delivery.members.flatMap(({ secret }) => secret ?? [])
    const answer = await pool.send(mail, { signal, secrets })
    logger.debug({ sink: name, delivery: delivery.id, answer }, 'mail accepted')
    return { answer }
  }

  return {
    name,
    type: 'email',
    canAttach: true,
    destinations,
    limitPerSecond,
    reveals: config.reveal,
    concurrency: maxConnections,
    sendTimeoutMs: emailSendTimeoutMs,
    send: (delivery, { signal }) => send(delivery, signalWithin(emailSendTimeoutMs, signal)),
    close() {
      pool.close()
      return Promise.resolve()
    },
  }
}
