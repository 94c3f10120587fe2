/**
 * A message for people about several events, before any sink's dialect. Every string is sanitized
 * as in a Message, except the attached file's name, which is ours. A sink shows as many of the
 * lines as fit and says with `formatRemainder` how many events it did not show.
 */
import { isKnownSeverity, type Severity } from '../event.ts'
import { type Coverage, buildCoverage } from './coverage.ts'
import { formatTime, zonedTime } from './description.ts'
import { type MessageGuidance, noGuidance, uniteGuidance } from './guidance.ts'
import {
  type Message,
  messageLimits,
  type MessageSubject,
  renderMessage,
  type RenderOptions,
  sendingNotes,
  testMark,
  typeLabel,
  pluralizeType,
} from './message.ts'
import { cleanLine, isolate, sanitizeLine } from './sanitize.ts'
import {
  cleanSeverities,
  type NameCount,
  type DigestFacts,
  formatSeverities,
  type SeverityCount,
  formatSeverity,
  severityLabels,
  type Summary,
} from './summary.ts'

export interface SummaryMessage {
  /** The highest severity; null if there is no event. */
  severity: Severity | null
  /**
   * How many and which one is the worst: "37 new events of acme, worst: Stealer log:
   * joe@acme[.]com at sso[.]acme[.]com". A digest has its title.
   */
  headline: string
  /** "37 new events: 2 critical, 10 high — stealer logs of feed brand". */
  title: string
  /** For notifications and subjects: "[2 CRITICAL] " and the headline. */
  subject: string
  total: number
  bySeverity: SeverityCount[]
  /** Those of them that the subject does not count. */
  uncounted: SeverityCount[]
  /** What must be seen first: feeds that are behind, events that the reader does not get. */
  alarms: string[]
  /** What the reader must know about this message itself. */
  notes: string[]
  lines: SummaryLine[]
  /** By type, feed and identifier; only those that have more than one entry. */
  counts: { label: string; entries: NameCount[] }[]
  /** Digests only: one entry per day, oldest first. */
  days: { label: string; total: number; bySeverity: SeverityCount[] }[]
  /** The zone of the days, where it is not that of the times. */
  dayZone: string | null
  coverage: Coverage | null
  /** Zone of the times: the sink's, else the digest's, else `UTC`. */
  timeZone: string
  /** The file that holds all events; null: there is none. */
  attachment: string | null
  route: string | null
  /** What to do, of the events shown; a digest says nothing of it. */
  guidance: MessageGuidance
}

/** One event in one line with its remarks. */
export interface SummaryLine {
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
  members: readonly MessageSubject[]
  summary: Summary
  attachment?: { fileName: string } | undefined
}

export function renderSummary(subject: SummarySubject): SummaryMessage {
  const { summary, members } = subject
  const { digest } = summary
  const timeIn = timeFormatter(summary, subject.timeZone)
  const toLine = (member: MessageSubject): SummaryLine =>
    toSummaryLine(member, { timeIn, namesAccount: digest !== undefined })
  const bySeverity = cleanSeverities(summary.bySeverity)
  const lines = members.slice(0, summaryLimits.lines).map(toLine)
  const headings = buildHeadings(subject, { lines, timeIn })
  const coverage = digest === undefined ? null : buildCoverage(summary, digest, timeIn)
  const notes = [...sendingNotes(members, subject), ...kindNote(summary, timeIn)]
  return {
    severity: bySeverity[0]?.severity ?? null,
    headline: sanitizeLine(headings.headline, summaryLimits.title),
    title: sanitizeLine(headings.title, summaryLimits.title),
    subject: sanitizeLine(headings.subject, summaryLimits.subject),
    total: summary.total,
    bySeverity,
    uncounted: headings.uncounted,
    alarms: coverage?.alarms ?? [],
    notes: notes.map((note) => sanitizeLine(note, summaryLimits.note)),
    lines,
    counts: buildCounts(summary),
    days: (digest?.perDay ?? []).map((day) => ({
      label: sanitizeLine(formatDay(day.day), summaryLimits.name),
      total: day.bySeverity.reduce((sum, { count }) => sum + count, 0),
      bySeverity: cleanSeverities(day.bySeverity),
    })),
    dayZone: findDayZone(subject),
    coverage,
    timeZone: sanitizeLine(subject.timeZone ?? digest?.timeZone ?? 'UTC', summaryLimits.name),
    attachment: attachmentName(subject.attachment),
    route: summary.route === null ? null : sanitizeLine(summary.route, summaryLimits.name),
    guidance: summaryGuidance(subject),
  }
}

