/** Writes documents as the plain part of a mail, and the foot that both parts share. */
import { measureWidth, wrapText } from '../../lib/text-width.ts'
import type { Fact } from '../../messages/types/description.ts'
import {
  type Document,
  type DocumentLine,
  fit,
  lineRemarks,
  pageLink,
} from '../../messages/document.ts'
import { formatSeverities, formatSeverity, severityLabel } from '../../messages/summary.ts'

/** As much as the HTML part may take: nobody reads more in a mail, and every server accepts it. */
const maxTextBytes = 99_000

/** `sink`: what the foot names. */
export function renderText(document: Document, sink: string): string {
  return fit(document, {
    limit: maxTextBytes,
    maxLines: Infinity,
    render: (part) => buildText(part, sink),
    measure: (text) => Buffer.byteLength(text),
  })
}

/**
 * Quoted lines, and those of a template, which may be words of a feed alone, begin with a bar. So
 * none of them passes for ours.
 */
function buildText(document: Document, sink: string): string {
  const { severity, typeLabel, title, alarms, notes, statement, window, link, more } = document
  const { undelivered, bySeverity, lines, counts, unlisted, details, foot } = document
  const isOne = typeLabel !== null
  const noteLines = notes.map((note) => `* ${note}`)
  return joinParagraphs([
    isOne ? noteLines.join('\n') : '',
    isOne ? `${severityLabel(severity ?? '')} ${title}` : title,
    alarms.map((alarm) => wrapOwn(`!! ${alarm}`)).join('\n'),
    isOne ? '' : noteLines.map(wrapOwn).join('\n'),
    document.body.map(quoteLine).join('\n'),
    renderList('', [
      ...(statement === null ? [] : [wrapOwn(statement)]),
      ...(window === null ? [] : [`Window: ${window} (${foot.timeZone})`]),
    ]),
    renderFacts(document.facts),
    renderFacts(document.related),
    renderList('Not delivered to you', undelivered.flatMap(undeliveredLines)),
    renderColumns(
      '',
      bySeverity.map(({ severity: word, count }) => [String(count), formatSeverity(word)]),
    ),
    renderDays(document),
    renderGuidance(document),
    renderExtract(document),
    link === null ? '' : `Open event: ${link}`,
    renderList('Events', [...lines.map(renderLine), ...(more === null ? [] : [`  ${more}`])]),
    ...counts.map(({ label, entries }) =>
      renderColumns(
        label,
        entries.map(({ name, count }) => [String(count), name]),
      ),
    ),
    renderList(
      'Not listed above',
      unlisted.map((text) => `  ${text}`),
    ),
    renderFeeds(document),
    details.length === 0 ? '' : `${thinLine}\n${renderFacts(details)}`,
    `--\n${[...pageLine(document), ...mailFoot(document, sink)].join('\n')}`,
  ])
}

function joinParagraphs(paragraphs: readonly string[]): string {
  const text = paragraphs.filter((paragraph) => paragraph !== '').join('\n\n')
  return `${text.split('\n').flatMap(wrapLine).join('\n')}\n`
}

/** Columns of a line: what a quoted reply leaves of the 80 of a terminal. */
const maxColumns = 78
const quoteMark = '  | '

/** Wraps words of Tocsin or of its operator; what is below the first line is indented. */
function wrapOwn(text: string): string {
  return wrapText(text, maxColumns, { rest: '  ' }).join('\n')
}

/**
 * Wraps what may be words of others. Below the first line stands a bar, as before a quoted line, so
 * that none of them passes for ours. Links and uids stay whole, since people click and copy them.
 */
