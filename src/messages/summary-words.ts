/** The sentences that head a message about several events, still raw. */
import { cleanSeverities, severitiesInWords, severityLabels } from './severity-counts.ts'
import type { DigestFacts, Summary } from './summary.ts'
import { typesInSentence, typeLabel } from './type-label.ts'

type TimeIn = (atMs: number) => string

interface Headed {
  summary: Summary
  isTest?: boolean | undefined
}

/** "37 new events: 2 critical, 10 high — stealer logs of feed brand". */
export function titleOf({ summary, isTest }: Headed, timeIn: TimeIn): string {
  const { digest, kind } = summary
  const words = severitiesInWords(cleanSeverities(summary.bySeverity))
  const test = isTest === true ? 'TEST ' : ''
  if (digest !== undefined) return `${test}${digestTitle(summary, digest, timeIn)}`
  const severities = words === '' ? '' : `: ${words}`
  const about = kind === 'backlog' ? '' : likeness(summary)
  return `${test}${opening(summary)}${severities}${about}`
}

/** As the title, but the severities in front where an inbox shows them, and only the gravest two. */
export function subjectOf({ summary, isTest }: Headed, timeIn: TimeIn): string {
  const { digest, kind } = summary
  const test = isTest === true ? 'TEST ' : ''
  if (digest !== undefined) return `${test}${digestSubject(summary, digest, timeIn)}`
  const tag = severityLabels(cleanSeverities(summary.bySeverity), 2)
  const about = kind === 'backlog' ? '' : likeness(summary)
  return `${tag === '' ? '' : `[${tag}] `}${test}${opening(summary)}${about}`
}

/** Why these events come together, where the title does not say it. */
export function kindNote(summary: Summary, timeIn: TimeIn): string[] {
  const { kind, digest, byFeed, undelivered } = summary
  if (undelivered !== undefined) return [undeliveredNote(undelivered)]
  if (kind === 'backlog') {
    const of = byFeed.length === 1 ? ` of feed ${byFeed[0]?.name}` : ''
    const found = 'by a first poll, or by reading again (late arrivals, a changed filter, a rewind)'
    return [`Backlog${of}: found ${found}. What is new comes on its own.`]
  }
  if (kind === 'held') return ['Held during quiet hours, which are over.']
  if (kind === 'storm') return ['Too many to be told one by one, so they come together.']
  return digest?.isLate === true
    ? [`Late: this digest was due at ${timeIn(digest.dueAtMs)} and was sent afterwards.`]
    : []
}

function undeliveredNote({ sink, sinceMs }: NonNullable<Summary['undelivered']>): string {
  // whole seconds, and none too late
  const since = `${new Date(sinceMs).toISOString().slice(0, 19)}Z`
  return `Sink ${sink} cannot be reached, and this is its fallback. Nothing of this goes there by itself; once it takes messages again, this sends it there: tocsin deliveries resend --sink ${sink} --diverted --since ${since}`
}

function opening({ kind, total, byFeed, undelivered }: Summary): string {
  const events = total === 1 ? 'event' : 'events'
  if (undelivered !== undefined) {
    return `${total} ${events} could not be delivered to ${undelivered.sink}`
  }
  switch (kind) {
    case 'group':
    case 'digest':
      return `${total} new ${events}`
    case 'backlog':
      return `Backlog${byFeed.length === 1 ? ` of feed ${byFeed[0]?.name}` : ''}: ${total} ${events}`
    case 'held':
      return `${total} held ${events}`
    case 'storm':
      return `${total} ${events} at once`
  }
}

