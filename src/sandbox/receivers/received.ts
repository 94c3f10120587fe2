/** What the catching sinks received: kept, bounded, announced. */
import type { FastifyRequest } from 'fastify'
import { appendBounded } from '../server.ts'

export type SinkName = 'slack' | 'webhook' | 'email'

/** A message that was accepted; also where its answer was then lost. */
export interface Received {
  sink: SinkName
  /** `webhook-id`, `Message-ID`, or the first event uid found in a Slack message; null: none. */
  id: string | null
  /** System wall clock, milliseconds. */
  atMs: number
  /** Path of the URL; for e-mail the recipients, joined by a comma. */
  to: string
  headers: Record<string, string>
  /** As it came; for e-mail the whole message. */
  body: string
  /** The body as JSON; null for e-mail. */
  json: unknown
  /** The readable parts of an e-mail. */
  mail: Mail | null
  /** Uids of sandbox events that the message names, in order, each once. */
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
  /** Without an `id` the message goes by the first uid that it names. */
  take(message: Omit<Received, 'uids' | 'id'> & { id?: string | null }): void
  /** Returns what ends the listening. */
  onReceived: (listener: (message: Received) => void) => () => void
}

interface InboxOptions {
  keep: number
  isUid: (text: string) => boolean
}

export function createInbox({ keep, isUid }: InboxOptions): Inbox {
  const received: Record<SinkName, Received[]> = { slack: [], webhook: [], email: [] }
  const listeners = new Set<(message: Received) => void>()

  return {
    received,
    take({ id, ...message }) {
      const uids = uidsIn(textsOf(message), isUid)
      const taken = { ...message, uids, id: id ?? uids[0] ?? null }
      appendBounded(received[message.sink], taken, keep)
      listeners.forEach((listener) => listener(taken))
    },
    onReceived(listener) {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
  }
}

function textsOf({ mail, json }: Pick<Received, 'mail' | 'json'>): string[] {
  if (mail) return [mail.subject, mail.text, mail.html, ...mail.attachments.map((a) => a.content)]
  return stringsIn(json)
}

function stringsIn(value: unknown): string[] {
  if (typeof value === 'string') return [value]
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(stringsIn) : []
}

/** Words of the texts that are uids, also where they are escaped, defanged, or quoted inside a URL. */
function uidsIn(texts: readonly string[], isUid: (text: string) => boolean): string[] {
  const words = texts.flatMap((text) => unescaped(text).split(/[\s"'`<>|,;()=*]+/))
  return [...new Set(words.map(bare).filter((word) => word.includes('/') && isUid(word)))]
}

function unescaped(text: string): string {
  return text
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&quot;', '"')
    .replaceAll('&amp;', '&')
    .replaceAll(/\[\.\]|\[dot\]/g, '.')
}

function bare(word: string): string {
  const trimmed = word.replace(/[.:!?\]]+$/, '')
  if (!trimmed.includes('%')) return trimmed
  try {
    return decodeURIComponent(trimmed)
  } catch {
    return trimmed
  }
}

/** Headers of a request, names in lower case, repeated ones joined. */
export function headersOf(request: FastifyRequest): Record<string, string> {
  return Object.fromEntries(
    Object.entries(request.headers).map(([name, value]) => [name, String(value)]),
  )
}
