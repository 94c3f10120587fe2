/**
 * A message for people about several events, as parts before any sink's syntax. Every string is
 * sanitized as in a message about one, except the attached file's name, which is ours.
 */
import { isKnownSeverity } from '../event.ts'
import { buildCoverage } from './coverage.ts'
import { formatTime, zonedTime } from './types/description.ts'
import { type Document, type DocumentLine, noParts } from './document.ts'
import { type MessageGuidance, noGuidance, uniteGuidance } from './guidance.ts'
import {
  messageLimits,
  type MessageSubject,
  readWords,
  type RenderOptions,
  sendingNotes,
  testMark,
  typeLabel,
  pluralizeType,
} from './message.ts'
import { cleanLine, sanitizeLine } from './sanitize.ts'
import {
  cleanSeverities,
  type NameCount,
  type DigestFacts,
  formatSeverities,
  type SeverityCount,
  formatSeverity,
  severityLabels,
  sumCounts,
  type Summary,
} from './summary.ts'

/** In code points; `lines` and `entries` in number. */
export const summaryLimits = {
  title: 250,
  subject: 180,
  lines: 200,
  name: 60,
  entries: 11,
  note: messageLimits.note,
} as const

/** What is rendered; a `Delivery` with a summary fits. */
interface SummarySubject extends RenderOptions {
  id: string
  members: readonly MessageSubject[]
  summary: Summary
  attachment?: { fileName: string } | undefined
  /** The message's page; left out: no page is known. */
  pageUrl?: string | undefined
}

export function renderSummary(subject: SummarySubject): Document {
  const { id, summary, members, attachment } = subject
  const { digest, route } = summary
  const timeIn = timeFormatter(summary, subject.timeZone)
  const bySeverity = cleanSeverities(summary.bySeverity)
  const lines = members
    .slice(0, summaryLimits.lines)
    .map((member) => toLine(member, { timeIn, namesAccount: isOfSeveral(digest) }))
  const { headline, title, subject: line } = buildHeadings(subject, { lines, timeIn })
  const notes = [...sendingNotes(members, subject), ...kindNote(summary, timeIn)]
  return {
    ...noParts,
    severity: bySeverity[0]?.severity ?? null,
    headline: sanitizeLine(headline, summaryLimits.title),
    title: sanitizeLine(title, summaryLimits.title),
    notification: sanitizeLine(line, summaryLimits.subject),
    subject: sanitizeLine(line, summaryLimits.subject),
    typeLabel: null,
    bySeverity,
    notes: notes.map((note) => sanitizeLine(note, summaryLimits.note)),
    lines,
    counts: buildCounts(summary),
    days: (digest?.perDay ?? []).map((day) => ({
      label: sanitizeLine(formatDay(day.day), summaryLimits.name),
      total: sumCounts(day.bySeverity),
      bySeverity: cleanSeverities(day.bySeverity),
    })),
    ...(digest && buildCoverage(summary, digest, timeIn)),
    guidance: summaryGuidance(subject),
    pageUrl: subject.pageUrl ?? null,
    foot: {
      deliveryId: id,
      uid: null,
      routes: route === null ? [] : [sanitizeLine(route, summaryLimits.name)],
      timeZone: sanitizeLine(subject.timeZone ?? digest?.timeZone ?? 'UTC', summaryLimits.name),
      total: summary.total,
      attachment: attachment ? cleanLine(attachment.fileName, messageLimits.name) : null,
    },
  }
}

/** A digest of one account names it in its first line. */
function isOfSeveral(digest: DigestFacts | undefined): boolean {
  return digest !== undefined && digest.account === undefined
}

/** Only what has just happened pings anybody: not a digest, a backlog, or the end of quiet hours. */
function summaryGuidance({ summary, members }: SummarySubject): MessageGuidance {
  const { kind } = summary
  if (kind === 'digest') return noGuidance
  const united = uniteGuidance(members, typeLabel)
  return kind === 'group' || kind === 'storm' ? united : { ...united, mentions: [] }
}

/** A digest has the times of its reader's zone, others carry their zone. */
function timeFormatter({ digest }: Summary, timeZone?: string): (atMs: number) => string {
  if (digest === undefined) return (atMs) => formatTime(atMs, timeZone) ?? 'undated'
  return zonedTime(timeZone ?? digest.timeZone).minute
}

