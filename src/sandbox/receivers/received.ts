/** What the mock receivers received: stored up to a limit, and announced to listeners. */
import type { FastifyRequest } from 'fastify'
import { systemClock } from '../../lib/clock.ts'
import type { ReceiverLimit, SandboxSettings } from '../options.ts'
import { appendBounded, readBytes, type RequestLog } from '../server.ts'

export type SinkName = 'slack' | 'teams' | 'email' | 'pagerduty' | 'webhook'

/** A message that was accepted, even if its answer was then lost. */
export interface Received {
  sink: SinkName
  /** `webhook-id`, `Message-ID`, `dedup_key`, or the first event uid in a chat; null: none. */
  id: string | null
  /** System wall clock, milliseconds. */
  atMs: number
  /** Path of the URL; for email the recipients, joined by commas. */
  to: string
  headers: Record<string, string>
  /** The body as received; for email the whole message. */
  body: string
  /** The body parsed as JSON; null for email. */
  json: unknown
  /** The readable parts of an email; null for other sinks. */
  mail: Mail | null
  /** Distinct uids of sandbox events that the message names, in order. */
  uids: string[]
}

interface Mail {
  from: string
  recipients: string[]
  subject: string
  text: string
  html: string
  attachments: { name: string; content: string }[]
}

export interface Inbox {
  readonly received: Readonly<Record<SinkName, readonly Received[]>>
  /** Stores a message. Default `id`: the first uid that it names. */
  take(message: Omit<Received, 'uids' | 'id'> & { id?: string | null }): void
  /** Returns a function that removes the listener. */
  onReceived: (listener: (message: Received) => void) => () => void
}

interface InboxOptions {
  maxMessages: number
  isUid: (text: string) => boolean
}

export function createInbox({ maxMessages, isUid }: InboxOptions): Inbox {
  const received: Record<SinkName, Received[]> = {
    slack: [],
    teams: [],
    email: [],
    pagerduty: [],
    webhook: [],
  }
  const listeners = new Set<(message: Received) => void>()

  return {
    received,
    take({ id, ...message }) {
      const uids = findUids(messageTexts(message), isUid)
      const entry = { ...message, uids, id: id ?? uids[0] ?? null }
      appendBounded(received[message.sink], entry, maxMessages)
      listeners.forEach((listener) => listener(entry))
    },
    onReceived(listener) {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
  }
}

function messageTexts({ mail, json }: Pick<Received, 'mail' | 'json'>): string[] {
  if (mail) return [mail.subject, mail.text, mail.html, ...mail.attachments.map((a) => a.content)]
  return collectStrings(json)
}

function collectStrings(value: unknown): string[] {
  if (typeof value === 'string') return [value]
  return typeof value === 'object' && value !== null
    ? Object.values(value).flatMap(collectStrings)
    : []
}

/** Finds uids in the texts, even escaped, defanged, or encoded inside a URL. */
function findUids(texts: readonly string[], isUid: (text: string) => boolean): string[] {
  const words = texts.flatMap((text) => unescapeText(text).split(/[\s"'`<>|,;()=*]+/))
  return [...new Set(words.map(cleanWord).filter((word) => word.includes('/') && isUid(word)))]
}

function unescapeText(text: string): string {
  return text
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&quot;', '"')
    .replaceAll('&amp;', '&')
    .replaceAll(/\[\.\]|\[dot\]/g, '.')
}

function cleanWord(word: string): string {
  const trimmed = word.replace(/[.:!?\]]+$/, '')
  if (!trimmed.includes('%')) return trimmed
  try {
    return decodeURIComponent(trimmed)
  } catch {
    return trimmed
  }
}

/** What the receivers that speak HTTP are built from. */
export interface ReceiverParts {
  settings: SandboxSettings
  log: RequestLog
  inbox: Inbox
}

/** Reads a message that came by HTTP, as it is stored. */
export function readRequest(
  request: FastifyRequest,
  log: RequestLog,
): Pick<Received, 'atMs' | 'to' | 'headers' | 'body' | 'json' | 'mail'> {
  const { path, body } = log.entryFor(request)
  return {
    atMs: systemClock.now(),
    to: path,
    headers: readHeaders(request),
    body: readBytes(request).toString('utf8'),
    json: body,
    mail: null,
  }
}

/** Returns the headers of a request, names in lower case, repeated ones joined. */
export function readHeaders(request: FastifyRequest): Record<string, string> {
  return Object.fromEntries(
    Object.entries(request.headers).map(([name, value]) => [name, String(value)]),
  )
}

interface RateLimit {
  /** Returns 0 and counts the message if it may pass; otherwise the wait for the next one in ms. */
  waitMs(key: string): number
}

/** A bucket of `burst` tokens per key, refilled at `perSecond`. */
export function createRateLimit({ perSecond, burst }: ReceiverLimit): RateLimit {
  const buckets = new Map<string, { tokens: number; atMs: number }>()
  return {
    waitMs(key) {
      const now = systemClock.monotonic()
      const bucket = buckets.get(key) ?? { tokens: burst, atMs: now }
      const refilled = bucket.tokens + ((now - bucket.atMs) / 1000) * perSecond
      const tokens = Math.min(burst, refilled)
      const isFull = tokens >= 1
      buckets.set(key, { tokens: isFull ? tokens - 1 : tokens, atMs: now })
      return isFull ? 0 : ((1 - tokens) / perSecond) * 1000
    },
  }
}

export function parseJson(body: string): unknown {
  try {
    return JSON.parse(body)
  } catch {
    return undefined
  }
}
