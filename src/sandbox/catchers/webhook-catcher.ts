/** A pretend machine that receives webhooks and believes only signed ones. */
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { systemClock } from '../../runtime/clock.ts'
import type { SandboxSettings } from '../options.ts'
import { sendError } from '../error-bodies.ts'
import { bytesOf } from '../server.ts'
import { headersOf } from './headers.ts'
import { signatureFault } from './signature.ts'
import type { CatcherParts } from './slack-catcher.ts'

export function addWebhookCatcher(
  app: FastifyInstance,
  { settings, log, inbox }: CatcherParts,
): void {
  app.post('/hooks/*', (request, reply) => {
    const { path, body } = log.entryOf(request)
    const fault = faultOf(request, settings)
    if (fault) return sendError(reply, { status: 401, message: fault })
    const headers = headersOf(request)
    inbox.take({
      sink: 'webhook',
      id: headers['webhook-id'] ?? null,
      atMs: systemClock.now(),
      to: path,
      headers,
      body: bytesOf(request).toString('utf8'),
      json: body,
      mail: null,
    })
    return reply.code(204).send()
  })
}

function faultOf(request: FastifyRequest, settings: SandboxSettings): string | null {
  const headers = headersOf(request)
  const signature = headers['webhook-signature'] ?? ''
  if (signature === '' && !settings.requireSignature) return null
  return signatureFault(
    {
      id: headers['webhook-id'] ?? '',
      timestamp: headers['webhook-timestamp'] ?? '',
      signature,
      body: bytesOf(request),
    },
    {
      secret: settings.webhookSecret,
      nowMs: systemClock.now(),
      toleranceMs: settings.signatureToleranceMs,
    },
  )
}
