/**
 * A message about one event, before any sink's dialect. Text from the feed is untrusted; it is
 * sanitized here, once for all sinks. No string in a Message has a control, zero-width,
 * bidi-override or tag character, or a lone surrogate; newlines occur only singly in
 * `extract.text`; lengths are within `messageLimits`, in code points; and only `link` is something
 * that a client would turn into a link. Markup of a dialect is left as it is: sinks escape it.
 */
import {
  type EventDetail,
  isCanary,
  isKnownSeverity,
  noSeverity,
  type Severity,
  type ThreatEvent,
  blankEvent,
} from '../event.ts'
import { type Description, type Fact, formatTime, readFields } from './description.ts'
import { findDescriber } from './families.ts'
import { type Guidance, type MessageGuidance, uniteGuidance } from './guidance.ts'
import { cleanBlock, cleanLine, cutText, cutWithCount, defang, sanitizeLine } from './sanitize.ts'
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

export const unverifiedLinkLabel = 'Unverified link'

/** What each part of a message about one event may take, in characters. */
export interface Allowance {
  value: number
  extract: number
  note: number
  origin: number
}

/** For messages whose size is bounded, from ample to scant. */
export const messageAllowances: readonly [Allowance, ...Allowance[]] = [
  { value: 1200, extract: 3000, note: 1000, origin: 1000 },
  { value: 250, extract: 800, note: 200, origin: 600 },
  { value: 60, extract: 200, note: 100, origin: 150 },
]

/** Renders with one allowance after the other until the result fits; that with the last one counts as fitting. */
export function firstFitting<Allowed, Rendered>(
  [ample, ...scanter]: readonly [Allowed, ...Allowed[]],
  render: (allowance: Allowed) => Rendered,
  fits: (rendered: Rendered) => boolean,
): Rendered {
  let rendered = render(ample)
  for (const allowance of scanter) {
    if (fits(rendered)) break
    rendered = render(allowance)
  }
  return rendered
}

/** The small line by which operators find a message again. */
export function formatOrigin({ uid, routes }: Message, deliveryId: string): string {
  return `delivery ${deliveryId} · uid ${uid} · routes ${routes.join(', ') || '-'}`
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

export function renderMessage(subject: MessageSubject, options: RenderOptions): Message {
  const { event } = subject
  const headline = describeEvent(subject)
  const { description } = headline
  const { timeZone = 'UTC' } = options
  const facts = cleanFacts(description, timeZone)
  return {
    ...buildFirstLines(subject, options, headline),
    typeLabel: sanitizeLine(description.typeLabel, messageLimits.typeLabel),
    facts,
    extract: chooseExtract(event, description, facts),
    ...chooseLink(subject),
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

/** Renders no more than the first lines, for those who need no more: a webhook's body. */
export function renderFirstLines(
  subject: MessageSubject,
  options: Pick<RenderOptions, 'isTest'>,
): FirstLines {
  return buildFirstLines(subject, options)
}

/** The title of an event's messages, as lists show it. */
export function titleOf(subject: Pick<MessageSubject, 'feed' | 'event' | 'detail'>): string {
  const { title, summary } = messageLimits
  const built = buildTitle(describeEvent(subject), { maxLength: title, clean: sanitizeLine })
  return cutText(sanitizeLine(built, summary), title)
}

/** A title that the ledger keeps is taken as it is: it is what lists show of the event. */
function buildFirstLines(
  subject: MessageSubject,
  options: Pick<RenderOptions, 'isTest'>,
  headline?: HeadlineSubject,
): FirstLines {
  const severity = sanitizeLine(subject.event.severity, messageLimits.severity)
  const test = testMark(options)
  const maxLength = messageLimits.title - test.length
  const built =
    subject.title ??
    buildTitle(headline ?? describeEvent(subject), { maxLength, clean: sanitizeLine })
  const whole = sanitizeLine(test + built, messageLimits.summary)
  const label = sanitizeLine(severityLabel(severity), messageLimits.summary)
  return {
    severity,
    title: cutText(whole, messageLimits.title),
    summary: cutText(`${label} ${whole}`, messageLimits.summary),
  }
}

/** Returns what an event's headline is made of, still raw. */
export function describeEvent({
  feed,
  event,
  detail,
  secret,
}: Pick<MessageSubject, 'feed' | 'event' | 'detail' | 'secret'>): HeadlineSubject {
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
      .find((extract) => cleanLine(extract, Infinity) !== '') ?? null
  )
}

function sortByTelling(highlights: ThreatEvent['highlights']): [string, string[]][] {
  return Object.entries(highlights).toSorted(([a], [b]) => tellingRank(a) - tellingRank(b))
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

function tellingRank(field: string): number {
  const rank = tellingFields.indexOf(field.split('.').at(-1) ?? field)
  return rank === -1 ? tellingFields.length : rank
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

/** In code points. */
const limits = { label: 30, name: 70, whose: 40, quote: 60, shortQuote: 36, tail: 70 } as const
/** Code units of a text that are read: a headline shows only its beginning. */
const maxReadLength = 1000
/**
 * A phone shows 80 characters of `[CRITICAL] Stealer log: …`; this is 80 less the longest known
 * severity in brackets.
 */
const notificationLength = 69

interface HeadlineSubject {
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
function buildTitle(subject: HeadlineSubject, { maxLength, clean }: HeadlineOptions): string {
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

/** Returns the address if it leads to the account's upstream and may be clicked, else null. */
export type LinkFilter = (account: string, url: string | null) => string | null

/** What is rendered; a `DeliveryMember` of the sinks fits. */
export interface MessageSubject {
  account: string
  feed: string
  routes: readonly string[]
  /** The feed's labels. */
  labels?: Readonly<Record<string, string>> | undefined
  /** Several accounts are configured, so a reader must be told which one this is. */
  namesAccount?: boolean | undefined
  guidance?: Guidance | undefined
  /** As the ledger keeps it; undefined: it is made of the event. */
  title?: string | undefined
  event: ThreatEvent
  detail?: EventDetail | 'unavailable' | undefined
  fetchedAtMs: number
  /** The severity in the earlier message to the same readers; undefined: there was none. */
  raisedFrom?: string | undefined
  /** The `LinkFilter`'s result for the event's `url`; left out: nothing to click. */
  link?: string | null | undefined
  /** A leaked secret in clear, for one fact and nothing else; undefined: it stays masked. */
  secret?: string | undefined
}

export interface RenderOptions {
  attempt: number
  mayBeRepeat: boolean
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
  { isTest, mayBeRepeat, attempt }: RenderOptions,
): string[] {
  const test = members.every(isCanary)
    ? "TEST: Tocsin's own test event, which shows that messages arrive here; nothing happened."
    : 'TEST: this message was asked for, nothing happened.'
  return [
    isTest === true ? test : null,
    mayBeRepeat ? 'May be a repeat: the answer to an earlier attempt was lost.' : null,
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
