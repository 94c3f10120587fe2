/**
 * A message to people as parts, before any sink's syntax. Every string is sanitized by `message.ts`.
 * A sink's serializer writes the parts in its syntax; `fit` alone decides what a size leaves out.
 */
import type { Severity } from '../event.ts'
import type { Fact } from './types/description.ts'
import type { MessageGuidance } from './guidance.ts'
import { cutText, isolate } from './sanitize.ts'
import { formatSeverities, type NameCount, type SeverityCount, sumCounts } from './summary.ts'

export interface Document {
  /** The highest severity; null if there is no event. */
  severity: Severity | null
  /** The first line in chats. */
  headline: string
  /** The heading of mails; of several events with their counts. */
  title: string
  /** The line of a notification; of several events it is the mail's subject, too. */
  notification: string
  subject: string
  /** The type of the one event: "Stealer log"; null: the message is about several. */
  typeLabel: string | null
  /** What must be seen first: feeds that are behind, events that the reader does not get. */
  alarms: string[]
  /** What the reader must know about this message itself. */
  notes: string[]
  /** Lines of a sink's own template, instead of facts and extract. */
  body: readonly string[]
  /** If a digest lists nothing, what that means. */
  statement: string | null
  /** Of a digest: "2026-11-20 16:00 to 2026-11-21 08:00". */
  window: string | null
  /** At most five that tell this alert from the next one, and the account if there are several. */
  facts: Fact[]
  /** The other facts, tags, times and where it came from: for mails. */
  details: Fact[]
  /** Times, feed and source in one line: for chats. */
  context: string
  /** One short quotation of what the feed found. */
  extract: { label: string; text: string } | null
  guidance: MessageGuidance
  /** The event in the upstream web application. */
  link: string | null
  /** Tocsin's own page of the event, or of the message; null: no page is known. */
  pageUrl: string | null
  /** Of one event: who gets it too, and how often its login or host was seen before. */
  related: Fact[]
  /** Events of a digest's window that could not be delivered: the worst of them. */
  undelivered: { severity: Severity; title: string; link: string | null }[]
  bySeverity: SeverityCount[]
  /** The events, as many as are shown, and what is said of the others. */
  lines: DocumentLine[]
  more: string | null
  /** By type, feed and identifier; only those that have more than one entry. */
  counts: { label: string; entries: NameCount[] }[]
  /** Digests only: one entry per day, oldest first. */
  days: { label: string; total: number; bySeverity: SeverityCount[] }[]
  /** "4 held", "2 suppressed": events of a digest's window that its messages do not list. */
  unlisted: string[]
  /** How far a digest's feeds were read: those that are behind come first. */
  feeds: { feed: string; text: string; isBehind: boolean }[]
  moreFeeds: number
  foot: Foot
}

/** One event of several in one line with its remarks. */
export interface DocumentLine {
  severity: Severity
  /** As of a message of its own: "Stealer log: LummaC2 on DESKTOP-7 (CH)". */
  title: string
  /** "matched VIP": the first matched identifier; null: the title says it, or there is none. */
  identifier: string | null
  feed: string
  /** "matched 2026-11-21 06:59 UTC"; else when it was created, else when it was fetched. */
  time: string
  /** "account acme" in a digest, "raised from medium", "ignored"; null: nothing. */
  remark: string | null
  link: string | null
}

/** By what operators find a message and its events again. */
interface Foot {
  deliveryId: string
  /** Of the one event: what commands take. */
  uid: string | null
  /** Of the one event all, of several the one that decided on the grouping. */
  routes: readonly string[]
  /** Zone of the times. */
  timeZone: string
  /** How many events the message lists or counts: 0 for a message about one. */
  total: number
  /** The file that holds all events; null: there is none. */
  attachment: string | null
}

/** The parts of a document that a message about one event, or about several, does not have. */
export const noParts = {
  alarms: [],
  body: [],
  statement: null,
  window: null,
  facts: [],
  details: [],
  context: '',
  extract: null,
  link: null,
  pageUrl: null,
  related: [],
  undelivered: [],
  bySeverity: [],
  lines: [],
  more: null,
  counts: [],
  days: [],
  unlisted: [],
  feeds: [],
  moreFeeds: 0,
} satisfies Partial<Document>

