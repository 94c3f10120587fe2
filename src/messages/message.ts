/**
 * What is said about an event, before any sink's dialect. Text from the feed is hostile; here, once
 * for all sinks, it is cleaned, defanged and cut. Promised of every string in a Message: no control,
 * zero-width, bidi-override or tag character, no lone surrogate; no newline except single ones in
 * `extract.text`; no longer than `messageLimits` says, in code points; nothing but `link` that a
 * client would turn into a link. Not promised: markup of a dialect is left as it is, sinks escape.
 */
import type { EventDetail, ThreatEvent } from '../events/threat-event.ts'
import { isKnownSeverity, type Severity } from '../events/severity.ts'
import { cleanBlock, cleanLine, cutCounting, cutText } from './clean-text.ts'
import { defang } from './defang.ts'
import { formatTime, type Description, type Fact } from './description.ts'
import { describerOf } from './families.ts'
import { readFields } from './read-fields.ts'

export interface Message {
  severity: Severity
  /** The event's type in plain words: "Stealer log". */
  typeLabel: string
  /** The headline, the type in front, the severity not: "Stealer log: LummaC2 on DESKTOP-7 (CH)". */
  title: string
  /** Severity, title and what it matched: for notifications and subjects. */
  summary: string
  /** Particular to the type, most telling first. Feed, times, identifiers and tags are not repeated. */
  facts: Fact[]
  /** One short quotation of what the feed found. */
  extract: { label: string; text: string } | null
  /** The event in the service's web application: https, ASCII, percent-encoded; `|` may stand in it. */
  link: string | null
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

/** What is rendered: a `DeliveryMember` of the sinks fits. */
export interface MessageSubject {
  account: string
  feed: string
  routes: readonly string[]
  event: ThreatEvent
  detail?: EventDetail | 'unavailable' | undefined
  fetchedAtMs: number
}

export interface RenderOptions {
  attempt: number
  mayBeRepeat: boolean
  isTest?: boolean | undefined
}

export function renderMessage(subject: MessageSubject, options: RenderOptions): Message {
  const { event } = subject
  const description = describe(subject)
  const facts = finishedFacts(description)
  const severity = line(event.severity, messageLimits.severity)
  const title = line(titleOf(event, description, options), messageLimits.title)
  const identifiers = names(event.identifiers.map(({ name }) => name))
  return {
    severity,
    typeLabel: line(description.typeLabel, messageLimits.typeLabel),
    title,
    summary: line(summaryOf(severity, title, identifiers), messageLimits.summary),
    facts,
    extract: extractOf(event, description, facts),
    link: safeLink(event.url),
    uid: line(event.uid, messageLimits.uid),
    account: line(subject.account, messageLimits.name),
    feed: line(subject.feed, messageLimits.name),
    identifiers,
    tags: names(event.tags),
    routes: names(subject.routes),
    createdAtMs: event.createdAtMs,
    matchedAtMs: event.matchedAtMs,
    fetchedAtMs: subject.fetchedAtMs,
    notes: notesOf(subject, options).map((note) => line(note, messageLimits.note)),
  }
}

/** Clean, defanged, cut, in this order: a cut text links no more than the whole. */
function line(text: string, maxLength: number): string {
  return cutText(defang(cleanLine(text, Infinity)), maxLength)
}

function describe({ event, detail }: MessageSubject): Description {
  const data = detail === 'unavailable' ? null : (detail ?? null)
  const id = event.uid.split('/').slice(2).join('/')
  return describerOf(event.type)({
    event,
    fields: readFields(data, event.highlights),
    id: id === '' ? null : id,
  })
}

function finishedFacts({ facts }: Description): Fact[] {
  return facts
    .filter((fact) => fact !== null)
    .map(({ label, value, kind }) => ({
      label: line(label, messageLimits.factLabel),
      value: line(value, messageLimits.factValue),
      kind,
    }))
    .filter(({ value }) => value !== '')
    .slice(0, messageLimits.facts)
}

function titleOf(event: ThreatEvent, description: Description, options: RenderOptions): string {
  const headline = description.headline ?? event.identifiers[0]?.name ?? event.uid
  return `${options.isTest === true ? 'TEST ' : ''}${description.typeLabel}: ${headline}`
}

function summaryOf(severity: string, title: string, identifiers: string[]): string {
  const matched = identifiers[0]
  const isNew = matched !== undefined && !title.includes(matched)
  return `${severity.toUpperCase()} ${title}${isNew ? ` (matched ${matched})` : ''}`
}

/** Fields whose highlight says most, in this order; then whatever there is. */
const tellingFields = ['content', 'message', 'body', 'description', 'title']

function extractOf(
  event: ThreatEvent,
  { content }: Description,
  facts: readonly Fact[],
): Message['extract'] {
  const isSaid = (text: string): boolean => facts.some(({ value }) => value === text)
  const candidates = [
    ...Object.entries(event.highlights)
      .toSorted(([a], [b]) => tellingRank(a) - tellingRank(b))
      .map(([field, texts]) => ({
        label: `Matched in ${fieldInWords(field)}`,
        text: texts[0] ?? '',
      })),
    { label: 'Beginning of the text', text: content ?? '' },
  ]
  for (const candidate of candidates) {
    const text = defang(cleanBlock(candidate.text, Infinity))
    if (text === '' || isSaid(text)) continue
    return {
      label: line(candidate.label, messageLimits.extractLabel),
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

function notesOf({ event, detail }: MessageSubject, options: RenderOptions): string[] {
  const hidden = event.originalSeverity
  const ignored = event.ignoredAtMs === null ? null : formatTime(event.ignoredAtMs)
  const remediated = event.remediatedAtMs === null ? null : formatTime(event.remediatedAtMs)
  return [
    options.isTest === true ? 'TEST: this message was asked for, nothing happened.' : null,
    options.mayBeRepeat ? 'May be a repeat: the answer to an earlier attempt was lost.' : null,
    options.attempt > 1 ? `Attempt ${options.attempt}.` : null,
    detail === 'unavailable'
      ? 'Full event was not available in time; this is the search result.'
      : null,
    hidden === null ? null : `Severity set by the tenant; the service says ${hidden}.`,
    isKnownSeverity(event.severity)
      ? null
      : 'Severity unknown to this version; treated as critical.',
    ignored === null ? null : `Marked as ignored on ${ignored}.`,
    remediated === null ? null : `Marked as remediated on ${remediated}.`,
    event.notes === null ? null : `Notes: ${event.notes}`,
  ].filter((note) => note !== null)
}

function names(all: readonly string[]): string[] {
  const shown = all.slice(0, messageLimits.names).map((name) => line(name, messageLimits.name))
  const more = all.length - shown.length
  return more > 0 ? [...shown.slice(0, -1), `… and ${more + 1} more`] : shown
}

function safeLink(url: string | null): string | null {
  const parsed = url === null ? null : URL.parse(url)
  if (parsed?.protocol !== 'https:' || parsed.username !== '' || parsed.password !== '') return null
  return parsed.href.length <= messageLimits.link ? parsed.href : null
}