/** A digest that was made before its sink's zone changed has the days of the earlier one. */
function findDayZone({ summary: { digest }, timeZone }: SummarySubject): string | null {
  if (digest === undefined || timeZone === undefined || timeZone === digest.timeZone) return null
  return sanitizeLine(digest.timeZone, summaryLimits.name)
}

/** Only what has just happened pings anybody: not a digest, a backlog, or the end of quiet hours. */
function summaryGuidance({ summary, members }: SummarySubject): MessageGuidance {
  const { kind } = summary
  if (kind === 'digest') return noGuidance
  const united = uniteGuidance(members, typeLabel)
  return kind === 'group' || kind === 'storm'
    ? united
    : { ...united, mentions: [], moreMentions: 0 }
}

/**
 * "and 12 more: see the attached events.csv", or the command that lists all; null if all are shown.
 */
export function formatRemainder(
  { total, attachment }: Pick<SummaryMessage, 'total' | 'attachment'>,
  shown: number,
  deliveryId: string,
): string | null {
  const left = total - shown
  if (left <= 0) return null
  const where =
    attachment === null
      ? `"${explainCommand(deliveryId)}" lists all`
      : `see the attached ${attachment}`
  return shown === 0 ? `${left} not listed here: ${where}` : `and ${left} more: ${where}`
}

/** The command that lists a message's events; null for a message of none. */
export function listCommand(
  { total }: Pick<SummaryMessage, 'total'>,
  deliveryId: string,
): string | null {
  return total === 0 ? null : explainCommand(deliveryId)
}

function explainCommand(deliveryId: string): string {
  return `tocsin items show ${deliveryId}`
}

/** What stands around the lines of a summary, as labelled texts for sinks that have no tables. */
export interface SummaryOutline {
  /** The title, which stands below the headline; of a digest its window and why it lists nothing. */
  statement: string[]
  counts: LabelledTexts[]
  /** `more`: how many others were already sent. */
  alreadySent: { events: Coverage['alreadySent']; more: string | null }
  /** Days, what is not listed, feeds; only those of which there is something to say. */
  coverage: LabelledTexts[]
}

interface LabelledTexts {
  label: string
  texts: string[]
}

const outlinedDays = 7

/** `names`: how many of each count and of what was already sent; `feeds`: how many feeds. */
export function outlineSummary(
  message: Pick<SummaryMessage, 'title' | 'counts' | 'coverage' | 'days' | 'dayZone'>,
  { names, feeds }: { names: number; feeds: number },
): SummaryOutline {
  const { counts, coverage } = message
  const sent = coverage?.alreadySent.slice(0, names) ?? []
  const moreSent = (coverage?.alreadySent.length ?? 0) - sent.length
  const more = moreSent + (coverage?.moreAlreadySent ?? 0)
  return {
    statement:
      coverage === null
        ? [message.title]
        : [coverage.statement, `Window: ${coverage.window}`].filter((text) => text !== null),
    counts: counts.map(({ label, entries }) => {
      const shown = entries.slice(0, names).map(({ name, count }) => `${count} ${isolate(name)}`)
      return { label, texts: entries.length > shown.length ? [...shown, '…'] : shown }
    }),
    alreadySent: {
      events: sent,
      more: sent.length > 0 && more > 0 ? `and ${more} more that were already sent` : null,
    },
    coverage: coverage === null ? [] : outlineCoverage(coverage, message, feeds),
  }
}

