/** What a mail says, of one event or of several, and which mails it belongs to. */
import { cutText } from '../../messages/clean-text.ts'
import { renderMessage, type Message } from '../../messages/message.ts'
import { severityLabel } from '../../messages/severity-counts.ts'
import { renderSummary } from '../../messages/summary-message.ts'
import type { Summary } from '../../messages/summary.ts'
import { zonedTime } from '../../messages/zoned-time.ts'
import type { Delivery } from '../sink.ts'
import { soleMember } from '../sole-member.ts'
import { renderHtml } from './mail-html.ts'
import { renderText } from './mail-text.ts'
import { renderSummaryHtml } from './summary-html.ts'
import { renderSummaryText } from './summary-text.ts'

export interface MailContent {
  subject: string
  text: string
  html: string
  /** What the mail is one of: a feed's events, a sink's digests. ASCII, for `List-Id`. */
  list: string
  /** Which mails it stands with: those of its list of one day. ASCII. */
  thread: string
}

const maxSubjectLength = 180

/** Throws SinkError `invalid` for several events without a summary. */
export function mailContent(delivery: Delivery, sink: string): MailContent {
  const origin = { sink, deliveryId: delivery.id }
  const { summary } = delivery
  if (summary === undefined) {
    const message = renderMessage(soleMember(delivery), delivery)
    return {
      subject: cutText(`[${severityLabel(message.severity)}] ${message.title}`, maxSubjectLength),
      text: renderText(message, origin),
      html: renderHtml(message, origin),
      list: message.feed,
      thread: `${message.feed}.${utcDay(eventTime(message))}`,
    }
  }
  const message = renderSummary({ ...delivery, summary })
  const list = listOf(summary, sink)
  return {
    subject: message.subject,
    text: renderSummaryText(message, origin),
    html: renderSummaryHtml(message, origin),
    list,
    thread: `${list}.${summaryDay(summary)}`,
  }
}

function eventTime({ matchedAtMs, createdAtMs, fetchedAtMs }: Message): number {
  return matchedAtMs ?? createdAtMs ?? fetchedAtMs
}

/** The mails of one feed stand together however many events they tell of. */
function listOf({ digest, byFeed }: Summary, sink: string): string {
  const [feed, ...others] = byFeed
  if (digest !== undefined) return `digest.${sink}`
  return (feed === undefined || others.length > 0 ? sink : feed.name).replaceAll(
    /[^A-Za-z0-9_-]+/g,
    '-',
  )
}

function summaryDay({ digest, firstAtMs }: Summary): string {
  return digest === undefined ? utcDay(firstAtMs) : zonedTime(digest.timeZone).day(digest.dueAtMs)
}

function utcDay(atMs: number): string {
  const day = new Date(atMs)
  return Number.isNaN(day.getTime()) ? 'undated' : day.toISOString().slice(0, 10)
}
