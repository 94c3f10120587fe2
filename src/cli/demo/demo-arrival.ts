/** What a message that a catcher of the sandbox took says, for the view and for the account. */
import type { Received, SinkName } from '../../sandbox/catchers/received.ts'
import { isKnownSeverity, severities, severityRank } from '../../events/severity.ts'
import { counted, harmless } from '../words.ts'

export interface Arrival {
  sink: SinkName
  atMs: number
  /** Ids of the items that it carried. */
  items: string[]
  uids: string[]
  /** The highest of what it carried; a word that the feed may have made up, harmless. */
  severity: string
  /** One line, harmless to a terminal: "HIGH Stealer log: …". */
  text: string
}

export function arrivalOf(message: Received): Arrival {
  const { sink, atMs, uids } = message
  return { sink, atMs, uids, ...readers[sink](message) }
}

/** The time of day here, as on the reader's own clock. */
export function clockTime(atMs: number): string {
  return new Date(atMs).toTimeString().slice(0, 8)
}

type Reading = Pick<Arrival, 'items' | 'severity' | 'text'>

const readers: Record<SinkName, (message: Received) => Reading> = {
  slack: ({ json, body }) => {
    const text = unescaped((json as { text: string }).text)
    const [, id = ''] = /\bdelivery (e[0-9a-f]{32})\b/.exec(body) ?? []
    return { items: id === '' ? [] : [id], severity: firstWord(text), text: harmless(text) }
  },
  email: ({ mail, id }) => {
    const [, severity = '', title = ''] = /^\[([^\]]*)\] (.*)$/s.exec(mail?.subject ?? '') ?? []
    const [, item = ''] = /^<(e[0-9a-f]{32})\./.exec(id ?? '') ?? []
    const text = harmless(`${severity} ${title}`)
    return { items: item === '' ? [] : [item], severity: firstWord(severity), text }
  },
  webhook: ({ json }) => {
    const elements = elementsOf(json)
    const [highest = '?'] = elements
      .map(({ severity }) => severity)
      .toSorted((left, right) => severityRank(right) - severityRank(left))
    return {
      items: elements.map(({ id }) => id),
      severity: firstWord(highest),
      text: harmless(textOf(elements)),
    }
  },
}

interface Element {
  id: string
  uid: string
  severity: string
}

/** One event stands alone in `data`, several in `data.items`. */
function elementsOf(json: unknown): Element[] {
  const { data } = json as { data: Element | { items: Element[] } }
  return 'items' in data ? data.items : [data]
}

function textOf(elements: readonly Element[]): string {
  const [only] = elements
  if (only && elements.length === 1) return `${only.severity.toUpperCase()} ${only.uid}`
  const words = ['other', ...severities].toReversed()
  const counts = words.map((word) => ({
    word: word.toUpperCase(),
    count: elements.filter(({ severity }) => wordFor(severity) === word).length,
  }))
  const told = counts.filter(({ count }) => count > 0).map(({ word, count }) => `${count} ${word}`)
  return `${counted(elements.length, 'event')}: ${told.join(', ')}`
}

function wordFor(severity: string): string {
  return isKnownSeverity(severity) ? severity : 'other'
}

function firstWord(text: string): string {
  return harmless(text, 40).split(' ')[0]?.toLowerCase() ?? ''
}

/** Slack's three entities, the ampersand last. */
function unescaped(text: string): string {
  return text.replaceAll('&lt;', '<').replaceAll('&gt;', '>').replaceAll('&amp;', '&')
}
