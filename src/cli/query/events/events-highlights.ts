import type { WireSearchItem } from '../../../service/wire/events.ts'
import type { Terminal } from '../../terminal.ts'
import { harmless } from '../../words.ts'
import { revealed } from '../revealed.ts'

type Highlights = WireSearchItem['highlights']

const mostLines = 2
const lineLength = 140
/** What of a line stands before the first marked term, where that stands far back. */
const leadLength = 40

/**
 * Two extracts at most, a line each, what the service marked bold. `shown`: the same extracts without
 * mark tags, their secrets masked or not; a marked term that is masked there is not found again.
 */
export function highlightLines(
  terminal: Terminal,
  received: Highlights,
  shown: Highlights,
): string[] {
  const extracts = Object.entries(shown ?? {}).flatMap(([field, texts]) =>
    texts.map((text, at) => ({ field, text, terms: markedIn(received?.[field]?.[at] ?? '') })),
  )
  return extracts.slice(0, mostLines).map(({ field, text, terms }) => {
    const line = excerpt(harmless(withoutTags(text), 20_000), terms)
    return `${harmless(field, 60)}: ${boldened(terminal, line, terms)}`
  })
}

/** All of them, each whole on its line: secrets may stand anywhere in them. */
export function revealedHighlights(received: Highlights): string[] {
  return Object.entries(received ?? {}).flatMap(([field, texts]) =>
    texts.map((text) => `${harmless(field, 60)}: ${revealed(withoutTags(text))}`),
  )
}

const tag = /<\/?mark(?:\s[^<>]{0,200})?>/giu

function withoutTags(text: string): string {
  return text.replaceAll(tag, '')
}

function markedIn(text: string): string[] {
  const marked = text.matchAll(/<mark(?:\s[^<>]{0,200})?>([\s\S]{1,500}?)<\/mark>/giu)
  return [...marked].map(([, term = '']) => harmless(withoutTags(term))).filter(Boolean)
}

/** As much of a text as fits a line, the first marked term within. */
function excerpt(text: string, [first]: readonly string[]): string {
  const found = first === undefined ? 0 : Math.max(text.indexOf(first), 0)
  const isFarBack = found > lineLength / 2
  const space = isFarBack ? text.indexOf(' ', found - leadLength) : 0
  const start = space > found ? found : Math.max(space, 0)
  const lead = isFarBack ? `… ${text.slice(start).trimStart()}` : text
  return harmless(lead, lineLength)
}

/** The terms in their order, each where it stands next. */
function boldened(terminal: Terminal, line: string, terms: readonly string[]): string {
  let done = ''
  let rest = line
  for (const term of terms) {
    const at = rest.indexOf(term)
    if (at === -1) continue
    done += rest.slice(0, at) + terminal.paint('bold', term)
    rest = rest.slice(at + term.length)
  }
  return done + rest
}
