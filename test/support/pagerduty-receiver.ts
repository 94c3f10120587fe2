/**
 * A receiver as strict as PagerDuty's Events API v2 is documented to be (docs/api-notes.md,
 * PagerDuty), and stricter where it only asks: no unknown fields, ISO times, secure links. Accepts by
 * 202 what is valid, and refuses anything else by 400 with its errors.
 */
import { startHttpServer, type HttpServer, type ScriptedAnswer } from './http-server.ts'

export interface PagerDutyEvent {
  routing_key: string
  event_action: string
  dedup_key: string
  client: string
  payload: {
    summary: string
    source: string
    severity: string
    timestamp: string
    component?: string
    group?: string
    class?: string
    custom_details: Record<string, string | string[]>
  }
  links: { href: string; text: string }[]
}

export interface PagerDutyReceiver extends HttpServer {
  /** Every event taken whole, whatever the answer, oldest first. */
  events(): PagerDutyEvent[]
  /** Answers by the rules of the API again. */
  judge(): void
}

export async function startPagerDutyReceiver(routingKey: string): Promise<PagerDutyReceiver> {
  const server = await startHttpServer()
  const judge = (): void =>
    server.script(({ method, path, headers, body }): ScriptedAnswer => {
      if (method !== 'POST' || path !== '/v2/enqueue') return { status: 404 }
      const isJson = headers['content-type'] === 'application/json'
      const errors = isJson ? eventErrors(body, routingKey) : ['not application/json']
      if (errors.length > 0) return refusal(errors)
      const { dedup_key: key } = JSON.parse(body) as PagerDutyEvent
      const answer = { status: 'success', message: 'Event processed', dedup_key: key }
      return { status: 202, body: JSON.stringify(answer) }
    })
  judge()
  return {
    ...server,
    judge,
    events: () => server.requests.map(({ body }) => JSON.parse(body) as PagerDutyEvent),
  }
}

/** The documented answer to an invalid event. */
export function refusal(errors: readonly string[]): ScriptedAnswer {
  const answer = { status: 'invalid event', message: 'Event object is invalid', errors }
  return { status: 400, body: JSON.stringify(answer) }
}

const maxBodyBytes = 512 * 1000 // 512 KB, in the smaller of its two readings

/** Returns what the API refuses about a body; empty: nothing. */
export function eventErrors(body: string, routingKey: string): string[] {
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
    ]),
    ...oneOf('event_action', event['event_action'], ['trigger', 'acknowledge', 'resolve']),
    ...textErrors('dedup_key', event['dedup_key'], 255),
    ...textErrors('client', event['client'], 255),
    ...payloadErrors(event['payload']),
    ...linkErrors(event['links']),
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
    const isLink = typeof href === 'string' && URL.parse(href)?.protocol === 'https:'
    return [...(isLink ? [] : ["'links' has no address"]), ...textErrors('links.text', text, 255)]
  })
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
