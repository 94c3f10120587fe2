/** The plain part of a mail, and the foot that both parts share. */
import { measureWidth, wrapText } from '../../lib/text-width.ts'
import type { Coverage } from '../../messages/coverage.ts'
import type { Fact } from '../../messages/description.ts'
import { guidanceTexts, type MessageGuidance } from '../../messages/guidance.ts'
import type { Message } from '../../messages/message.ts'
import {
  formatRemainder,
  listCommand,
  type SummaryLine,
  type SummaryMessage,
} from '../../messages/summary-message.ts'
import { formatSeverities, formatSeverity, severityLabel } from '../../messages/summary.ts'
import { arrangeFacts } from '../sink.ts'

/**
 * Renders the plain part of one event. Quoted lines, and those of a template, which may be words of
 * a feed alone, begin with a bar, so that none of them passes for ours.
 */
export function renderText(message: Message, origin: MailOrigin): string {
  const { first, rest } = arrangeFacts(message)
  const factLines = (facts: readonly Fact[]): string =>
    facts.map(({ label, value }) => `${label}: ${value}`).join('\n')
  const paragraphs = [
    message.notes.map((note) => `* ${note}`).join('\n'),
    `${severityLabel(message.severity)} ${message.title}`,
    (message.body ?? []).map((line) => `${quoteMark}${line}`).join('\n'),
    factLines(first),
    renderGuidance(message.guidance),
    renderExtract(message.extract),
    message.link === null ? '' : `Open event: ${message.link}`,
    `${thinLine}\n${factLines(rest)}`,
    `--\n${originLines(message, origin).join('\n')}`,
  ]
  return joinParagraphs(paragraphs)
}

function joinParagraphs(paragraphs: readonly string[]): string {
  const text = paragraphs.filter((paragraph) => paragraph !== '').join('\n\n')
  return `${text.split('\n').flatMap(wrapLine).join('\n')}\n`
}

/** Columns of a line: what a quoted reply leaves of the 80 of a terminal. */
const maxColumns = 78
const quoteMark = '  | '
const commandIndent = '  '

/**
 * Wraps words of Tocsin or of its operator; what is below the first line is indented. A command at
 * the end has a line of its own, which can be copied.
 */
function wrapOwn(text: string): string {
  const [, words = text, command] = /^(.*:) (tocsin .*)$/.exec(text) ?? []
  const lines = wrapText(words, maxColumns, { rest: '  ' })
  return [...lines, ...(command === undefined ? [] : [`${commandIndent}${command}`])].join('\n')
}

/**
 * Wraps what may be words of others: below the first line stands a bar, as before a quoted line, so
 * that none of them passes for ours. Links and uids stay whole, since people click and copy them.
 */
function wrapLine(line: string): string[] {
  if (line.startsWith(uidLabel) || line.startsWith(`${commandIndent}tocsin `)) return [line]
  const [, label, link] = /^([A-Z][a-z ]*:) (https?:\/\/\S+)$/.exec(line) ?? []
  if (label !== undefined && link !== undefined) {
    return measureWidth(line) <= maxColumns ? [line] : [label, link]
  }
  const indent = line.startsWith(quoteMark) ? '' : ' '.repeat(line.length - line.trimStart().length)
  return wrapText(line.slice(indent.length), maxColumns, {
    first: indent,
    rest: `${indent}${quoteMark}`,
    mayBreak: (word) => !/^https?:\/\//.test(word),
  }).map((wrapped) => wrapped.trimEnd())
}

function renderGuidance(guidance: MessageGuidance): string {
  return [
    ...guidanceTexts(guidance).map(({ label, text }) => wrapOwn(`${label}: ${text}`)),
    ...guidance.runbookUrls.map((url) => `Runbook: ${url}`),
  ].join('\n')
}

const thinLine = '-'.repeat(20)

function renderExtract(extract: Message['extract']): string {
  if (extract === null) return ''
  const lines = extract.text.split('\n').map((line) => `${quoteMark}${line}`)
  return [`${extract.label}:`, ...lines].join('\n')
}

/** As much as the HTML part may take: nobody reads more in a mail, and every server accepts it. */
const maxLinesBytes = 60_000
const barWidth = 24

export function renderSummaryText(message: SummaryMessage, origin: MailOrigin): string {
  const { coverage } = message
  const paragraphs = [
    message.title,
    message.alarms.map((alarm) => wrapOwn(`!! ${alarm}`)).join('\n'),
    message.notes.map((note) => wrapOwn(`* ${note}`)).join('\n'),
    [
      wrapOwn(coverage?.statement ?? ''),
      coverage === null ? '' : `Window: ${coverage.window} (${message.timeZone})`,
    ]
      .filter(Boolean)
      .join('\n'),
    renderAlreadySent(coverage),
    renderColumns(
      hasAlreadySent(coverage) ? 'New events' : '',
      message.bySeverity.map(({ severity, count }) => [String(count), formatSeverity(severity)]),
    ),
    renderDays(message),
    renderGuidance(message.guidance),
    renderLines(message, origin.deliveryId),
    ...message.counts.map(({ label, entries }) =>
      renderColumns(
        label,
        entries.map(({ name, count }) => [String(count), name]),
      ),
    ),
    ...renderCoverage(coverage),
    `--\n${summaryOriginLines(message, origin).join('\n')}`,
  ]
  return joinParagraphs(paragraphs)
}

