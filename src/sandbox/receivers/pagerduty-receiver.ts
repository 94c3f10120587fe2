/**
 * A mock PagerDuty: as strict as the Events API v2 is documented to be (docs/api-notes.md, PagerDuty),
 * and stricter where it only asks: no unknown fields, ISO times, secure links. Accepts by 202 what is
 * valid, and refuses anything else by 400 with its errors.
 */
import type { FastifyInstance, FastifyReply } from 'fastify'
import { createRateLimit, readRequest, type ReceiverParts } from './received.ts'

export function addPagerDutyReceiver(
  app: FastifyInstance,
  { settings, log, inbox }: ReceiverParts,
): void {
  const rateLimit = createRateLimit({ perSecond: 2, burst: 120 })

  app.post('/v2/enqueue', (request, reply) => {
    const message = readRequest(request, log)
    if (rateLimit.waitMs(message.to) > 0) return send(reply, 429, { status: 'throttle exceeded' })
    const isJson = message.headers['content-type'] === 'application/json'
    const errors = isJson
      ? findPagerDutyErrors(message.body, settings.pagerDutyKey)
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

const maxBodyBytes = 512 * 1000 // 512 KB, in the smaller of its two readings

/** Returns what the API refuses about a body; empty: nothing. */
export function findPagerDutyErrors(body: string, routingKey: string): string[] {
  if (Buffer.byteLength(body) > maxBodyBytes) return ['the event is larger than 512 KB']
  let event: unknown
  try {
    event = JSON.parse(body)
  } catch {
    return ['JSON parse error']
  }
  if (!isObject(event)) return ['not an object']
  return [
    ...keyErrors(event['routing_key'], routingKey),
    ...unknownFields(event, [
      'routing_key',
      'event_action',
      'dedup_key',
      'client',
      'payload',
      'links',
      'images',
    ]),
    ...oneOf('event_action', event['event_action'], ['trigger', 'acknowledge', 'resolve']),
    ...textErrors('dedup_key', event['dedup_key'], 255),
    ...textErrors('client', event['client'], 255),
    ...payloadErrors(event['payload']),
    ...linkErrors(event['links']),
    ...imageErrors(event['images'] ?? []),
  ]
}

function keyErrors(key: unknown, routingKey: string): string[] {
  if (typeof key !== 'string' || key.length !== 32) {
    return ["Length of 'routing_key' is incorrect (should be 32 characters)"]
  }
  return key === routingKey ? [] : ['Invalid routing key']
}

const optionalTexts = ['component', 'group', 'class']

function payloadErrors(payload: unknown): string[] {
  if (!isObject(payload)) return ["'payload' is missing"]
  const known = ['summary', 'source', 'severity', 'timestamp', 'custom_details', ...optionalTexts]
  const { timestamp, custom_details: details } = payload
  const isDated = typeof timestamp === 'string' && /^\d{4}-\d\d-\d\dT[\d:.]+Z$/.test(timestamp)
  return [
    ...unknownFields(payload, known),
    ...textErrors('payload.summary', payload['summary'], 1024),
    ...textErrors('payload.source', payload['source'], 1024),
    ...oneOf('payload.severity', payload['severity'], ['critical', 'error', 'warning', 'info']),
    ...(isDated ? [] : ["'payload.timestamp' is no ISO 8601 time"]),
    ...optionalTexts
      .filter((name) => payload[name] !== undefined)
      .flatMap((name) => textErrors(`payload.${name}`, payload[name], 1024)),
    ...(isObject(details) && Object.keys(details).length > 0 ? [] : ['no custom_details']),
  ]
}

function linkErrors(links: unknown): string[] {
  if (!Array.isArray(links)) return ["'links' is no list"]
  return links.flatMap((link: unknown) => {
    const { href, text } = isObject(link) ? link : {}
    return [
      ...(isSecureAddress(href) ? [] : ["'links' has no address"]),
      ...textErrors('links.text', text, 255),
    ]
  })
}

function imageErrors(images: unknown): string[] {
  if (!Array.isArray(images)) return ["'images' is no list"]
  return images.flatMap((image: unknown) => {
    const { src, href, alt = ' ' } = isObject(image) ? image : {}
    const areAddresses = isSecureAddress(src) && (href === undefined || isSecureAddress(href))
    const isImage = areAddresses && typeof alt === 'string'
    return isImage ? [] : ["'images' has no address, or an insecure one"]
  })
}

function isSecureAddress(value: unknown): boolean {
  return typeof value === 'string' && URL.parse(value)?.protocol === 'https:'
}

/** Lengths in UTF-16 units, the largest of the readings of "characters". */
function textErrors(name: string, value: unknown, max: number): string[] {
  if (typeof value !== 'string' || value.trim() === '') return [`'${name}' is missing or blank`]
  if (value.length > max) return [`'${name}' is longer than ${max} characters`]
  return value.isWellFormed() ? [] : [`'${name}' is not well-formed`]
}

function oneOf(name: string, value: unknown, words: readonly string[]): string[] {
  return words.some((word) => word === value) ? [] : [`'${name}' is none of ${words.join(', ')}`]
}

function unknownFields(value: object, known: readonly string[]): string[] {
  return Object.keys(value)
    .filter((name) => !known.includes(name))
    .map((name) => `'${name}' is unknown`)
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
