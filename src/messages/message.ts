/**
 * A message about one event, before any sink's dialect. Text from the feed is untrusted; it is
 * sanitized here, once for all sinks. No string in a Message has a control, zero-width,
 * bidi-override or tag character, or a lone surrogate; newlines occur only singly in
 * `extract.text`; lengths are within `messageLimits`, in code points; and only `link` and `pageUrl` are
 * something that a client would turn into a link. Markup of a dialect is left as it is: sinks escape it.
 */
import {
  isCanary,
  isKnownSeverity,
  noSeverity,
  type Severity,
  type ThreatEvent,
  blankEvent,
} from '../event.ts'
import { type Description, type Fact, formatTime, readFields } from './types/description.ts'
import { type Document, noParts } from './document.ts'
import { findDescriber } from './types/families.ts'
import { type Guidance, type MessageGuidance, uniteGuidance } from './guidance.ts'
import {
  buildTitle,
  type DescribedEvent,
  describeEvent,
  type HeadlineSubject,
  sortByTelling,
} from './types/headline.ts'
import { type Related, relatedFacts } from './related.ts'
import { cleanBlock, cutText, cutWithCount, defang, sanitizeLine } from './sanitize.ts'
import { formatSeverity, severityLabel } from './summary.ts'

export interface Message {
  severity: Severity
  /** The event's type in plain words: "Stealer log". */
  typeLabel: string
  /**
   * What, whose and where, without the severity: "Stealer log: joe@acme[.]com at
   * login[.]acme[.]com".
   */
  title: string
  /** Severity and title: for notifications. */
  summary: string
  /**
   * Specific to the type, most telling first. Feed, times, identifiers and tags are not repeated.
   */
  facts: Fact[]
  /** One short quotation of what the feed found. */
  extract: { label: string; text: string } | null
  /** Lines of a sink's own template, instead of facts and extract. */
  body?: readonly string[] | undefined
  /** The event in the upstream web application: ASCII, percent-encoded; it may contain `|`. */
  link: string | null
  /** If there is no such link, what upstream gave as one: defanged, so that nobody clicks it. */
  unverifiedLink: string | null
  /** Defanged if it holds a domain; `refang` returns the uid that commands take. */
  /** The event's page of Tocsin: ours, percent-encoded; null: no page is known. */
  pageUrl: string | null
  /** Who gets it too, and how often its login or host was seen before. */
  related: Fact[]
  uid: string
  account: string
  /** Whether a reader must be told the account: several are configured. */
  namesAccount: boolean
  feed: string
  /** The feed's labels: "team blue". */
  labels: string[]
  /** Upstream's name for where it was found; empty: none. */
  source: string
  /**
   * Names of what was matched; a last entry "… and 5 more" if there are more. The same for tags.
   */
  identifiers: string[]
  tags: string[]
  routes: string[]
  /** Milliseconds since 1970. */
  createdAtMs: number | null
  matchedAtMs: number | null
  fetchedAtMs: number
  /** Zone of the times. */
  timeZone: string
  /** What the reader must know about this message itself: a test, a repeat, a missing detail. */
  notes: string[]
  /** What to do, by the configuration: the only part that no feed has a say in. */
  guidance: MessageGuidance
}

/** In code points; `facts`, `names` (identifiers, tags, routes) and `notes` in number. */
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

export function renderMessage(subject: MessageSubject, options: RenderOptions = {}): Message {
  const { event } = subject
  const headline = describeEvent(subject)
  const { description } = headline
  const { timeZone = 'UTC' } = options
  const facts = cleanFacts(description, timeZone)
  return {
    ...renderFirstLines(subject, options, headline),
    typeLabel: sanitizeLine(description.typeLabel, messageLimits.typeLabel),
    facts,
    extract: chooseExtract(event, description, facts),
    ...chooseLink(subject),
    pageUrl: subject.pageUrl ?? null,
    related: isCanary(subject) ? [] : relatedFacts(subject, { name: messageLimits.name, timeZone }),
    uid: sanitizeLine(event.uid, messageLimits.uid),
    account: sanitizeLine(subject.account, messageLimits.name),
    namesAccount: subject.namesAccount === true,
    feed: sanitizeLine(subject.feed, messageLimits.name),
    labels: formatNames(Object.entries(subject.labels ?? {}).map((label) => label.join(' '))),
    source: sanitizeLine(event.source, messageLimits.factValue),
    identifiers: formatNames(event.identifiers.map(({ name }) => name)),
    tags: formatNames(event.tags),
    routes: formatNames(subject.routes),
    createdAtMs: event.createdAtMs,
    matchedAtMs: event.matchedAtMs,
    fetchedAtMs: subject.fetchedAtMs,
    timeZone,
    notes: [...sendingNotes([subject], options), ...eventNotes(subject, timeZone)].map((note) =>
      sanitizeLine(note, messageLimits.note),
    ),
    guidance: uniteGuidance([subject], typeLabel),
  }
}