function outlineCoverage(
  { feeds, moreFeeds, unlisted }: Coverage,
  { days, dayZone }: Pick<SummaryMessage, 'days' | 'dayZone'>,
  maxFeeds: number,
): LabelledTexts[] {
  const shown = feeds.slice(0, maxFeeds)
  const more = feeds.length - shown.length + moreFeeds
  const parts = [
    {
      label: dayZone === null ? 'Days' : `Days (${dayZone})`,
      texts: days
        .filter(({ total }) => total > 0)
        .slice(-outlinedDays)
        .map(({ label, bySeverity }) => `${label}: ${formatSeverities(bySeverity)}`),
    },
    { label: 'Not listed', texts: unlisted },
    {
      label: 'Feeds',
      texts: [
        ...shown.map(
          ({ feed, text, isBehind }) => `${isBehind ? '⚠️ BEHIND ' : ''}${feed}: ${text}`,
        ),
        ...(more > 0 ? [`and ${more} more`] : []),
      ],
    },
  ]
  return parts.filter(({ texts }) => texts.length > 0)
}

/** A digest has the times of its reader's zone, others carry their zone. */
function timeFormatter({ digest }: Summary, timeZone?: string): (atMs: number) => string {
  if (digest === undefined) return (atMs) => formatTime(atMs, timeZone) ?? 'undated'
  return zonedTime(timeZone ?? digest.timeZone).minute
}

function attachmentName(attachment: SummarySubject['attachment']): string | null {
  return attachment === undefined ? null : cleanLine(attachment.fileName, messageLimits.name)
}

interface LineOptions {
  timeIn: TimeFormatter
  /** Only a digest has events of several accounts; the title of others names theirs. */
  namesAccount: boolean
}

function toSummaryLine(member: MessageSubject, { timeIn, namesAccount }: LineOptions): SummaryLine {
  const message = renderMessage(member, { attempt: 1, mayBeRepeat: false })
  const [identifier] = message.identifiers
  const isSaid = identifier === undefined || message.title.includes(identifier)
  return {
    severity: message.severity,
    title: message.title,
    identifier: isSaid ? null : `matched ${identifier}`,
    feed: message.feed,
    time: formatLineTime(message, timeIn),
    remark: formatRemark(member, namesAccount && message.namesAccount ? message.account : null),
    link: message.link,
  }
}

