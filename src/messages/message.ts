/**
 * What is said about an event, before any sink's dialect. Text from the feed is hostile; here, once
 * for all sinks, it is cleaned, defanged and cut. Promised of every string in a Message: no control,
 * zero-width, bidi-override or tag character, no lone surrogate; no newline except single ones in
 * `extract.text`; no longer than `messageLimits` says, in code points; nothing but `link` that a
 * client would turn into a link. Not promised: markup of a dialect is left as it is, sinks escape.
 */
import type { ThreatEvent } from '../events/threat-event.ts'
import type { Severity } from '../events/severity.ts'
import { cleanBlock, cleanLine, cutCounting } from './clean-text.ts'
import { defang } from './defang.ts'
import type { Description, Fact } from './description.ts'
import { describerOf } from './families.ts'
import { titleOf, type HeadlineSubject } from './headline.ts'
import { inertLine } from './inert-line.ts'
import { eventNotes, sendingNotes } from './message-notes.ts'
import type { MessageSubject, RenderOptions } from './message-subject.ts'
import { readFields } from './read-fields.ts'
import { severityLabel } from './severity-counts.ts'

export type { MessageSubject, RenderOptions } from './message-subject.ts'

export interface Message {
  severity: Severity
  /** The event's type in plain words: "Stealer log". */
  typeLabel: string
  /** What, whose, where, the severity not: "Stealer log: joe@acme[.]com at login[.]acme[.]com". */
  title: string
  /** Severity and title: for notifications. */
  summary: string
  /** Particular to the type, most telling first. Feed, times, identifiers and tags are not repeated. */
  facts: Fact[]
  /** One short quotation of what the feed found. */
  extract: { label: string; text: string } | null
  /** The event in the service's web application: ASCII, percent-encoded; `|` may stand in it. */
  link: string | null
  /** Where there is no such link, what the service gave as one: defanged, for nobody to click. */
  unverifiedLink: string | null
  /** Defanged where it holds a domain; `refang` gives the uid that commands take. */
  uid: string
  account: string
  feed: string
  /** Names of what was matched; the last entry says "… and 5 more" where there are more. So for tags. */
  identifiers: string[]
  tags: string[]
  routes: string[]
  /** Milliseconds since 1970. */
  createdAtMs: number | null
  matchedAtMs: number | null
  fetchedAtMs: number
  /** What the reader must know about this message itself: a test, a repeat, a missing detail. */
  notes: string[]
}

/** How messages name an `unverifiedLink`. */
export const unverifiedLinkLabel = 'Unverified link'

/** In code points; `facts`, `names` (identifiers, tags, routes) and `notes` also in number. */
export const messageLimits = {
  severity: 40,
  typeLabel: 60,
  title: 150,
  summary: 250,
  factLabel: 40,
  factValue: 300,
  facts: 12,
  extractLabel: 80,
  extract: 600,
  link: 2000,
  uid: 600,
  name: 120,
  names: 10,
  note: 400,
  notes: 10,
} as const

export function renderMessage(subject: MessageSubject, options: RenderOptions): Message {
  const { event } = subject
  const headline = describeEvent(subject)
  const { description } = headline
  const facts = finishedFacts(description)
  const severity = inertLine(event.severity, messageLimits.severity)
  const test = options.isTest === true ? 'TEST ' : ''
  const maxLength = messageLimits.title - test.length
  const title = titleOf(headline, { maxLength, clean: inertLine })
  return {
    severity,
    typeLabel: inertLine(description.typeLabel, messageLimits.typeLabel),
    title: inertLine(test + title, messageLimits.title),
    summary: inertLine(`${severityLabel(severity)} ${test}${title}`, messageLimits.summary),
    facts,
    extract: extractOf(event, description, facts),
    ...linkOf(subject),
    uid: inertLine(event.uid, messageLimits.uid),
    account: inertLine(subject.account, messageLimits.name),
    feed: inertLine(subject.feed, messageLimits.name),
    identifiers: names(event.identifiers.map(({ name }) => name)),
    tags: names(event.tags),
    routes: names(subject.routes),
    createdAtMs: event.createdAtMs,
    matchedAtMs: event.matchedAtMs,
    fetchedAtMs: subject.fetchedAtMs,
    notes: [...sendingNotes(options), ...eventNotes(subject)].map((note) =>
      inertLine(note, messageLimits.note),
    ),
  }
}

