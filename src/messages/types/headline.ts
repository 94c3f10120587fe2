/** The first line of an event: what it is about, whose it is, where it was found. */
import type { EventDetail, ThreatEvent } from '../../event.ts'
import { withheldText } from '../../masking/masking.ts'
import { type Description, readFields } from './description.ts'
import { findDescriber } from './families.ts'
import { cleanLine, cutText } from '../sanitize.ts'

/** The parts of an event of which a headline is made. */
export interface DescribedEvent {
  feed: string
  event: ThreatEvent
  /**
   * undefined: the feed did not ask for it; 'unavailable': asked for, but not available in time.
   */
  detail?: EventDetail | 'unavailable' | undefined
  /** A leaked secret in clear, for one fact and nothing else; undefined: it stays masked. */
  secret?: string | undefined
}

/** Returns what an event's headline is made of, still raw. */
export function describeEvent({ feed, event, detail, secret }: DescribedEvent): HeadlineSubject {
  const data = detail === 'unavailable' ? null : (detail ?? null)
  const id = event.uid.split('/').slice(2).join('/')
  const description = findDescriber(event.type)({
    feed,
    event,
    fields: readFields(data, event.highlights),
    id: id === '' ? null : id,
    secret: secret ?? null,
  })
  return { event, feed, description, extract: matchedExtract(event, description) }
}

/** Fields whose highlight says most, in this order; other fields follow. */
const tellingFields = ['content', 'message', 'body', 'description', 'title']

/** Fields that a headline never quotes. */
const untellingFields = /pass|pwd|secret|token|hash|cookie|value|_at$|_id$|^id$/u

/** What matched, as one line for the headline of an event that has no title of its own. */
function matchedExtract({ highlights }: ThreatEvent, { isOwnWords }: Description): string | null {
  if (isOwnWords === true) return null
  return (
    sortByTelling(highlights)
      .filter(([field]) => !untellingFields.test(field.split('.').at(-1) ?? ''))
      .flatMap(([, texts]) => texts)
      .find((extract) => extract !== withheldText && cleanLine(extract, Infinity) !== '') ?? null
  )
}

/** The fields of an event's highlights, most telling first. */
export function sortByTelling(highlights: ThreatEvent['highlights']): [string, string[]][] {
  return Object.entries(highlights).toSorted(([a], [b]) => tellingRank(a) - tellingRank(b))
}

function tellingRank(field: string): number {
  const rank = tellingFields.indexOf(field.split('.').at(-1) ?? field)
  return rank === -1 ? tellingFields.length : rank
}

/** In code points. */
const limits = { label: 30, name: 70, whose: 40, quote: 60, shortQuote: 36, tail: 70 } as const
/** Code units of a text that are read: a headline shows only its beginning. */
const maxReadLength = 1000
/**
 * A phone shows 80 characters of `[CRITICAL] Stealer log: …`; this is 80 less the longest known
 * severity in brackets.
 */
const notificationLength = 69

export interface HeadlineSubject {
  event: ThreatEvent
  /** Empty if there is none: an event that a command looked up. */
  feed: string
  description: Description
  /** What matched, for an event that has neither name nor title. */
  extract: string | null
}

interface HeadlineOptions {
  maxLength: number
  /** Sanitizes text of the feed and cuts it. */
  clean: (text: string, maxLength: number) => string
}

/** "Stealer log: joe@acme[.]com at login[.]acme[.]com, LummaC2 on DESKTOP-7 (CH)". */
export function buildTitle(
  subject: HeadlineSubject,
  { maxLength, clean }: HeadlineOptions,
): string {
  const label = clean(subject.description.typeLabel, limits.label)
  return `${label}: ${buildHeadline(subject, { maxLength: maxLength - countCodePoints(label) - 2, clean })}`
}

/**
 * Builds the headline without the type: what the event is about, whose it is, where it was found.
 * If the name does not say whose it is, the matched identifier stands early enough for a phone's
 * notification.
 */
