/** What a message that a catcher of the sandbox took says, for the view and for the account. */
import type { Received, SinkName } from '../../sandbox/catchers/received.ts'
import { isKnownSeverity, noSeverity, severities, severityRank } from '../../events/severity.ts'
import { severityLabel } from '../../messages/severity-counts.ts'
import { counted, harmless } from '../words.ts'
import { readSummary, uidsInTable, type MessageForm } from './demo-summary.ts'

export interface Arrival {
  sink: SinkName
  atMs: number
  /** Of the delivery: `e…` of one item, `b…` of a sealed message; '' where it names none. */
  id: string
  form: MessageForm
  /** How many events it stands for, by its own words. */
  events: number
  /** Ids of the items that it names one by one; a message for people about several names none. */
  items: string[]
  /** Of the events that it shows. */
  uids: string[]
  /** It shows all that it stands for. */
  isComplete: boolean
  /** It says that it may have come before. */
  mayBeRepeat: boolean
  /** The highest of what it carried; a word that the feed may have made up, harmless. */
  severity: string
  /** One line, harmless to a terminal: "HIGH Stealer log: …". */
  text: string
}

export function arrivalOf(message: Received): Arrival {
  const { sink, atMs, uids } = message
  return { sink, atMs, uids, isComplete: false, ...readers[sink](message) }
}

/** The time of day here, as on the reader's own clock. */
export function clockTime(atMs: number): string {
  return new Date(atMs).toTimeString().slice(0, 8)
}

type Reading = Omit<Arrival, 'sink' | 'atMs' | 'uids' | 'isComplete'> &
  Partial<Pick<Arrival, 'uids' | 'isComplete'>>

const readers: Record<SinkName, (message: Received) => Reading> = {
  slack: ({ json, body }) => {
    const text = unescaped((json as { text: string }).text)
    // the last is ours: text of the feed stands above it
    const id = [...body.matchAll(/\bdelivery ([eb][0-9a-f]{32,40})\b/g)].at(-1)?.[1] ?? ''
    return forPeople(id, text, body.includes('May be a repeat:'))
  },
  email: ({ mail, id: messageId, headers }) => {
    const subject = mail?.subject ?? ''
    const [, id = ''] = /^<([eb][0-9a-f]{32,40})\./.exec(messageId ?? '') ?? []
    const table = uidsInTable(mail?.attachments ?? [])
    return {
      ...forPeople(id, subject, headers['tocsin-possible-repeat'] === 'true'),
      ...(table && { uids: table, isComplete: true }),
    }
  },
  webhook: ({ json, id, headers }) => {
    const elements = elementsOf(json)
    const [highest = '?'] = elements
      .map(({ severity }) => severity)
      .toSorted((left, right) => severityRank(right) - severityRank(left))
    return {
      id: id ?? '',
      form: elements.length === 1 ? 'single' : 'batch',
      events: elements.length,
      items: elements.map((element) => element.id),
      mayBeRepeat: headers['tocsin-possible-repeat'] === 'true',
      severity: firstWord(highest),
      text: harmless(textOf(elements)),
    }
  },
}

/** `said`: the line that heads it, the same on every sink for people but for the brackets. */
function forPeople(id: string, said: string, mayBeRepeat: boolean): Reading {
  const isSealed = id.startsWith('b')
  const summary = isSealed ? readSummary(said) : undefined
  const [, tag = '', rest = said] = /^\[([^\]]*)\] (.*)$/s.exec(said) ?? []
  return {
    id,
    form: summary?.form ?? 'single',
    events: summary?.events ?? 1,
    items: isSealed || id === '' ? [] : [id],
    mayBeRepeat,
    severity: summary?.severity ?? firstWord(tag === '' ? rest : tag),
    text: harmless(summary ? said : `${tag} ${rest}`.trimStart()),
  }
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
  if (only && elements.length === 1) return `${severityLabel(only.severity)} ${only.uid}`
  const words = [noSeverity, ...severities.toReversed()]
  const counts = words.map((word) => ({
    word: word.toUpperCase(),
    count: elements.filter(({ severity }) => wordFor(severity) === word).length,
  }))
  const told = counts.filter(({ count }) => count > 0).map(({ word, count }) => `${count} ${word}`)
  return `${counted(elements.length, 'event')}: ${told.join(', ')}`
}

function wordFor(severity: string): string {
  return isKnownSeverity(severity) ? severity : noSeverity
}

function firstWord(text: string): string {
  return harmless(text, 40).split(' ')[0]?.toLowerCase() ?? ''
}

/** Slack's three entities, the ampersand last. */
function unescaped(text: string): string {
  return text.replaceAll('&lt;', '<').replaceAll('&gt;', '>').replaceAll('&amp;', '&')
}