type FirstLines = Pick<Message, 'severity' | 'title' | 'summary'>

/** The title of an event's messages, as lists show it. */
export function titleOf(subject: DescribedEvent): string {
  const { title, summary } = messageLimits
  const built = buildTitle(describeEvent(subject), { maxLength: title, clean: sanitizeLine })
  return cutText(sanitizeLine(built, summary), title)
}

/** Renders no more than the first lines: a webhook's body needs no more. */
export function renderFirstLines(
  subject: MessageSubject,
  options: Pick<RenderOptions, 'isTest'>,
  headline?: HeadlineSubject,
): FirstLines {
  const severity = sanitizeLine(subject.event.severity, messageLimits.severity)
  const test = testMark(options)
  const maxLength = messageLimits.title - test.length
  const built = buildTitle(headline ?? describeEvent(subject), { maxLength, clean: sanitizeLine })
  const whole = sanitizeLine(test + built, messageLimits.summary)
  const label = sanitizeLine(severityLabel(severity), messageLimits.summary)
  return {
    severity,
    title: cutText(whole, messageLimits.title),
    summary: cutText(`${label} ${whole}`, messageLimits.summary),
  }
}

function cleanFacts({ facts }: Description, timeZone: string): Fact[] {
  return facts
    .filter((fact) => fact !== null)
    .map((fact) => ({
      ...fact,
      label: sanitizeLine(fact.label, messageLimits.factLabel),
      value: sanitizeLine(readIn(fact, timeZone), messageLimits.factValue),
    }))
    .filter(({ value }) => value !== '')
    .slice(0, messageLimits.facts)
}

function readIn(fact: Fact, timeZone: string): string {
  return fact.kind === 'time' ? (formatTime(fact.atMs, timeZone) ?? '') : fact.value
}

function chooseExtract(
  event: ThreatEvent,
  { content, contentLabel = 'Beginning of the text', isOwnWords = false }: Description,
  facts: readonly Fact[],
): Message['extract'] {
  const isInFacts = (text: string): boolean => facts.some(({ value }) => value === text)
  const candidates = [
    ...sortByTelling(isOwnWords ? {} : event.highlights).map(([field, texts]) => ({
      label: `Matched in ${formatField(field)}`,
      text: texts[0] ?? '',
    })),
    { label: contentLabel, text: content ?? '' },
  ]
  for (const candidate of candidates) {
    const text = defang(cleanBlock(candidate.text, Infinity))
    if (text === '' || isInFacts(text)) continue
    return {
      label: sanitizeLine(candidate.label, messageLimits.extractLabel),
      text: cutWithCount(text, messageLimits.extract),
    }
  }
  return null
}

/**
 * `victim_information.username` → "victim information, username": no dot that a client could link.
 */
function formatField(field: string): string {
  return field.replaceAll('.', ', ').replaceAll('_', ' ')
}

function formatNames(all: readonly string[]): string[] {
  const shown = all
    .slice(0, messageLimits.names)
    .map((name) => sanitizeLine(name, messageLimits.name))
  const hiddenCount = all.length - shown.length
  return hiddenCount > 0 ? [...shown.slice(0, -1), `… and ${hiddenCount + 1} more`] : shown
}

/** Only a link that a `LinkFilter` accepted may be clicked. */
function chooseLink({
  link = null,
  event,
}: MessageSubject): Pick<Message, 'link' | 'unverifiedLink'> {
  if (link !== null && link.length <= messageLimits.link) return { link, unverifiedLink: null }
  return {
    link: null,
    unverifiedLink: event.url && sanitizeLine(event.url, messageLimits.factValue),
  }
}

const maxSubjectLength = 180