interface LineOptions {
  timeIn: TimeFormatter
  /** Only a digest may have events of several accounts; the title of others names theirs. */
  namesAccount: boolean
}

function toLine(member: MessageSubject, { timeIn, namesAccount }: LineOptions): DocumentLine {
  const { event, account } = member
  const { title, link } = readWords(member)
  const clean = (name: string): string => sanitizeLine(name, messageLimits.name)
  const identifier = clean(event.identifiers[0]?.name ?? '')
  return {
    severity: sanitizeLine(event.severity, messageLimits.severity),
    title,
    identifier: title.includes(identifier) ? null : `matched ${identifier}`,
    feed: clean(member.feed),
    time: formatLineTime(member, timeIn),
    remark: formatRemark(member, namesAccount && member.namesAccount ? clean(account) : null),
    link,
  }
}

/** In the words of a single message, which shows all three times. */
function formatLineTime(
  { event: { matchedAtMs, createdAtMs }, fetchedAtMs }: MessageSubject,
  timeIn: (atMs: number) => string,
): string {
  if (matchedAtMs !== null) return `matched ${timeIn(matchedAtMs)}`
  return createdAtMs === null ? `fetched ${timeIn(fetchedAtMs)}` : `created ${timeIn(createdAtMs)}`
}

function formatRemark(
  { event, raisedFrom }: MessageSubject,
  account: string | null,
): string | null {
  const remarks = [
    account === null ? null : `account ${account}`,
    raisedFrom === undefined ? null : `raised from ${formatSeverity(raisedFrom)}`,
    event.ignoredAtMs === null ? null : 'ignored',
    event.remediatedAtMs === null ? null : 'remediated',
  ].filter((remark) => remark !== null)
  return remarks.length === 0 ? null : sanitizeLine(remarks.join(', '), messageLimits.name)
}

function buildCounts({ byType, byFeed, byIdentifier }: Summary): Document['counts'] {
  const toCounts = (
    entries: readonly NameCount[],
    say = (name: string): string => name,
  ): NameCount[] =>
    entries
      .slice(0, summaryLimits.entries)
      .map(({ name, count }) => ({ name: sanitizeLine(say(name), summaryLimits.name), count }))
  return [
    {
      label: 'By type',
      entries: toCounts(byType, (type) => (type === 'other' ? type : typeLabel(type))),
    },
    { label: 'By feed', entries: toCounts(byFeed) },
    { label: 'By what matched', entries: toCounts(byIdentifier) },
  ].filter(({ entries }) => entries.length > 1)
}

type TimeFormatter = (atMs: number) => string

/** The three first lines, still raw. */
function buildHeadings(
  { summary, members, isTest }: SummarySubject,
  { lines, timeIn }: { lines: readonly DocumentLine[]; timeIn: TimeFormatter },
): Pick<Document, 'headline' | 'title' | 'subject'> {
  const { digest } = summary
  const test = testMark({ isTest })
  if (digest !== undefined) {
    const title = `${test}${digestTitle(summary, digest, timeIn)}`
    const subject = `${test}${digestSubject(summary, digest, timeIn)}`
    return { headline: title, title, subject }
  }
  const headline = `${test}${buildHeadline(summary, members, lines)}`
  const tag = severityLabels(leadingSeverities(cleanSeverities(summary.bySeverity)))
  return {
    headline,
    title: `${test}${buildTitle(summary, members)}`,
    subject: tag === '' ? headline : `[${tag}] ${headline}`,
  }
}

/** The subject of a group needs its room for the worst event, but an unknown severity hides no critical one. */
function leadingSeverities(counts: SeverityCount[]): SeverityCount[] {
  const [top] = counts
  return counts.slice(0, top === undefined || isKnownSeverity(top.severity) ? 1 : 2)
}

/** "37 new events: 2 critical, 10 high — stealer logs of feed brand". */
function buildTitle(summary: Summary, members: readonly MessageSubject[]): string {
  const words = formatSeverities(cleanSeverities(summary.bySeverity))
  const severities = words === '' ? '' : `: ${words}`
  return `${formatOpening(summary)}${severities}${describeCommon(summary, members)}`
}