/** " — stealer logs of feed brand (team blue)": what all of them have in common. */
function likeness({ total, byType, byFeed, labels }: Summary): string {
  const [type, ...types] = byType
  const [feed, ...feeds] = byFeed
  const others = Object.entries(labels).filter(([name]) => name !== 'type' && name !== 'feed')
  const parts = [
    type !== undefined && types.length === 0 ? typeInSentence(type.name, total) : '',
    feed !== undefined && feeds.length === 0 ? `of feed ${feed.name}` : '',
    others.length > 0 ? `(${others.map(([name, value]) => `${name} ${value}`).join(', ')})` : '',
  ].filter((part) => part !== '')
  return parts.length === 0 ? '' : ` — ${parts.join(' ')}`
}

function typeInSentence(type: string, total: number): string {
  if (total !== 1) return typesInSentence(type)
  const label = typeLabel(type)
  return `${label.charAt(0).toLowerCase()}${label.slice(1)}`
}

/** With what is wrong: an inbox shows no more, and "nothing new" never stands alone where a feed is behind. */
function digestSubject(summary: Summary, digest: DigestFacts, timeIn: TimeIn): string {
  const behind = digest.feeds.filter(({ isBehind }) => isBehind)
  const [first] = behind
  const { diverted = 0 } = digest
  const troubles = [
    first === undefined ? null : behindInWords(first, behind.length, timeIn),
    unreadInWords(digest),
    digest.dead > 0 ? `${digest.dead} could not be delivered` : null,
    diverted > 0 ? `${diverted} went to another sink` : null,
  ].filter((trouble) => trouble !== null)
  const what = `Digest ${timeIn(digest.dueAtMs)}: ${collected(summary, digest, 2)}`
  if (troubles.length === 0) return what
  return `${what}${summary.total === 0 ? ', but ' : '; '}${troubles.join('; ')}`
}

/** Alarms follow a title that counts events; one that counts none has them in itself. */
function digestTitle(summary: Summary, digest: DigestFacts, timeIn: TimeIn): string {
  if (summary.total === 0) return digestSubject(summary, digest, timeIn)
  return `Digest ${timeIn(digest.dueAtMs)}: ${collected(summary, digest, Infinity)}`
}

/** What went out at once stands first: it is the worst of the window, and no part of the count. */
function collected({ total, bySeverity }: Summary, digest: DigestFacts, max: number): string {
  const sent = alreadySentInWords(digest)
  const events = total === 1 ? 'event' : 'events'
  const words = severitiesInWords(cleanSeverities(bySeverity), max)
  if (sent === null) return total === 0 ? 'nothing new' : `${total} ${events} (${words})`
  return `${sent}, ${total === 0 ? 'nothing else new' : `${total} new ${events} (${words})`}`
}

/** "12 critical already sent", "15 already sent (12 critical, 3 high)"; null where nothing was. */
function alreadySentInWords({
  alreadySentTotal: total,
  alreadySentBySeverity = [],
}: DigestFacts): string | null {
  if (total === 0) return null
  const counts = cleanSeverities(alreadySentBySeverity)
  const words = severitiesInWords(counts, 2)
  if (counts.length === 1) return `${words} already sent`
  return `${total} already sent${words === '' ? '' : ` (${words})`}`
}

/** Counted within the window; a feed that cannot be read at all is named. */
function unreadInWords({ feeds }: DigestFacts): string | null {
  const [first, ...others] = feeds.filter(({ isUnreadable }) => isUnreadable === true)
  if (first !== undefined) {
    return others.length > 0
      ? `${others.length + 1} feeds cannot be read`
      : `feed ${first.feed} cannot be read`
  }
  const items = feeds.reduce((sum, { quarantined }) => sum + (quarantined?.fresh ?? 0), 0)
  return items === 0 ? null : `${items === 1 ? '1 item' : `${items} items`} could not be read`
}

function behindInWords(
  { feed, lastCaughtUpMs }: DigestFacts['feeds'][number],
  count: number,
  timeIn: TimeIn,
): string {
  if (count > 1) return `${count} feeds are behind`
  return lastCaughtUpMs === null
    ? `feed ${feed} was never read to its end`
    : `feed ${feed} is behind since ${timeIn(lastCaughtUpMs)}`
}
