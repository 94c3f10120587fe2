/**
 * What a digest says about what it could not know, so that an empty one never reads as "all quiet".
 */
import type { Document } from './document.ts'
import { messageLimits, typeLabel } from './message.ts'
import { sanitizeLine } from './sanitize.ts'
import {
  cleanSeverities,
  type DigestFacts,
  formatSeverities,
  type Summary,
  sumCounts,
  type Undelivered,
} from './summary.ts'

type Coverage = Pick<
  Document,
  'alarms' | 'statement' | 'window' | 'feeds' | 'moreFeeds' | 'unlisted' | 'undelivered'
>

type TimeFormatter = (atMs: number) => string
type Feed = DigestFacts['feeds'][number]

const maxFeeds = 40
const maxFeedAlarms = 5

/** The parts of a digest's document. */
export function buildCoverage(
  summary: Summary,
  digest: DigestFacts,
  timeIn: TimeFormatter,
): Coverage {
  const behind = digest.feeds.filter(({ isBehind }) => isBehind)
  const unreadable = digest.feeds.filter(hasUnreadItems)
  const first = [...new Set([...behind, ...unreadable])]
  const feeds = [...first, ...digest.feeds.filter((feed) => !first.includes(feed))]
  const shown = feeds.slice(0, maxFeeds)
  return {
    alarms: [
      ...alarmEach(behind, (feed) => alarmOfBehind(feed, timeIn), 'are behind'),
      ...alarmOfDead(digest),
      ...alarmEach(unreadable, alarmOfUnread, 'showed what cannot be read'),
    ],
    statement: buildStatement(summary, digest, behind.length),
    window: `${timeIn(digest.fromMs)} to ${timeIn(digest.toMs)}`,
    feeds: shown.map((feed) => ({
      feed: feedName(feed),
      text: formatFeed(feed, timeIn),
      isBehind: feed.isBehind || hasUnreadItems(feed),
    })),
    moreFeeds: feeds.length - shown.length,
    unlisted: describeUnlisted(digest),
    undelivered: (digest.undelivered ?? []).map(describeUndelivered),
  }
}

function describeUndelivered(entry: Undelivered): Coverage['undelivered'][number] {
  const { severity, type, uid, account, pageUrl = null } = entry
  const { title = `${typeLabel(type)}: content no longer stored, uid ${uid}` } = entry
  const of = account === undefined ? '' : ` (account ${account})`
  return {
    severity: sanitizeLine(severity, messageLimits.severity),
    title: sanitizeLine(title + of, messageLimits.title),
    link: pageUrl,
  }
}

/** One alarm for each of a few feeds; the list below has all. */
function alarmEach(feeds: readonly Feed[], say: (feed: Feed) => string, what: string): string[] {
  const more = feeds.length - maxFeedAlarms
  return [
    ...feeds.slice(0, maxFeedAlarms).map(say),
    ...(more > 0 ? [`${more} more feeds ${what}; they are listed below.`] : []),
  ]
}

function alarmOfDead({ dead }: DigestFacts): string[] {
  return dead === 0 ? [] : [`${formatEventCount(dead)} could not be delivered to you.`]
}

function alarmOfBehind(feed: Feed, timeIn: TimeFormatter): string {
  const sinceMs = feed.lastCaughtUpMs
  return sinceMs === null
    ? `Feed ${feedName(feed)} is behind: it was never read to its end, so events may be missing here.`
    : `Feed ${feedName(feed)} is behind: events after ${timeIn(sinceMs)} may be missing here.`
}

function alarmOfUnread(feed: Feed): string {
  const { quarantined = 0 } = feed
  const some = `${quarantined === 1 ? '1 item' : `${quarantined} items`} of feed ${feedName(feed)}`
  const whole = `Half or more of what feed ${feedName(feed)} shows cannot be read`
  return feed.isUnreadable === true
    ? `${whole}, so events are missing here.`
    : `${some} could not be read and ${quarantined === 1 ? 'waits' : 'wait'} in the quarantine.`
}

function formatFeed(feed: Feed, timeIn: TimeFormatter): string {
  const { lastCaughtUpMs, quarantined = 0 } = feed
  return [
    lastCaughtUpMs === null
      ? 'not read to its end yet'
      : `read to its end at ${timeIn(lastCaughtUpMs)}`,
    ...(quarantined > 0 ? [`${quarantined} in the quarantine`] : []),
  ].join('; ')
}

/** Whether items could not be read, or the feed cannot be read just now. */
function hasUnreadItems({ quarantined = 0, isUnreadable = false }: Feed): boolean {
  return isUnreadable || quarantined > 0
}

function feedName({ feed }: Feed): string {
  return sanitizeLine(feed, messageLimits.severity)
}

/**
 * Claims quiet only if every feed was read and nothing was held, suppressed or sent another way.
 */
function buildStatement({ total }: Summary, digest: DigestFacts, behind: number): string | null {
  if (total > 0) return null
  const isKnown = digest.feeds.length > 0 && behind === 0
  const { held, suppressed, dead, diverted = 0, alreadySent } = digest
  const hasOtherItems = held + suppressed + dead + diverted + sumCounts(alreadySent) > 0
  if (behind > 0 || digest.feeds.some(hasUnreadItems)) {
    return 'Nothing is listed, which does not mean that nothing happened.'
  }
  if (hasOtherItems) return 'Nothing is left to list; see below for what went another way.'
  return isKnown
    ? 'Nothing new, and every feed was read to its end.'
    : 'Nothing new was collected; no feed said how far it was read.'
}

function describeUnlisted({
  held,
  suppressed,
  dead,
  diverted = 0,
  alreadySent,
}: DigestFacts): string[] {
  return [
    held > 0 ? `${held} held for later` : null,
    suppressed > 0 ? `${suppressed} suppressed by a silence, a mute or another event` : null,
    dead > 0 ? `${dead} could not be delivered` : null,
    diverted > 0 ? `${diverted} went to another sink` : null,
    alreadySent.length > 0
      ? `${formatSeverities(cleanSeverities(alreadySent))} sent at once`
      : null,
  ].filter((text) => text !== null)
}

function formatEventCount(count: number): string {
  return count === 1 ? '1 event' : `${count} events`
}