/**
 * A notification shows no more than this. What is called the worst has the highest severity of all,
 * unless no event of it is stored any more. What people have closed upstream leads only if all of
 * that severity is.
 */
function buildHeadline(
  summary: Summary,
  members: readonly MessageSubject[],
  lines: readonly DocumentLine[],
): string {
  const [top] = summary.bySeverity
  const isWorst = (_: DocumentLine, at: number): boolean =>
    members[at]?.event.severity === top?.severity
  const isOpen = (_: DocumentLine, at: number): boolean =>
    members[at]?.event.ignoredAtMs === null && members[at].event.remediatedAtMs === null
  const worst =
    lines.find((line, at) => isWorst(line, at) && isOpen(line, at)) ?? lines.find(isWorst)
  const account = members[0]?.namesAccount === true ? ` of ${members[0].account}` : ''
  const opening = formatOpening(summary, account)
  const shown = worst ?? lines[0]
  if (shown === undefined) return opening
  const lead = worst === undefined ? ', among them: ' : ', worst: '
  return `${opening}${summary.total === 1 ? ': ' : lead}${shown.title}`
}

/** Says why these events share a message, if the title does not. */
function kindNote(summary: Summary, timeIn: TimeFormatter): string[] {
  const { kind, digest, byFeed, divertedFrom: sink } = summary
  if (sink !== undefined) {
    return [
      `Sink ${sink} cannot be reached, and this is its fallback. Nothing of this goes to ${sink} by itself later.`,
    ]
  }
  if (kind === 'backlog') {
    const [feed, ...others] = byFeed
    const of = feed && others.length === 0 ? ` of feed ${feed.name}` : ''
    const howFound =
      'by a first poll, or by reading again (late arrivals, a changed filter, a rewind)'
    return [`Backlog${of}: found ${howFound}. What is new comes on its own.`]
  }
  if (kind === 'held') return ['Held during quiet hours, which are over.']
  if (kind === 'storm') return ['Too many to be told one by one, so they come together.']
  return digest?.isLate === true
    ? [`Late: this digest was due at ${timeIn(digest.dueAtMs)} and was sent afterwards.`]
    : []
}

/**
 * `account`: " of acme", which belongs to the events and not to a sink; a first line has no room for a
 * backlog's feed beside it.
 */
function formatOpening({ kind, total, byFeed, divertedFrom }: Summary, account = ''): string {
  const [feed, ...others] = byFeed
  const noun = total === 1 ? 'event' : 'events'
  const events = `${noun}${account}`
  if (divertedFrom !== undefined) {
    return `${total} ${events} could not be delivered to ${divertedFrom}`
  }
  switch (kind) {
    case 'group':
    case 'digest':
      return `${total} new ${events}`
    case 'backlog':
      return account === '' && feed && others.length === 0
        ? `Backlog of feed ${feed.name}: ${total} ${noun}`
        : `Backlog${account}: ${total} ${noun}`
    case 'held':
      return `${total} held ${events}`
    case 'storm':
      return `${total} ${events} at once`
  }
}

/**
 * " — stealer logs of feed brand (account acme, team blue)": what all of them have in common. The
 * opening of a backlog names its feed.
 */
function describeCommon(
  { kind, total, byType, byFeed, labels }: Summary,
  [member]: readonly MessageSubject[],
): string {
  const account = member?.namesAccount === true ? { account: member.account } : {}
  const isBacklog = kind === 'backlog'
  const names = Object.entries({ ...account, ...(isBacklog ? {} : labels) })
    .filter(([name]) => name !== 'type' && name !== 'feed')
    .map(([name, value]) => `${name} ${value}`)
  const named = names.length === 0 ? '' : `(${names.join(', ')})`
  if (isBacklog) return named === '' ? '' : ` ${named}`
  const [type, ...types] = byType
  const [feed, ...feeds] = byFeed
  const parts = [
    type !== undefined && types.length === 0 ? formatTypeInSentence(type.name, total) : '',
    feed !== undefined && feeds.length === 0 ? `of feed ${feed.name}` : '',
    named,
  ].filter((part) => part !== '')
  return parts.length === 0 ? '' : ` — ${parts.join(' ')}`
}