interface Budget<Rendered> {
  /** In the unit of `measure`. */
  limit: number
  /** Events of several that a reader of this sink looks at. */
  maxLines: number
  render: (document: Document) => Rendered
  measure: (rendered: Rendered) => number
}

/**
 * Renders as much of a document as the limit has room for. First all parts are shortened alike until
 * they leave room for events, then as many events are shown as fit; the others are counted.
 */
export function fit<Rendered>(document: Document, budget: Budget<Rendered>): Rendered {
  const { limit, render, measure } = budget
  const most = Math.min(budget.maxLines, document.lines.length)
  const whole = render(showLines(document, most))
  if (measure(whole) <= limit) return whole
  const room = most === 0 ? limit : limit * frameShare
  let frame = document
  for (const allowance of allowances) {
    if (measure(render(showLines(frame, 0))) <= room) break
    frame = narrow(document, allowance)
  }
  let [shown, tooMany] = [0, most + 1]
  while (tooMany - shown > 1) {
    const tried = Math.floor((shown + tooMany) / 2)
    if (measure(render(showLines(frame, tried))) <= limit) shown = tried
    else tooMany = tried
  }
  return render(showLines(frame, shown))
}

/** What may stand around the events, of the limit. */
const frameShare = 0.6

/** What each part may take: texts in characters, lists in number. */
interface Allowance {
  text: number
  extract: number
  link: number
  names: number
  feeds: number
  days: number
}

/** From mild to strict; the last one always leaves room. */
const allowances: readonly Allowance[] = [
  { text: 250, extract: 500, link: 1000, names: 6, feeds: 10, days: 14 },
  { text: 120, extract: 200, link: 300, names: 5, feeds: 5, days: 7 },
  { text: 60, extract: 120, link: 300, names: 3, feeds: 3, days: 7 },
  { text: 30, extract: 60, link: 300, names: 3, feeds: 3, days: 7 },
]

/** An alarm says what to do about it, and a title what happened: they keep more than other texts. */
const leastAlarm = 100
const leastTitle = 80

/** Names, feeds and events that are left out stay counted. */
function narrow(document: Document, allowed: Allowance): Document {
  const { extract, guidance, feeds, foot } = document
  const cut = (text: string): string => cutText(text, allowed.text)
  const cutFact = (fact: Fact): Fact => ({ ...fact, value: cut(fact.value) })
  return {
    ...document,
    alarms: document.alarms.map((alarm) => cutText(alarm, Math.max(allowed.text, leastAlarm))),
    notes: document.notes.map(cut),
    body: document.body.map(cut),
    facts: document.facts.map(cutFact),
    details: document.details.map(cutFact),
    related: document.related.map(cutFact),
    context: cutText(document.context, 2 * allowed.text),
    extract: extract && { ...extract, text: cutText(extract.text, allowed.extract) },
    guidance: {
      ...guidance,
      texts: guidance.texts.map(({ label, text }) => ({ label, text: cut(text) })),
    },
    undelivered: document.undelivered.map(({ severity, title, link }) => ({
      severity,
      title: cutText(title, Math.max(allowed.text, leastTitle)),
      link: link !== null && link.length > allowed.link ? null : link,
    })),
    counts: document.counts.map(({ label, entries }) => ({
      label,
      entries: narrowCounts(entries, allowed.names).map((entry) => ({
        ...entry,
        name: cut(entry.name),
      })),
    })),
    days: document.days.slice(-allowed.days),
    feeds: feeds.slice(0, allowed.feeds),
    moreFeeds: document.moreFeeds + Math.max(0, feeds.length - allowed.feeds),
    foot: {
      ...foot,
      uid: foot.uid && cutText(foot.uid, 4 * allowed.text),
      routes: foot.routes.slice(0, allowed.names).map(cut),
    },
  }
}

function narrowCounts(entries: readonly NameCount[], max: number): NameCount[] {
  if (entries.length <= max) return [...entries]
  const rest = sumCounts(entries.slice(max - 1))
  return [...entries.slice(0, max - 1), { name: 'other', count: rest }]
}