/** In the words of a single message, which shows all three times. */
function formatLineTime(
  {
    matchedAtMs,
    createdAtMs,
    fetchedAtMs,
  }: Pick<Message, 'matchedAtMs' | 'createdAtMs' | 'fetchedAtMs'>,
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

function buildCounts({ byType, byFeed, byIdentifier }: Summary): SummaryMessage['counts'] {
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
  { lines, timeIn }: { lines: readonly SummaryLine[]; timeIn: TimeFormatter },
): Pick<SummaryMessage, 'headline' | 'title' | 'subject' | 'uncounted'> {
  const { digest } = summary
  const bySeverity = cleanSeverities(summary.bySeverity)
  const inSubject = countedInSubject(summary, bySeverity)
  const uncounted = bySeverity.slice(inSubject)
  const test = testMark({ isTest })
  if (digest !== undefined) {
    const title = `${test}${digestTitle(summary, digest, timeIn)}`
    const subject = `${test}${digestSubject(summary, digest, timeIn)}`
    return { headline: title, title, subject, uncounted }
  }
  const headline = `${test}${buildHeadline(summary, members, lines)}`
  const tag = severityLabels(bySeverity.slice(0, inSubject))
  return {
    headline,
    title: `${test}${buildTitle(summary, members)}`,
    subject: tag === '' ? headline : `[${tag}] ${headline}`,
    uncounted,
  }
}

const maxInSubject = 2

/**
 * How many of the highest severities a subject counts. That of a group needs the room for its worst
 * event, but an unknown severity must not hide a critical one.
 */
function countedInSubject({ digest }: Summary, [top]: readonly SeverityCount[]): number {
  return digest === undefined && top !== undefined && isKnownSeverity(top.severity)
    ? 1
    : maxInSubject
}

/** "37 new events: 2 critical, 10 high — stealer logs of feed brand". */
function buildTitle(summary: Summary, members: readonly MessageSubject[]): string {
  const words = formatSeverities(cleanSeverities(summary.bySeverity))
  const severities = words === '' ? '' : `: ${words}`
  return `${formatOpening(summary)}${severities}${describeCommon(summary, members)}`
}

/**
 * The command that lists the others stands at the foot; a notification shows no more than this. What
 * is called the worst has the highest severity of all, unless no event of it is stored any more;
 * what people have closed upstream leads only if all of that severity is.
 */
function buildHeadline(
  summary: Summary,
  members: readonly MessageSubject[],
  lines: readonly SummaryLine[],
): string {
  const [top] = summary.bySeverity
  const isWorst = (_: SummaryLine, at: number): boolean =>
    members[at]?.event.severity === top?.severity
  const isOpen = (_: SummaryLine, at: number): boolean =>
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
  const { kind, digest, byFeed, undelivered } = summary
  if (undelivered !== undefined) return [undeliveredNote(undelivered)]
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

function undeliveredNote({ sink, sinceMs }: NonNullable<Summary['undelivered']>): string {
  // whole seconds, rounded down so that no item is left out
  const since = `${new Date(sinceMs).toISOString().slice(0, 19)}Z`
  return `Sink ${sink} cannot be reached, and this is its fallback. Nothing of this goes there by itself; once it takes messages again, this sends it there: tocsin items resend --sink ${sink} --state diverted --since ${since}`
}

/**
 * `account`: " of acme", which belongs to the events and not to a sink; a first line has no room for a
 * backlog's feed beside it.
 */
function formatOpening({ kind, total, byFeed, undelivered }: Summary, account = ''): string {
  const [feed, ...others] = byFeed
  const noun = total === 1 ? 'event' : 'events'
  const events = `${noun}${account}`
  if (undelivered !== undefined) {
    return `${total} ${events} could not be delivered to ${undelivered.sink}`
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
  const heading = `Digest ${timeIn(digest.dueAtMs)}: ${formatDigestCounts(summary, digest, maxInSubject)}`
  if (troubles.length === 0) return heading
  return `${heading}${summary.total === 0 ? ', but ' : '; '}${troubles.join('; ')}`
}

/** Alarms follow a title that counts events; a title without events includes them. */
function digestTitle(summary: Summary, digest: DigestFacts, timeIn: TimeFormatter): string {
  if (summary.total === 0) return digestSubject(summary, digest, timeIn)
  return `Digest ${timeIn(digest.dueAtMs)}: ${formatDigestCounts(summary, digest, Infinity)}`
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
function formatAlreadySent({
  alreadySentTotal: total,
  alreadySentBySeverity,
}: DigestFacts): string | null {
  if (total === 0) return null
  const counts = cleanSeverities(alreadySentBySeverity)
  const words = formatSeverities(counts, 2)
  if (counts.length === 1) return `${words} already sent`
  return `${total} already sent${words === '' ? '' : ` (${words})`}`
}

/** Counted within the window; a feed that cannot be read at all is named. */
function formatUnread({ feeds }: DigestFacts): string | null {
  const [first, ...others] = feeds.filter(({ isUnreadable }) => isUnreadable === true)
  if (first !== undefined) {
    return others.length > 0
      ? `${others.length + 1} feeds cannot be read`
      : `feed ${first.feed} cannot be read`
  }
  const items = feeds.reduce((sum, { quarantined }) => sum + (quarantined?.fresh ?? 0), 0)
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

/** As `formatOrigin`, of several events; then the command that lists them. */
export function formatSummaryOrigin(message: SummaryMessage, deliveryId: string): string[] {
  const { route, timeZone } = message
  const by = route === null ? '' : ` · route ${route}`
  const command = listCommand(message, deliveryId)
  return [
    `delivery ${deliveryId}${by} · times are ${timeZone}`,
    ...(command === null ? [] : [`all events: ${command}`]),
  ]
}