/** The message as parts, for a sink's serializer. */
export function eventDocument(message: Message, deliveryId: string): Document {
  const { severity, title, summary, body = [], extract, link, guidance, notes } = message
  const { first, rest } = arrangeFacts(message)
  return {
    ...noParts,
    severity,
    headline: title,
    title,
    notification: summary,
    subject: cutText(`[${severityLabel(severity)}] ${title}`, maxSubjectLength),
    typeLabel: message.typeLabel,
    notes,
    body,
    facts: first,
    details: rest,
    context: formatContext(message, first),
    related: message.related,
    extract: extract && { label: extract.label || 'Extract', text: extract.text },
    guidance,
    link,
    pageUrl: message.pageUrl,
    foot: {
      deliveryId,
      uid: message.uid,
      routes: message.routes,
      timeZone: message.timeZone,
      total: 0,
      attachment: null,
    },
  }
}

/** What is said first of an event, and what can wait. */
interface ArrangedFacts {
  /** At most five that tell this alert from the next one, and the account if there are several. */
  first: Fact[]
  /** The other facts, tags, times and where it came from. */
  rest: Fact[]
}

const firstFacts = 5
/** The first facts say what, whose and where; the matched identifiers follow them. */
const factsBeforeMatched = 3
export const unverifiedLinkLabel = 'Unverified link'

export function arrangeFacts(message: Message): ArrangedFacts {
  const { account, namesAccount, identifiers, tags, unverifiedLink } = message
  const { telling, source } = splitFacts(message)
  const matched = listFacts('Matched', identifiers)
  const shown = message.body === undefined ? firstFacts : 0
  const isSaid = identifiers.length === 1 && message.title.includes(identifiers[0] ?? '')
  const inOrder = isSaid
    ? [...telling, ...matched]
    : [...telling.slice(0, factsBeforeMatched), ...matched, ...telling.slice(factsBeforeMatched)]
  return {
    first: [...inOrder.slice(0, shown), ...(namesAccount ? listFacts('Account', [account]) : [])],
    rest: [
      ...inOrder.slice(shown),
      ...listFacts('Tags', tags),
      ...source,
      ...(unverifiedLink === null ? [] : listFacts(unverifiedLinkLabel, [unverifiedLink])),
      ...listTimes(message).flatMap(({ label, text }) => listFacts(`${label} at`, [text])),
      ...listFacts('Feed', [formatFeed(message)]),
    ],
  }
}

/** Upstream's name of a source tells least: it counts as a fact only where there is hardly another. */
function splitFacts({ facts, source }: Message): { telling: Fact[]; source: Fact[] } {
  const isSource = ({ label, value }: Fact): boolean => label === 'Source' && value === source
  const telling = facts.filter((fact) => !isSource(fact))
  return telling.length < 2
    ? { telling: facts, source: [] }
    : { telling, source: facts.filter(isSource) }
}

/** Where chats have no room for the rest: times, feed and source in one line. */
function formatContext(message: Message, first: readonly Fact[]): string {
  const { source, unverifiedLink } = message
  const isSaid = first.some(({ value }) => value === source)
  return [
    ...listTimes(message).map(({ label, text }) => `${label.toLowerCase()} ${text}`),
    `feed ${formatFeed(message)}`,
    ...(source === '' || isSaid ? [] : [`source ${source}`]),
    ...(unverifiedLink === null ? [] : [`${unverifiedLinkLabel.toLowerCase()}: ${unverifiedLink}`]),
  ].join(' · ')
}

function formatFeed({ feed, labels }: Message): string {
  return labels.length === 0 ? feed : `${feed} (${labels.join(', ')})`
}

function listTimes(message: Message): { label: string; text: string }[] {
  const { createdAtMs, matchedAtMs, fetchedAtMs, timeZone } = message
  const late = formatLateness(matchedAtMs ?? createdAtMs, fetchedAtMs)
  return [
    { label: 'Created', atMs: createdAtMs, remark: '' },
    { label: 'Matched', atMs: matchedAtMs, remark: '' },
    { label: 'Fetched', atMs: fetchedAtMs, remark: late },
  ].flatMap(({ label, atMs, remark }) => {
    const text = atMs === null ? null : formatTime(atMs, timeZone)
    return text === null ? [] : [{ label, text: text + remark }]
  })
}

function listFacts(label: string, names: readonly string[]): Fact[] {
  return names.length === 0 ? [] : [{ label, value: names.join(', '), kind: 'text' }]
}

function formatLateness(sinceMs: number | null, atMs: number): string {
  const minutes = sinceMs === null ? 0 : Math.round((atMs - sinceMs) / 60_000)
  if (!(minutes > 0)) return ''
  if (minutes < 120) return ` (${minutes} min later)`
  return minutes < 2880
    ? ` (${Math.round(minutes / 60)} h later)`
    : ` (${Math.round(minutes / 1440)} days later)`
}

