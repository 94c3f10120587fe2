/**
 * A message about one event, as parts before any sink's syntax. Text from the feed is untrusted; it
 * is sanitized here, once for all sinks. No string has a control, zero-width, bidi-override or tag
 * character, or a lone surrogate. Newlines occur only singly in `extract.text`; lengths are within
 * `messageLimits`, in code points. Only `link` and `pageUrl` are something that a client would turn
 * into a link. Markup of a dialect is left as it is: sinks escape it.
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
import { type Guidance, uniteGuidance } from './guidance.ts'
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

/** In code points; `facts`, `names` (identifiers, tags, routes) and `notes` in number. */
export const messageLimits = {
  severity: 40,
  typeLabel: 60,
  title: 150,
  notification: 250,
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

const maxSubjectLength = 180

/** What an event says wherever it is shown: in a message, on the page, on a terminal. */
export interface EventWords extends Pick<Document, 'title' | 'extract' | 'link'> {
  /** The event's type in plain words: "Stealer log". */
  typeLabel: string
  /**
   * Specific to the type, most telling first. Feed, times, identifiers and tags are not repeated.
   */
  facts: Fact[]
  /** If there is no such link, what upstream gave as one: defanged, so that nobody clicks it. */
  unverifiedLink: string | null
}

export function readWords(
  subject: DescribedEvent & Pick<MessageSubject, 'link'>,
  options: Pick<RenderOptions, 'isTest' | 'timeZone'> = {},
): EventWords {
  const { event } = subject
  const headline = describeEvent(subject)
  const { description } = headline
  const facts = cleanFacts(description, options.timeZone ?? 'UTC')
  return {
    typeLabel: sanitizeLine(description.typeLabel, messageLimits.typeLabel),
    title: writeTitle(headline, options),
    facts,
    extract: chooseExtract(event, description, facts),
    ...chooseLink(subject),
  }
}

/** What, whose and where, without the severity: "Stealer log: joe@acme[.]com at login[.]acme[.]com". */
export function titleOf(
  subject: DescribedEvent,
  options: Pick<RenderOptions, 'isTest'> = {},
): string {
  return writeTitle(describeEvent(subject), options)
}

function writeTitle(headline: HeadlineSubject, options: Pick<RenderOptions, 'isTest'>): string {
  const { title, notification } = messageLimits
  const test = testMark(options)
  const maxLength = title - test.length
  const built = buildTitle(headline, { maxLength, clean: sanitizeLine })
  return cutText(sanitizeLine(test + built, notification), title)
}

/** Severity and title. */
export function notificationOf(severity: Severity, title: string): string {
  const label = severityLabel(sanitizeLine(severity, messageLimits.severity))
  return cutText(`${label} ${title}`, messageLimits.notification)
}

/** What a sink's own template says instead of the built-in words. */
interface OwnWords {
  title?: string | undefined
  /** Instead of facts and extract. */
  body?: readonly string[] | undefined
}

/** `id`: of the delivery, by which operators find the message again. */
export function renderMessage(
  subject: MessageSubject,
  { id, own = {}, ...options }: RenderOptions & { id: string; own?: OwnWords },
): Document {
  const { event } = subject
  const { timeZone = 'UTC' } = options
  const words = readWords(subject, options)
  const { title = words.title, body } = own
  const severity = sanitizeLine(event.severity, messageLimits.severity)
  const notes = [...sendingNotes([subject], options), ...eventNotes(subject, timeZone)]
  const related = { name: messageLimits.name, timeZone }
  const said = body === undefined ? { ...words, title } : { ...words, title, facts: [] }
  return {
    ...noParts,
    severity,
    headline: title,
    title,
    notification: notificationOf(severity, title),
    subject: cutText(`[${severityLabel(severity)}] ${title}`, maxSubjectLength),
    typeLabel: words.typeLabel,
    notes: notes.map((note) => sanitizeLine(note, messageLimits.note)),
    body: body ?? [],
    ...arrangeFacts(subject, said, { timeZone, mostFacts: body === undefined ? 5 : 0 }),
    related: isCanary(subject) ? [] : relatedFacts(subject, related),
    extract: body === undefined ? words.extract : null,
    guidance: uniteGuidance([subject], typeLabel),
    link: words.link,
    pageUrl: subject.pageUrl ?? null,
    foot: {
      deliveryId: id,
      uid: sanitizeLine(event.uid, messageLimits.uid),
      routes: cleanNames(subject.routes),
      timeZone,
      total: 0,
      attachment: null,
    },
  }
}

/** The first facts say what, whose and where; the matched identifiers follow them. */
const factsBeforeMatched = 3
export const unverifiedLinkLabel = 'Unverified link'

/** What is said first of an event, and what can wait. */
function arrangeFacts(
  subject: MessageSubject,
  words: EventWords,
  { timeZone, mostFacts }: { timeZone: string; mostFacts: number },
): Pick<Document, 'facts' | 'details' | 'context'> {
  const { event, namesAccount = false } = subject
  const { title, unverifiedLink } = words
  const source = sanitizeLine(event.source, messageLimits.factValue)
  const facts = splitFacts(words.facts, source)
  const identifiers = cleanNames(event.identifiers.map(({ name }) => name))
  const matched = listFacts('Matched', identifiers)
  const isSaid = identifiers.length === 1 && title.includes(identifiers[0] ?? '')
  const before = isSaid ? facts.telling.length : factsBeforeMatched
  const inOrder = facts.telling.toSpliced(before, 0, ...matched)
  const account = sanitizeLine(subject.account, messageLimits.name)
  const first = [
    ...inOrder.slice(0, mostFacts),
    ...(namesAccount ? listFacts('Account', [account]) : []),
  ]
  const times = listTimes(subject, timeZone)
  const feed = formatFeed(subject)
  return {
    facts: first,
    details: [
      ...inOrder.slice(mostFacts),
      ...listFacts('Tags', cleanNames(event.tags)),
      ...facts.source,
      ...(unverifiedLink === null ? [] : listFacts(unverifiedLinkLabel, [unverifiedLink])),
      ...times.flatMap(({ label, text }) => listFacts(`${label} at`, [text])),
      ...listFacts('Feed', [feed]),
    ],
    // where chats have no room for the rest: times, feed and source in one line
    context: [
      ...times.map(({ label, text }) => `${label.toLowerCase()} ${text}`),
      `feed ${feed}`,
      ...(source === '' || first.some(({ value }) => value === source) ? [] : [`source ${source}`]),
      ...(unverifiedLink === null
        ? []
        : [`${unverifiedLinkLabel.toLowerCase()}: ${unverifiedLink}`]),
    ].join(' · '),
  }
}

/** Upstream's name of a source tells least: it counts as a fact only where there is hardly another. */
function splitFacts(facts: Fact[], name: string): { telling: Fact[]; source: Fact[] } {
  const isSource = ({ label, value }: Fact): boolean => label === 'Source' && value === name
  const telling = facts.filter((fact) => !isSource(fact))
  return telling.length < 2
    ? { telling: facts, source: [] }
    : { telling, source: facts.filter(isSource) }
}

function formatFeed({ feed, labels = {} }: MessageSubject): string {
  const name = sanitizeLine(feed, messageLimits.name)
  const named = cleanNames(Object.entries(labels).map((label) => label.join(' ')))
  return named.length === 0 ? name : `${name} (${named.join(', ')})`
}

function listTimes(
  { event: { createdAtMs, matchedAtMs }, fetchedAtMs }: MessageSubject,
  timeZone: string,
): { label: string; text: string }[] {
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
  return names.length === 0 ? [] : [{ label, value: defang(names.join(', ')), kind: 'text' }]
}

function formatLateness(sinceMs: number | null, atMs: number): string {
  const minutes = sinceMs === null ? 0 : Math.round((atMs - sinceMs) / 60_000)
  if (!(minutes > 0)) return ''
  if (minutes < 120) return ` (${minutes} min later)`
  return minutes < 2880
    ? ` (${Math.round(minutes / 60)} h later)`
    : ` (${Math.round(minutes / 1440)} days later)`
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
): Document['extract'] {
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

/** At most ten; a last one "… and 5 more" if there are more. */
export function cleanNames(all: readonly string[]): string[] {
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
}: Pick<MessageSubject, 'link' | 'event'>): Pick<EventWords, 'link' | 'unverifiedLink'> {
  if (link !== null && link.length <= messageLimits.link) return { link, unverifiedLink: null }
  return {
    link: null,
    unverifiedLink: event.url && sanitizeLine(event.url, messageLimits.factValue),
  }
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
  /** The sink shows no excerpts, and the event had some (`excerpts: never`). */
  excerptsWithheld?: true
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
  members: readonly Pick<MessageSubject, 'feed' | 'event' | 'excerptsWithheld'>[],
  { isTest, mayBeRepeat, attempt = 1 }: RenderOptions,
): string[] {
  const test = members.every(isCanary)
    ? "TEST: Tocsin's own test event, which shows that messages arrive here; nothing happened."
    : 'TEST: this message was asked for, nothing happened.'
  return [
    isTest === true ? test : null,
    mayBeRepeat === true ? 'May be a repeat: the answer to an earlier attempt was lost.' : null,
    attempt > 1 ? `Attempt ${attempt}.` : null,
    members.some((one) => one.excerptsWithheld) ? 'Excerpt withheld: this sink shows none.' : null,
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
