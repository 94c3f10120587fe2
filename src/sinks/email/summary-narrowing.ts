import { cutText } from '../../messages/clean-text.ts'
import type { SummaryMessage } from '../../messages/summary-message.ts'

/** How much is said around the events. */
export interface Narrowing {
  /** Code points of a name, a note, an alarm. */
  text: number
  names: number
  days: number
  feeds: number
  alreadySent: number
}

/** Gentle first. */
export const narrowings: readonly Narrowing[] = [
  { text: 200, names: 6, days: 31, feeds: 20, alreadySent: 10 },
  { text: 60, names: 5, days: 14, feeds: 10, alreadySent: 5 },
  { text: 30, names: 3, days: 7, feeds: 5, alreadySent: 3 },
]

/** The same message with less around its events; what is left out of coverage stays counted. */
export function narrowed(message: SummaryMessage, to: Narrowing): SummaryMessage {
  const { coverage } = message
  return {
    ...message,
    alarms: message.alarms.map((alarm) => cutText(alarm, Math.max(to.text, 150))),
    notes: message.notes.map((note) => cutText(note, Math.max(to.text, 100))),
    counts: message.counts.map(({ label, entries }) => ({
      label,
      entries: entries
        .slice(0, to.names)
        .map(({ name, count }) => ({ name: cutText(name, to.text), count })),
    })),
    days: message.days.slice(-to.days),
    coverage: coverage && {
      ...coverage,
      feeds: coverage.feeds.slice(0, to.feeds),
      moreFeeds: coverage.moreFeeds + Math.max(0, coverage.feeds.length - to.feeds),
      alreadySent: coverage.alreadySent
        .slice(0, to.alreadySent)
        .map((each) => ({ ...each, title: cutText(each.title, Math.max(to.text, 80)) })),
      moreAlreadySent:
        coverage.moreAlreadySent + Math.max(0, coverage.alreadySent.length - to.alreadySent),
    },
  }
}