function formatTypeInSentence(type: string, total: number): string {
  if (total !== 1) return pluralizeType(type)
  const label = typeLabel(type)
  return `${label.charAt(0).toLowerCase()}${label.slice(1)}`
}

/**
 * Includes what is wrong, because an inbox shows no more: "nothing new" never stands alone while a
 * feed is behind.
 */
function digestSubject(summary: Summary, digest: DigestFacts, timeIn: TimeFormatter): string {
  const behind = digest.feeds.filter(({ isBehind }) => isBehind)
  const [first] = behind
  const { diverted = 0 } = digest
  const troubles = [
    first === undefined ? null : formatBehind(first, behind.length, timeIn),
    formatUnread(digest),
    digest.dead > 0 ? `${digest.dead} could not be delivered` : null,
    diverted > 0 ? `${diverted} went to another sink` : null,
  ].filter((trouble) => trouble !== null)
  const heading = `${digestName(digest, timeIn)}: ${formatDigestCounts(summary, digest, 2)}`
  if (troubles.length === 0) return heading
  return `${heading}${summary.total === 0 ? ', but ' : '; '}${troubles.join('; ')}`
}

/** Alarms follow a title that counts events; a title without events includes them. */
function digestTitle(summary: Summary, digest: DigestFacts, timeIn: TimeFormatter): string {
  if (summary.total === 0) return digestSubject(summary, digest, timeIn)
  return `${digestName(digest, timeIn)}: ${formatDigestCounts(summary, digest, Infinity)}`
}

/** "Digest of acme 2026-11-21 08:00". */
function digestName({ account, dueAtMs }: DigestFacts, timeIn: TimeFormatter): string {
  const of = account === undefined ? '' : ` of ${account}`
  return `Digest${of} ${timeIn(dueAtMs)}`
}

/** What was sent at once comes first: it is the worst of the window and not part of the count. */
function formatDigestCounts(
  { total, bySeverity }: Summary,
  digest: DigestFacts,
  max: number,
): string {
  const sent = formatAlreadySent(digest)
  const events = total === 1 ? 'event' : 'events'
  const words = formatSeverities(cleanSeverities(bySeverity), max)
  if (sent === null) return total === 0 ? 'nothing new' : `${total} ${events} (${words})`
  return `${sent}, ${total === 0 ? 'nothing else new' : `${total} new ${events} (${words})`}`
}

/**
 * "12 critical already sent", "15 already sent (12 critical, 3 high)"; null if there was nothing.
 */
function formatAlreadySent({ alreadySent }: DigestFacts): string | null {
  const counts = cleanSeverities(alreadySent)
  if (counts.length === 0) return null
  const words = formatSeverities(counts, 2)
  return counts.length === 1
    ? `${words} already sent`
    : `${sumCounts(counts)} already sent (${words})`
}

/** A feed that cannot be read at all is named. */
function formatUnread({ feeds }: DigestFacts): string | null {
  const [first, ...others] = feeds.filter(({ isUnreadable }) => isUnreadable === true)
  if (first !== undefined) {
    return others.length > 0
      ? `${others.length + 1} feeds cannot be read`
      : `feed ${first.feed} cannot be read`
  }
  const items = feeds.reduce((sum, { quarantined = 0 }) => sum + quarantined, 0)
  return items === 0 ? null : `${items === 1 ? '1 item' : `${items} items`} could not be read`
}

function formatBehind(
  { feed, lastCaughtUpMs }: DigestFacts['feeds'][number],
  count: number,
  timeIn: TimeFormatter,
): string {
  if (count > 1) return `${count} feeds are behind`
  return lastCaughtUpMs === null
    ? `feed ${feed} was never read to its end`
    : `feed ${feed} is behind since ${timeIn(lastCaughtUpMs)}`
}

/** `2026-11-20` → "Fri 20 Nov", independent of the zone; other text as it is. */
function formatDay(day: string): string {
  const atMs = /^\d{4}-\d\d-\d\d$/.test(day) ? Date.parse(`${day}T12:00:00Z`) : Number.NaN
  if (Number.isNaN(atMs)) return day
  const parts = { weekday: 'short', day: 'numeric', month: 'short', timeZone: 'UTC' } as const
  return new Intl.DateTimeFormat('en-GB', parts).format(atMs).replaceAll(',', '')
}
