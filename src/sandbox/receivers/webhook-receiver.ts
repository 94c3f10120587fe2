/** A mock webhook receiver that accepts only signed messages. */
import { createHmac, timingSafeEqual } from 'node:crypto'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { systemClock } from '../../lib/clock.ts'
import type { SandboxSettings } from '../options.ts'
import { readBytes, sendError } from '../server.ts'
import { readHeaders, readRequest, type ReceiverParts } from './received.ts'

export function addWebhookReceiver(
  app: FastifyInstance,
  { settings, log, inbox }: ReceiverParts,
): void {
  app.post('/hooks/*', (request, reply) => {
    const problem = checkWebhook(request, settings)
    if (problem) return sendError(reply, { status: 401, message: problem })
    const message = readRequest(request, log)
    inbox.take({ sink: 'webhook', id: message.headers['webhook-id'] ?? null, ...message })
    return reply.code(204).send()
  })
}

function checkWebhook(request: FastifyRequest, settings: SandboxSettings): string | null {
  const headers = readHeaders(request)
  const signature = headers['webhook-signature'] ?? ''
  return checkSignature(
    {
      id: headers['webhook-id'] ?? '',
      timestamp: headers['webhook-timestamp'] ?? '',
      signature,
      body: readBytes(request),
    },
    settings.webhookSecret,
  )
}

/** A message to verify by Standard Webhooks 1.0.0. */
interface SignedMessage {
  id: string
  /** Seconds since 1970, as sent. */
  timestamp: string
  signature: string
  body: Buffer
}

const toleranceMs = 300_000

/**
 * Returns why the message is refused; null if it is authentic and fresh. `secret`: `whsec_` and the
 * key in base64.
 */
function checkSignature(signed: SignedMessage, secret: string): string | null {
  if (signed.id === '' || !/^\d+$/.test(signed.timestamp)) return 'missing webhook headers'
  const ageMs = Math.abs(systemClock.now() - Number(signed.timestamp) * 1000)
  if (ageMs > toleranceMs) return 'timestamp out of tolerance'
  const expected = computeSignature(signed, secret)
  const isKnown = signed.signature.split(' ').some((part) => {
    const [version, value = ''] = part.split(',')
    return version === 'v1' && isEqual(Buffer.from(value, 'base64'), expected)
  })
  return isKnown ? null : 'no matching signature'
}

function computeSignature({ id, timestamp, body }: SignedMessage, secret: string): Buffer {
  const key = Buffer.from(secret.replace(/^whsec_/, ''), 'base64')
  return createHmac('sha256', key).update(`${id}.${timestamp}.`).update(body).digest()
}

function isEqual(left: Buffer, right: Buffer): boolean {
  return left.length === right.length && timingSafeEqual(left, right)
}