/** Right-aligns the first column, as numbers are read. */
function renderColumns(label: string, rows: [string, string][]): string {
  if (rows.length === 0) return ''
  const width = Math.max(...rows.map(([first]) => first.length))
  const lines = rows.map(([first, second]) => `  ${first.padStart(width)}  ${second}`)
  return [...(label === '' ? [] : [label]), ...lines].join('\n')
}

/** Whether what follows must be told from what was sent before. */
export function hasAlreadySent(coverage: Coverage | null): coverage is Coverage {
  return coverage !== null && coverage.alreadySent.length > 0
}

export function dayHeading({ dayZone }: Pick<SummaryMessage, 'dayZone'>): string {
  return dayZone === null ? 'By day' : `By day (${dayZone})`
}

function renderDays(message: Pick<SummaryMessage, 'days' | 'dayZone'>): string {
  const { days } = message
  const busiest = Math.max(...days.map(({ total }) => total), 0)
  if (days.length < 2 || busiest === 0) return ''
  const label = Math.max(...days.map((day) => day.label.length))
  const count = String(busiest).length
  const rows = days.map((day) => {
    const length = day.total === 0 ? 0 : Math.max(1, Math.round((barWidth * day.total) / busiest))
    const bar = '#'.repeat(length).padEnd(barWidth)
    const words = formatSeverities(day.bySeverity)
    return `  ${day.label.padEnd(label)}  ${String(day.total).padStart(count)}  ${bar}  ${words}`
  })
  return [dayHeading(message), ...rows.map((row) => row.trimEnd())].join('\n')
}

function renderLines(message: SummaryMessage, deliveryId: string): string {
  const shown: string[] = []
  let used = 0
  for (const line of message.lines) {
    const text = renderLine(line)
    used += Buffer.byteLength(text)
    if (used > maxLinesBytes) break
    shown.push(text)
  }
  const more = formatRemainder(message, shown.length, deliveryId)
  if (shown.length === 0 && more === null) return ''
  return ['Events', ...shown, ...(more === null ? [] : [`  ${more}`])].join('\n')
}

function renderLine({
  severity,
  title,
  identifier,
  remark,
  time,
  feed,
  link,
}: SummaryLine): string {
  const margin = [identifier, remark, time, `feed ${feed}`].filter((part) => part !== null)
  const lines = [`  ${severityLabel(severity)}  ${title}`, `      ${margin.join(', ')}`]
  return [...lines, ...(link === null ? [] : [`      ${link}`])].join('\n')
}

/** Stands before the new events: these are the worst of the window. */
function renderAlreadySent(coverage: Coverage | null): string {
  if (!hasAlreadySent(coverage)) return ''
  const { alreadySent, moreAlreadySent } = coverage
  const lines = alreadySent.flatMap(({ severity, title, link, sent }) => [
    `  ${severityLabel(severity)}  ${title}`,
    `      sent ${sent}`,
    ...(link === null ? [] : [`      ${link}`]),
  ])
  return renderList('Already sent', lines, moreAlreadySent)
}

function renderCoverage(coverage: SummaryMessage['coverage']): string[] {
  if (coverage === null) return []
  const { unlisted, feeds, moreFeeds } = coverage
  const width = Math.max(...feeds.map(({ feed }) => feed.length), 0)
  return [
    renderList(
      'Not listed above',
      unlisted.map((text) => `  ${text}`),
      0,
    ),
    renderList(
      'How far the feeds were read',
      feeds.map(
        ({ feed, text, isBehind }) =>
          `  ${feed.padEnd(width)}  ${isBehind ? 'BEHIND, ' : ''}${text}`,
      ),
      moreFeeds,
    ),
  ]
}

function renderList(label: string, lines: readonly string[], more: number): string {
  if (lines.length === 0) return ''
  return [label, ...lines, ...(more > 0 ? [`  and ${more} more`] : [])].join('\n')
}

/** What the foot of a mail says about where it came from. */
export interface MailOrigin {
  sink: string
  deliveryId: string
}

const uidLabel = 'uid: '

/** The foot of a mail about one event, with the uid for `tocsin items show <uid>`. */
export function originLines(message: Message, { sink, deliveryId }: MailOrigin): string[] {
  return [
    `Sent by Tocsin to sink ${sink}, routes: ${message.routes.join(', ') || '-'}`,
    `${uidLabel}${message.uid}`,
    `delivery: ${deliveryId}`,
  ]
}

/** The foot of a mail about several events. */
export function summaryOriginLines(
  message: SummaryMessage,
  { sink, deliveryId }: MailOrigin,
): string[] {
  const { route, timeZone, attachment } = message
  const command = listCommand(message, deliveryId)
  return [
    `Sent by Tocsin to sink ${sink}${route === null ? '' : `, route: ${route}`}`,
    `Times are ${timeZone}. ${attachment === null ? '' : `Attached: ${attachment}`}`.trim(),
    `delivery: ${deliveryId}`,
    ...(command === null ? [] : [`all events: ${command}`]),
  ]
}
