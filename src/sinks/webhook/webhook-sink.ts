/**
 * Signed webhooks for machines (Standard Webhooks 1.0.0). A send is one POST with one id; success is
 * 2xx and nothing else. Never follows a redirect, never reaches a private address unless allowed.
 */
import { lookup } from 'node:dns'
import type { LookupFunction } from 'node:net'
import { signalWithin, type Clock } from '../../runtime/clock.ts'
import { messageOf } from '../../runtime/errors.ts'
import type { Logger } from '../../runtime/logger.ts'
import { destinationsOf } from '../destinations.ts'
import { SinkError, type Delivery, type SendOptions, type Receipt, type Sink } from '../sink.ts'
import { measureMember, renderBody } from './body.ts'
import { errorOfAnswer } from './classify.ts'
import type { WebhookConfig } from './config.ts'
import { sign } from './signature.ts'
import { targetOf } from './target.ts'
import { createTransport } from './transport.ts'

const sendTimeoutMs = 15_000
const concurrency = 8

export interface WebhookSinkOptions {
  logger: Logger
  clock: Clock
  /** Finds the addresses of a host; the system's resolver unless given. */
  resolve?: LookupFunction
}

/** The URL and the signing secrets are read at each send, so that they rotate without a restart. */
export function createWebhookSink(
  config: WebhookConfig,
  { logger, clock, resolve = lookup }: WebhookSinkOptions,
): Sink {
  const transport = createTransport({
    allowPrivate: config.allowPrivate,
    resolve,
    maxConnections: concurrency,
  })

  async function send(delivery: Delivery, options: SendOptions): Promise<Receipt> {
    if (delivery.summary) {
      throw new SinkError('invalid', 'a summary is for people; a webhook takes events one by one')
    }
    const signal = signalWithin(sendTimeoutMs, options.signal)
    const body = renderBody(delivery)
    const headers = headersOf(delivery, signatureOf(delivery, body))
    const answer = await transport.post(targetOf(config), { headers, body }, signal)
    const { status } = answer
    logger.debug({ sink: config.name, delivery: delivery.id, status }, 'webhook answered')
    if (status < 200 || status >= 300) throw errorOfAnswer(answer, clock.now())
    return { answer: `HTTP ${status}` }
  }

  function signatureOf({ id }: Delivery, body: string): Record<string, string> {
    const timestamp = Math.floor(clock.now() / 1000)
    const stamp = { 'webhook-timestamp': String(timestamp) }
    if (config.secrets.length === 0) return stamp
    try {
      const secrets = config.secrets.map((secret) => secret.reveal())
      return { ...stamp, 'webhook-signature': sign({ id, timestamp, body }, secrets) }
    } catch (error) {
      throw new SinkError('misconfigured', `cannot sign: ${messageOf(error)}`)
    }
  }

  return {
    name: config.name,
    type: 'webhook',
    destinations: destinationsOf(config),
    batch: config.batch,
    limitPerSecond: config.limitPerSecond,
    reveals: config.reveal,
    concurrency,
    sendTimeoutMs,
    send,
    measure: measureMember,
    close: () => transport.close(),
  }
}

function headersOf(delivery: Delivery, signature: Record<string, string>): Record<string, string> {
  return {
    'content-type': 'application/json',
    'user-agent': 'tocsin',
    'webhook-id': delivery.id,
    'idempotency-key': delivery.id,
    'tocsin-attempt': String(delivery.attempt),
    ...(delivery.mayBeRepeat && { 'tocsin-possible-repeat': 'true' }),
    ...(delivery.isTest && { 'tocsin-test': 'true' }),
    ...signature,
  }
}
