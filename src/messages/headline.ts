/**
 * The headline of an event: what it is about, whose it is, where it was found, with or without the full
 * event. Where the name of the thing does not say whose it is, what it matched stands so early that the 80
 * characters of `[CRITICAL] Stealer log: …` which a phone shows hold it.
 */
import type { ThreatEvent } from '../events/threat-event.ts'
import type { Description } from './description.ts'

/** In code points. */
const limits = { label: 30, name: 70, whose: 40, quote: 60, shortQuote: 36, tail: 70 } as const
/** Code units of a text that are looked at: what a headline shows stands at its beginning. */
const readLength = 1000
/** 80 without the longest known severity in brackets. */
const firstLook = 69

export interface HeadlineSubject {
  event: ThreatEvent
  /** Empty where there is none: of an event that a command looked up. */
  feed: string
  description: Description
  /** What of it matched; stands for the title of what has neither name nor title. */
  extract: string | null
}

export interface HeadlineOptions {
  maxLength: number
  /** Makes text of the feed harmless, and cuts it. */
  clean: (text: string, maxLength: number) => string
}

/** "Stealer log: joe@acme[.]com at login[.]acme[.]com, LummaC2 on DESKTOP-7 (CH)". */
export function titleOf(subject: HeadlineSubject, { maxLength, clean }: HeadlineOptions): string {
  const label = clean(subject.description.typeLabel, limits.label)
  return `${label}: ${headlineOf(subject, { maxLength: maxLength - length(label) - 2, clean })}`
}

/** The same without the type in front. */
export function headlineOf(
  subject: HeadlineSubject,
  { maxLength, clean: cleaned }: HeadlineOptions,
): string {
  const clean = (text: string, max: number): string => cleaned(text.slice(0, readLength), max)
  const { event, feed, description, extract } = subject
  const { headline, tail = null } = description
  const quote = description.quote ?? (headline === null ? extract : null)
  const whose = whoseOf(subject)
  const end = tail === null ? '' : clean(tail, limits.tail)
  const parts = {
    label: clean(description.typeLabel, limits.label),
    name: headline === null ? '' : clean(headline, limits.name),
    ours: clean(whose.name, limits.whose),
    isIdentifier: whose.isIdentifier,
    quoted: quote === null ? '' : quoted(clean(quote, quoteLength(whose))),
    isText: description.quote !== undefined,
  }
  const start =
    startOf(parts) || (event.kind === 'event' && feed !== '' ? `feed ${feed}` : event.uid)
  const spacedEnd = end === '' || end.startsWith(',') ? end : ` ${end}`
  return clean(start, Math.max(maxLength - length(spacedEnd), limits.name)) + spacedEnd
}

interface Whose {
  /** What of ours it matched, else the feed that found it; empty where the name says it. */
  name: string
  isIdentifier: boolean
}

function whoseOf({ event, feed, description }: HeadlineSubject): Whose {
  const names = event.identifiers.map(({ name }) => name.trim()).filter((name) => name !== '')
  const [first] = names
  if (first === undefined) {
    const isFound = event.kind === 'event' && description.isOwnWords !== true && feed !== ''
    return { name: isFound ? `feed ${feed}` : '', isIdentifier: false }
  }
  const said = (description.headline ?? '').toLowerCase()
  const isSaid = names.some((name) => said.includes(name.toLowerCase()))
  const more = names.length > 1 ? ` and ${names.length - 1} more` : ''
  return { name: isSaid ? '' : first + more, isIdentifier: true }
}

interface Parts {
  label: string
  name: string
  ours: string
  isIdentifier: boolean
  quoted: string
  /** It is something written or offered, which may have a title. */
  isText: boolean
}

function startOf(parts: Parts): string {
  const { label, name, ours, isIdentifier, quoted: quote } = parts
  if (name === '') return namelessStart(parts)
  const inQuote = quote === '' ? '' : ` in ${quote}`
  if (ours === '') return name + inQuote
  const behind = `${name} (${isIdentifier ? 'matched ' : ''}${ours})`
  const isSeen = !isIdentifier || length(label) + 2 + length(behind) <= firstLook
  return (isSeen ? behind : `${ours} – ${name}`) + inQuote
}

function namelessStart({ label, ours, isIdentifier, quoted: quote, isText }: Parts): string {
  const at = quote.toLowerCase().indexOf(ours.toLowerCase())
  const isSeen = at !== -1 && length(label) + 2 + at + length(ours) <= firstLook
  if (ours === '' || isSeen) return quote
  if (quote === '') return isText && isIdentifier ? `${ours} mentioned` : ours
  return isIdentifier ? `${ours} in ${quote}` : `${quote} (${ours})`
}

/** A feed stands behind the quotation, an identifier before it. */
function quoteLength({ name, isIdentifier }: Whose): number {
  return name === '' || isIdentifier ? limits.quote : limits.shortQuote
}

function quoted(text: string): string {
  return text === '' ? '' : `"${text.replaceAll('"', "'")}"`
}

function length(text: string): number {
  return Array.from(text).length
}
