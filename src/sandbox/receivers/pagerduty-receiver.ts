/**
 * A mock PagerDuty: as strict as the Events API v2 is documented to be (docs/api-notes.md,
 * PagerDuty). It is stricter where that only asks: no unknown fields, ISO times, secure links.
 * Accepts by 202 what is valid, and refuses anything else by 400 with its errors.
 */
import type { FastifyInstance, FastifyReply } from 'fastify'
import { z } from 'zod'
import { createRateLimit, parseJson, readRequest, type ReceiverParts } from './received.ts'

/** The routing key that it knows: 32 letters and digits. */
export const pagerDutyKey = 'sandbox'.padEnd(32, '0')

export function addPagerDutyReceiver(app: FastifyInstance, { log, inbox }: ReceiverParts): void {
  const rateLimit = createRateLimit({ perSecond: 2, burst: 120 })

  app.post('/v2/enqueue', (request, reply) => {
    const message = readRequest(request, log)
    if (rateLimit.waitMs(message.to) > 0) return send(reply, 429, { status: 'throttle exceeded' })
    const isJson = message.headers['content-type'] === 'application/json'
    const errors = isJson
      ? findPagerDutyErrors(message.body, pagerDutyKey)
      : ['not application/json']
    if (errors.length > 0) return send(reply, 400, pagerDutyRefusal(errors))
    const { dedup_key: key } = message.json as { dedup_key: string }
    inbox.take({ sink: 'pagerduty', id: key, ...message })
    return send(reply, 202, { status: 'success', message: 'Event processed', dedup_key: key })
  })
}

function send(reply: FastifyReply, status: number, answer: object): FastifyReply {
  return reply.code(status).type('application/json').send(JSON.stringify(answer))
}

/** The documented answer to an invalid event. */
export function pagerDutyRefusal(errors: readonly string[]): object {
  return { status: 'invalid event', message: 'Event object is invalid', errors }
}

/** Lengths in UTF-16 units, the largest of the readings of "characters". */
const text = (max: number): z.ZodString =>
  z
    .string()
    .max(max)
    .regex(/\S/)
    .refine((value) => value.isWellFormed(), 'not well-formed')

const event = z.strictObject({
  routing_key: z.string().length(32),
  event_action: z.enum(['trigger', 'acknowledge', 'resolve']),
  dedup_key: text(255),
  client: text(255),
  payload: z.strictObject({
    summary: text(1024),
    source: text(1024),
    severity: z.enum(['critical', 'error', 'warning', 'info']),
    timestamp: z.string().regex(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/),
    component: text(1024).optional(),
    group: text(1024).optional(),
    class: text(1024).optional(),
    custom_details: z
      .record(z.string(), z.unknown())
      .refine((details) => Object.keys(details).length > 0, 'empty'),
  }),
  links: z.array(z.strictObject({ href: z.url({ protocol: /^https$/ }), text: text(255) })),
})

const maxBodyBytes = 512 * 1000 // 512 KB, in the smaller of its two readings

/** Returns what the API refuses about a body; empty: nothing. */
export function findPagerDutyErrors(body: string, routingKey: string): string[] {
  if (Buffer.byteLength(body) > maxBodyBytes) return ['the event is larger than 512 KB']
  const { error, data } = event.safeParse(parseJson(body))
  if (error) return error.issues.map(({ path, message }) => `'${path.join('.')}': ${message}`)
  return data.routing_key === routingKey ? [] : ['Invalid routing key']
}