/** What its headline is made of, still raw. */
export function describeEvent({
  feed,
  event,
  detail,
  secret,
}: Pick<MessageSubject, 'feed' | 'event' | 'detail' | 'secret'>): HeadlineSubject {
  const data = detail === 'unavailable' ? null : (detail ?? null)
  const id = event.uid.split('/').slice(2).join('/')
  const description = describerOf(event.type)({
    feed,
    event,
    fields: readFields(data, event.highlights),
    id: id === '' ? null : id,
    secret: secret ?? null,
  })
  return { event, feed, description, extract: matchedExtract(event, description) }
}

function finishedFacts({ facts }: Description): Fact[] {
  return facts
    .filter((fact) => fact !== null)
    .map(({ label, value, kind }) => ({
      label: inertLine(label, messageLimits.factLabel),
      value: inertLine(value, messageLimits.factValue),
      kind,
    }))
    .filter(({ value }) => value !== '')
    .slice(0, messageLimits.facts)
}

/** Fields whose highlight says most, in this order; then whatever there is. */
const tellingFields = ['content', 'message', 'body', 'description', 'title']

/** A headline of a few words quotes none of these. */
const untelling = /pass|pwd|secret|token|hash|cookie|value|_at$|_id$|^id$/u

/** What matched, as one line for the headline of an event that has no title of its own. */
function matchedExtract({ highlights }: ThreatEvent, { isOwnWords }: Description): string | null {
  if (isOwnWords === true) return null
  const [text] = bestFirst(highlights)
    .filter(([field]) => !untelling.test(field.split('.').at(-1) ?? ''))
    .flatMap(([, texts]) => texts)
    .filter((extract) => cleanLine(extract, Infinity) !== '')
  return text ?? null
}

function bestFirst(highlights: ThreatEvent['highlights']): [string, string[]][] {
  return Object.entries(highlights).toSorted(([a], [b]) => tellingRank(a) - tellingRank(b))
}

function extractOf(
  event: ThreatEvent,
  { content, contentLabel = 'Beginning of the text', isOwnWords = false }: Description,
  facts: readonly Fact[],
): Message['extract'] {
  const isSaid = (text: string): boolean => facts.some(({ value }) => value === text)
  const candidates = [
    ...bestFirst(isOwnWords ? {} : event.highlights).map(([field, texts]) => ({
      label: `Matched in ${fieldInWords(field)}`,
      text: texts[0] ?? '',
    })),
    { label: contentLabel, text: content ?? '' },
  ]
  for (const candidate of candidates) {
    const text = defang(cleanBlock(candidate.text, Infinity))
    if (text === '' || isSaid(text)) continue
    return {
      label: inertLine(candidate.label, messageLimits.extractLabel),
      text: cutCounting(text, messageLimits.extract),
    }
  }
  return null
}

/** `victim_information.username` → "victim information, username": no dot that a client could link. */
function fieldInWords(field: string): string {
  return field.replaceAll('.', ', ').replaceAll('_', ' ')
}

function tellingRank(field: string): number {
  const rank = tellingFields.indexOf(field.split('.').at(-1) ?? field)
  return rank === -1 ? tellingFields.length : rank
}

function names(all: readonly string[]): string[] {
  const shown = all.slice(0, messageLimits.names).map((name) => inertLine(name, messageLimits.name))
  const more = all.length - shown.length
  return more > 0 ? [...shown.slice(0, -1), `… and ${more + 1} more`] : shown
}

/** What may be clicked is judged where the hosts of the account's service are known; nothing else is. */
function linkOf({ link = null, event }: MessageSubject): Pick<Message, 'link' | 'unverifiedLink'> {
  if (link !== null && link.length <= messageLimits.link) return { link, unverifiedLink: null }
  return { link: null, unverifiedLink: event.url && inertLine(event.url, messageLimits.factValue) }
}