/** Returns the address if it leads to the account's upstream and may be clicked, else null. */
export type LinkFilter = (account: string, url: string | null) => string | null

/** What is rendered; a `DeliveryMember` of the sinks fits. */
export interface MessageSubject extends DescribedEvent, Related {
  account: string
  /** Names of the routes that chose this destination. */
  routes: readonly string[]
  /** The feed's labels. */
  labels?: Readonly<Record<string, string>> | undefined
  /** Several accounts are configured, so a reader must be told which one this is. */
  namesAccount?: boolean | undefined
  guidance?: Guidance | undefined
  fetchedAtMs: number
  /** The severity in the earlier message to the same readers; undefined: there was none. */
  raisedFrom?: string | undefined
  /** The `LinkFilter`'s result for the event's `url`; left out: nothing to click. */
  link?: string | null | undefined
  /** The event's page; left out: no page is known. */
  pageUrl?: string | undefined
}

export interface RenderOptions {
  /** Default 1. */
  attempt?: number
  mayBeRepeat?: boolean
  isTest?: boolean | undefined
  /** Zone of the times; default UTC, of a digest that of its schedule. */
  timeZone?: string | undefined
}

/** Stands before the title of a test; else empty. */
export function testMark({ isTest }: Pick<RenderOptions, 'isTest'>): string {
  return isTest === true ? 'TEST ' : ''
}

/** What a reader must know about this sending, whatever its content. */
export function sendingNotes(
  members: readonly Pick<MessageSubject, 'feed' | 'event'>[],
  { isTest, mayBeRepeat, attempt = 1 }: RenderOptions,
): string[] {
  const test = members.every(isCanary)
    ? "TEST: Tocsin's own test event, which shows that messages arrive here; nothing happened."
    : 'TEST: this message was asked for, nothing happened.'
  return [
    isTest === true ? test : null,
    mayBeRepeat === true ? 'May be a repeat: the answer to an earlier attempt was lost.' : null,
    attempt > 1 ? `Attempt ${attempt}.` : null,
  ].filter((note) => note !== null)
}

/** What a reader must know about this one event, still raw. */
function eventNotes({ event, detail, raisedFrom }: MessageSubject, timeZone: string): string[] {
  const hidden = event.originalSeverity
  const ignored = event.ignoredAtMs === null ? null : formatTime(event.ignoredAtMs, timeZone)
  const remediated =
    event.remediatedAtMs === null ? null : formatTime(event.remediatedAtMs, timeZone)
  return [
    raisedFrom === undefined ? null : `Severity raised from ${formatSeverity(raisedFrom)}.`,
    detail === 'unavailable'
      ? 'Full event was not available in time; this is the search result.'
      : null,
    hidden === null
      ? null
      : `Severity set by the tenant; the service says ${formatSeverity(hidden)}.`,
    severityNote(event.severity),
    event.unread === undefined ? null : `Could not be read: ${event.unread.join(', ')}.`,
    ignored === null ? null : `Marked as ignored on ${ignored}.`,
    remediated === null ? null : `Marked as remediated on ${remediated}.`,
    event.notes === null ? null : `Notes: ${event.notes}`,
  ].filter((note) => note !== null)
}

function severityNote(severity: string): string | null {
  if (isKnownSeverity(severity)) return null
  return severity === noSeverity
    ? 'It came without a readable severity; treated as critical.'
    : 'Its severity is no word that this version knows; treated as critical.'
}

/** A type in plain words, as messages show it: `stealer_log` → "Stealer log". */
export function typeLabel(type: string): string {
  const description = findDescriber(type)({
    feed: '',
    event: blankEvent(type),
    fields: readFields(null, {}),
    id: null,
    secret: null,
  })
  return sanitizeLine(description.typeLabel, messageLimits.typeLabel)
}

/** "stealer logs", "bots for sale": several of a type, within a sentence. */
export function pluralizeType(type: string): string {
  const label = typeLabel(type)
  const [, noun = label, rest = ''] = /^(.*?)( (?:for|in|of|on) .*)?$/u.exec(label) ?? []
  const plural = pluralizeNoun(noun)
  return `${plural.charAt(0).toLowerCase()}${plural.slice(1)}${rest}`
}

function pluralizeNoun(noun: string): string {
  if (/(?:data|code|malware|infrastructure|[^s]s)$/iu.test(noun)) return noun
  return noun.endsWith('ss') ? `${noun}es` : `${noun.replace(/(?<![aeiou])y$/u, 'ie')}s`
}