function showLines(document: Document, shown: number): Document {
  return {
    ...document,
    lines: document.lines.slice(0, shown),
    more: formatRemainder({ ...document.foot, pageUrl: document.pageUrl }, shown),
  }
}

/** "and 12 more: see the attached events.csv", or the link that has all; null if all are shown. */
export function formatRemainder(
  { total, attachment, pageUrl }: Pick<Foot, 'total' | 'attachment'> & Pick<Document, 'pageUrl'>,
  shown: number,
): string | null {
  const left = total - shown
  if (left <= 0) return null
  const page = pageUrl === null ? null : `"${allEvents}" has them`
  const where = attachment === null ? page : `see the attached ${attachment}`
  const count = shown === 0 ? `${left} not listed here` : `and ${left} more`
  if (where !== null) return `${count}: ${where}`
  return shown === 0 ? count : `${count}, not listed here`
}

/** The words of the link to a message's page. */
const allEvents = 'All events in Tocsin'

/** The link to Tocsin's own page of the event, or of the message; null: no page is known. */
export function pageLink({ pageUrl, typeLabel }: Document): { text: string; url: string } | null {
  if (pageUrl === null) return null
  return { text: typeLabel === null ? allEvents : 'Open in Tocsin', url: pageUrl }
}

/** What stands behind an event's title. */
export function lineRemarks({ identifier, remark, time }: DocumentLine): string[] {
  return [identifier, remark, time].filter((part) => part !== null)
}

/** A template's lines; else what several events have in common, or what a digest covers. */
export function chatText({ body, typeLabel, title, statement, window }: Document): string[] {
  if (typeLabel !== null) return [...body]
  if (window === null) return [title]
  return [...(statement === null ? [] : [statement]), `Window: ${window}`]
}

interface LabelledTexts {
  label: string
  texts: string[]
}

/** Counts for sinks that have no tables. */
export function chatCounts({ counts }: Document): LabelledTexts[] {
  return counts.map(({ label, entries }) => ({
    label,
    texts: entries.map(({ name, count }) => `${count} ${isolate(name)}`),
  }))
}

/** Who gets an event too, and what was seen before, a line each. */
export function chatRelated({ related }: Document): string[] {
  return related.map(({ label, value }) => `${label}: ${value}`)
}

/** Days, what is not listed, and feeds, for sinks that have no tables. */
export function chatCoverage(document: Document): LabelledTexts[] {
  const { days, unlisted, feeds, moreFeeds } = document
  const parts = [
    {
      label: 'Days',
      texts: days
        .filter(({ total }) => total > 0)
        .map(({ label, bySeverity }) => `${label}: ${formatSeverities(bySeverity)}`),
    },
    { label: 'Not listed', texts: unlisted },
    {
      label: 'Feeds',
      texts: [
        ...feeds.map(
          ({ feed, text, isBehind }) => `${isBehind ? '⚠️ BEHIND ' : ''}${feed}: ${text}`,
        ),
        ...(moreFeeds > 0 ? [`and ${moreFeeds} more`] : []),
      ],
    },
  ]
  return parts.filter(({ texts }) => texts.length > 0)
}

/** The small line by which operators find a message again. */
export function chatFoot(document: Document): string {
  const { deliveryId, uid, routes, timeZone } = document.foot
  const names = routes.join(', ')
  const parts =
    uid === null
      ? [names === '' ? '' : `route ${names}`, `times are ${timeZone}`]
      : [`uid ${uid}`, `routes ${names || '-'}`]
  return [`delivery ${deliveryId}`, ...parts].filter(Boolean).join(' · ')
}

/** The links that a message opens: the service's, ours and the operator's. */
export function documentLinks(document: Document): { text: string; url: string }[] {
  const { link, guidance } = document
  const page = pageLink(document)
  return [
    ...(link === null ? [] : [{ text: 'Open event', url: link }]),
    ...(page === null ? [] : [page]),
    ...guidance.runbookUrls.map((url) => ({ text: 'Open runbook', url })),
  ]
}