function wrapLine(line: string): string[] {
  if (line.startsWith(uidLabel)) return [line]
  const [, label, link] = /^([A-Z][A-Za-z ]*:) (https?:\/\/\S+)$/.exec(line) ?? []
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

function renderFacts(facts: readonly Fact[]): string {
  return facts.map(({ label, value }) => `${label}: ${value}`).join('\n')
}

function renderGuidance({ guidance: { texts, runbookUrls } }: Document): string {
  return [
    ...texts.map(({ label, text }) => wrapOwn(`${label}: ${text}`)),
    ...runbookUrls.map((url) => `Runbook: ${url}`),
  ].join('\n')
}

const thinLine = '-'.repeat(20)

function renderExtract({ extract }: Document): string {
  if (extract === null) return ''
  return [`${extract.label}:`, ...extract.text.split('\n').map(quoteLine)].join('\n')
}

function quoteLine(line: string): string {
  return `${quoteMark}${line}`
}

/** Right-aligns the first column, as numbers are read. */
function renderColumns(label: string, rows: [string, string][]): string {
  if (rows.length === 0) return ''
  const width = Math.max(...rows.map(([first]) => first.length))
  const lines = rows.map(([first, second]) => `  ${first.padStart(width)}  ${second}`)
  return [...(label === '' ? [] : [label]), ...lines].join('\n')
}

/** Empty without lines. */
function renderList(label: string, lines: readonly string[]): string {
  if (lines.length === 0) return ''
  return [...(label === '' ? [] : [label]), ...lines].join('\n')
}

/** The events of the busiest day; 0: there is nothing to compare. */
export function busiestDay({ days }: Document): number {
  return days.length < 2 ? 0 : Math.max(...days.map(({ total }) => total))
}

const barWidth = 24

function renderDays(document: Document): string {
  const { days } = document
  const busiest = busiestDay(document)
  if (busiest === 0) return ''
  const label = Math.max(...days.map((day) => day.label.length))
  const count = String(busiest).length
  const rows = days.map((day) => {
    const length = day.total === 0 ? 0 : Math.max(1, Math.round((barWidth * day.total) / busiest))
    const bar = '#'.repeat(length).padEnd(barWidth)
    const words = formatSeverities(day.bySeverity)
    return `  ${day.label.padEnd(label)}  ${String(day.total).padStart(count)}  ${bar}  ${words}`
  })
  return ['By day', ...rows.map((row) => row.trimEnd())].join('\n')
}

function renderLine(line: DocumentLine): string {
  const { severity, title, feed, link } = line
  return [
    `  ${severityLabel(severity)}  ${title}`,
    `      ${[...lineRemarks(line), `feed ${feed}`].join(', ')}`,
    ...(link === null ? [] : [`      ${link}`]),
  ].join('\n')
}

function undeliveredLines({ severity, title, link }: Document['undelivered'][number]): string[] {
  return [`  ${severityLabel(severity)}  ${title}`, ...(link === null ? [] : [`      ${link}`])]
}

function renderFeeds({ feeds, moreFeeds }: Document): string {
  const width = Math.max(...feeds.map(({ feed }) => feed.length), 0)
  return renderList('How far the feeds were read', [
    ...feeds.map(
      ({ feed, text, isBehind }) => `  ${feed.padEnd(width)}  ${isBehind ? 'BEHIND, ' : ''}${text}`,
    ),
    ...(moreFeeds > 0 ? [`  and ${moreFeeds} more`] : []),
  ])
}

const uidLabel = 'uid: '

function pageLine(document: Document): string[] {
  const page = pageLink(document)
  return page === null ? [] : [`${page.text}: ${page.url}`]
}

/** The foot of a mail: by what it is found again. */
export function mailFoot(document: Document, sink: string): string[] {
  const { deliveryId, uid, routes, timeZone, attachment } = document.foot
  const names = routes.join(', ')
  const delivery = `delivery: ${deliveryId}`
  if (uid !== null) {
    const by = `Sent by Tocsin to sink ${sink}, routes: ${names || '-'}`
    return [by, `${uidLabel}${uid}`, delivery]
  }
  return [
    `Sent by Tocsin to sink ${sink}${names === '' ? '' : `, route: ${names}`}`,
    `Times are ${timeZone}. ${attachment === null ? '' : `Attached: ${attachment}`}`.trim(),
    delivery,
  ]
}