export function buildHeadline(
  subject: HeadlineSubject,
  { maxLength, clean: cleaned }: HeadlineOptions,
): string {
  const fit = (text: string, max: number): string => cutText(shortenHosts(text, max), max)
  const clean = (text: string, max: number): string =>
    fit(cleaned(text.slice(0, maxReadLength), Infinity), max)
  const { event, feed, description, extract } = subject
  const { headline, tail = null } = description
  const quote = description.quote ?? (headline === null ? extract : null)
  const label = clean(description.typeLabel, limits.label)
  const name = headline === null ? '' : clean(headline, limits.name)
  const isSaid = (one: string): boolean => isSeenIn(`${label}: ${name}`, clean(one, limits.name))
  const owner = findOwner(subject, isSaid)
  const end = tail === null ? '' : clean(tail, limits.tail)
  const parts = {
    label,
    name,
    ours: clean(owner.name, limits.whose),
    isIdentifier: owner.isIdentifier,
    quoted: quote === null ? '' : inQuotes(clean(quote, quoteLength(owner))),
    isText: description.quote !== undefined,
  }
  const lastResort = event.kind === 'event' && feed !== '' ? `feed ${feed}` : event.uid
  const start = buildStart(parts) || cleaned(lastResort.slice(0, maxReadLength), Infinity)
  const spacedEnd = end === '' || end.startsWith(',') ? end : ` ${end}`
  return fit(start, Math.max(maxLength - countCodePoints(spacedEnd), limits.name)) + spacedEnd
}

/** Code points of a host's name in a headline, as `clean` leaves it; `min` where room is scarce. */
const hostLimits = { min: 16, max: 48 } as const
const hostName = /(?:[\p{L}\p{N}\p{M}_-]|\[\.\]|\.){17,}/gu

/**
 * Cuts long names of hosts at their beginning, the last one to what is left of `max`: the end says
 * whose they are.
 */
function shortenHosts(text: string, max: number): string {
  if (text.length <= hostLimits.min || !text.includes('.')) return text
  return text.replace(hostName, (name, at: number) => {
    const left = at + name.length === text.length ? max - at : hostLimits.max
    const room = Math.max(hostLimits.min, Math.min(hostLimits.max, left))
    const characters = Array.from(name)
    if (!name.includes('.') || characters.length <= room) return name
    const end = characters.slice(1 - room).join('')
    return `…${end.replace(/^[.\]]+/u, '')}`
  })
}

interface Owner {
  /** The matched identifier, else the feed that found it; empty if the headline says it already. */
  name: string
  isIdentifier: boolean
}

function findOwner(
  { event, feed, description }: HeadlineSubject,
  isSaid: (name: string) => boolean,
): Owner {
  const names = event.identifiers.map(({ name }) => name.trim()).filter((name) => name !== '')
  const [first] = names
  if (first === undefined) {
    const isFound = event.kind === 'event' && description.isOwnWords !== true && feed !== ''
    return { name: isFound ? `feed ${feed}` : '', isIdentifier: false }
  }
  const more = names.length > 1 ? ` and ${names.length - 1} more` : ''
  return { name: names.some(isSaid) ? '' : first + more, isIdentifier: true }
}

/** Whether a phone's notification of `text` shows `part`. */
function isSeenIn(text: string, part: string): boolean {
  const at = text.toLowerCase().indexOf(part.toLowerCase())
  return at !== -1 && countCodePoints(text.slice(0, at) + part) <= notificationLength
}

interface HeadlineParts {
  label: string
  name: string
  ours: string
  isIdentifier: boolean
  quoted: string
  /** The event is a text or an offer, which may have a title. */
  isText: boolean
}

function buildStart(parts: HeadlineParts): string {
  const { label, name, ours, isIdentifier, quoted: quote } = parts
  if (name === '') return namelessStart(parts)
  const inQuote = quote === '' ? '' : ` in ${quote}`
  if (ours === '') return name + inQuote
  const behind = `${name} (${isIdentifier ? 'matched ' : ''}${ours})`
  const isSeen =
    !isIdentifier || countCodePoints(label) + 2 + countCodePoints(behind) <= notificationLength
  return (isSeen ? behind : `${ours} – ${name}`) + inQuote
}

function namelessStart({
  label,
  ours,
  isIdentifier,
  quoted: quote,
  isText,
}: HeadlineParts): string {
  if (ours === '' || isSeenIn(`${label}: ${quote}`, ours)) return quote
  if (quote === '') return isText && isIdentifier ? `${ours} mentioned` : ours
  return isIdentifier ? `${ours} in ${quote}` : `${quote} (${ours})`
}

/** A feed stands after the quotation, an identifier before it. */
function quoteLength({ name, isIdentifier }: Owner): number {
  return name === '' || isIdentifier ? limits.quote : limits.shortQuote
}

function inQuotes(text: string): string {
  return text === '' ? '' : `"${text.replaceAll('"', "'")}"`
}

function countCodePoints(text: string): number {
  return Array.from(text).length
}
