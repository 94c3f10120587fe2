/** Renders the HTML part of one event: one column for a phone, no images and nothing remote. */
import type { Coverage } from '../../messages/coverage.ts'
import type { Fact } from '../../messages/description.ts'
import { guidanceTexts, type MessageGuidance } from '../../messages/guidance.ts'
import type { Message } from '../../messages/message.ts'
import { cutText } from '../../messages/sanitize.ts'
import {
  formatRemainder,
  type SummaryLine,
  type SummaryMessage,
} from '../../messages/summary-message.ts'
import {
  formatSeverities,
  type SeverityCount,
  formatSeverity,
  severityLabel,
} from '../../messages/summary.ts'
import { arrangeFacts } from '../sink.ts'
import {
  dayHeading,
  hasAlreadySent,
  type MailOrigin,
  originLines,
  summaryOriginLines,
} from './mail-text.ts'

export function renderHtml(message: Message, origin: MailOrigin): string {
  const accent = accentColor(message.severity)
  const { first, rest } = arrangeFacts(message)
  const content = [
    message.notes.map(renderNote).join(''),
    `<p style="margin:0 0 4px;font-size:13px;font-weight:bold;letter-spacing:0.04em">`,
    `<span style="${chipStyle(message.severity)}">${escapeHtml(severityLabel(message.severity))}</span> &middot; ${escapeHtml(message.typeLabel)}</p>`,
    `<h1 dir="auto" style="margin:0 0 16px;font-size:20px;line-height:1.3;${wrap}">${escapeHtml(message.title)}</h1>`,
    renderLink(message.link, accent),
    ...(message.body ?? []).map(renderLineOfBody),
    first.map(renderFact).join(''),
    renderGuidance(message.guidance),
    renderExtract(message.extract),
    `<div style="margin:20px 0 0;padding:12px 0 0;border-top:1px solid ${grey}">\n${rest.map(renderSmallFact).join('')}</div>`,
    `<p style="margin:24px 0 0;font-size:12px;line-height:1.5;${faint};${wrap}">`,
    `${originLines(message, origin).map(escapeHtml).join('<br>')}</p>`,
  ]
  const page = renderAccentBar(content.join('\n'), accent)
  return renderPage({ title: message.summary, lead: leadText(message) }, page)
}

/**
 * What the title leaves out. A leaked secret stays out of it, and so does a template's body, which
 * may hold one: an inbox and a locked phone show this to whoever looks.
 */
function leadText(message: Message): string {
  const { first, rest } = arrangeFacts(message)
  const unsaid = [...first, ...rest].filter(
    ({ kind, value }) => kind !== 'secret' && !message.title.includes(value),
  )
  return [...message.notes, ...unsaid.map(({ label, value }) => `${label}: ${value}`)].join(' · ')
}

/** Puts a bar in the severity's colour along the whole mail. */
function renderAccentBar(content: string, accent: string): string {
  return `<div style="max-width:600px;margin:0 auto;padding:0 0 0 14px;border-left:4px solid ${accent}">
${content}
</div>`
}

function renderNote(note: string): string {
  return `<p style="margin:0 0 12px;padding:8px 12px;font-size:14px;${tint};${wrap}">${escapeHtml(note)}</p>\n`
}

function renderLink(link: string | null, accent: string): string {
  if (link === null) return ''
  const style = `display:inline-block;padding:10px 18px;border-radius:4px;background-color:${accent};color:#ffffff;text-decoration:none;font-weight:bold`
  return `<p style="margin:0 0 20px"><a href="${escapeHtml(link)}" style="${style}">Open event</a></p>`
}

/** Runbooks are the operator's own links. */
function renderGuidance(guidance: MessageGuidance): string {
  const texts = guidanceTexts(guidance).map(
    ({ label, text }) =>
      `<p style="margin:0 0 10px;padding:8px 12px;font-size:15px;${tint};${wrap}"><b>${escapeHtml(label)}:</b> ${escapeHtml(text)}</p>\n`,
  )
  const pages = guidance.runbookUrls.map(
    (url) =>
      `<p style="margin:0 0 10px;font-size:15px;${wrap}"><a href="${escapeHtml(url)}" style="color:inherit">Open runbook</a></p>\n`,
  )
  return [...texts, ...pages].join('')
}

function renderLineOfBody(line: string): string {
  return `<p dir="auto" style="margin:0 0 4px;font-size:16px;${wrap}">${escapeHtml(line)}</p>`
}

function renderFact({ label, value, kind }: Fact): string {
  const font = kind === 'code' || kind === 'secret' ? `${mono};font-size:14px` : 'font-size:16px'
  return [
    `<p style="margin:0;font-size:12px;${faint}">${escapeHtml(label)}</p>`,
    `<p dir="auto" style="margin:0 0 10px;${font};${wrap}">${escapeHtml(value)}</p>\n`,
  ].join('')
}

function renderSmallFact({ label, value }: Fact): string {
  return `<p style="margin:0 0 4px;font-size:13px;${faint};${wrap}">${escapeHtml(label)}: ${quoteHtml(value)}</p>\n`
}

function renderExtract(extract: Message['extract']): string {
  if (extract === null) return ''
  return [
    `<p style="margin:10px 0 4px;font-size:12px;${faint}">${escapeHtml(extract.label)}</p>`,
    `<pre dir="auto" style="margin:0;padding:10px 12px;${tint};${mono};font-size:13px;line-height:1.4;white-space:pre-wrap;${wrap}">${escapeHtml(extract.text)}</pre>`,
  ].join('\n')
}

/** Gmail clips a mail at 102 kB. */
const maxHtmlBytes = 99_000
/** The size of everything around the events above which it is shortened. */
const maxFrameBytes = 60_000

export function renderSummaryHtml(message: SummaryMessage, origin: MailOrigin): string {
  const frameOf = (narrow: SummaryMessage): Frame => renderFrame(narrow, origin)
  let frame = frameOf(message)
  for (const narrowing of narrowings) {
    if (byteLength(frame.before + frame.after) <= maxFrameBytes) break
    frame = frameOf(narrowMessage(message, narrowing))
  }
  const room = maxHtmlBytes - byteLength(frame.before + frame.after) - 2000
  return renderPage(
    { title: message.subject, lead: summaryLeadText(message) },
    limitWidth(`${frame.before}${renderLines(message, room, origin.deliveryId)}${frame.after}`),
  )
}

interface Frame {
  before: string
  after: string
}

/** What is wrong, then what the subject leaves out. */
function summaryLeadText({ alarms, uncounted, coverage, headline, lines }: SummaryMessage): string {
  const titles = lines.map(({ title }) => title).filter((title) => !headline.includes(title))
  const counts = formatSeverities(uncounted)
  return [
    ...alarms.slice(0, 2),
    coverage?.statement ?? '',
    counts === '' ? '' : `also ${counts}`,
    ...[...new Set(titles)].slice(0, 3),
  ]
    .filter(Boolean)
    .join(' · ')
}

function renderFrame(message: SummaryMessage, origin: MailOrigin): Frame {
  const { coverage, days } = message
  const picture = renderDays(days)
  const heading = hasAlreadySent(coverage) ? renderHeading('New events') : ''
  const before = [
    `<h1 style="margin:0 0 10px;font-size:21px;line-height:1.3;${wrap}">${escapeHtml(message.title)}</h1>\n`,
    coverage === null ? '' : renderWindow(coverage.window, message.timeZone),
    message.alarms.map(renderAlarm).join(''),
    message.notes.map(renderNote).join(''),
    coverage?.statement
      ? `<p style="margin:0 0 14px;${wrap}">${escapeHtml(coverage.statement)}</p>\n`
      : '',
    renderAlreadySent(coverage),
    renderChips(message.bySeverity, heading),
    renderGuidance(message.guidance),
    picture === '' ? '' : `${renderHeading(dayHeading(message))}${picture}`,
  ]
  const foot = summaryOriginLines(message, origin).map(escapeHtml).join('<br>')
  const after = [
    renderCounts(message.counts),
    coverage === null ? '' : renderCoverage(coverage),
    `<p style="margin:24px 0 0;font-size:12px;line-height:1.5;${faint};${wrap}">${foot}</p>\n`,
  ]
  return { before: before.join(''), after: after.join('') }
}

function renderWindow(window: string, timeZone: string): string {
  const text = `${escapeHtml(window)} (${escapeHtml(timeZone)})`
  return `<p style="margin:0 0 14px;font-size:14px;${faint};${wrap}">${text}</p>\n`
}

function renderAlarm(alarm: string): string {
  const red = accentColor('critical')
  return [
    `${tableStart}<tr><td style="padding:10px 12px;border-left:5px solid ${red};${tint};font-size:15px;font-weight:bold;${wrap}">`,
    `&#9888; ${escapeHtml(alarm)}</td></tr><tr><td height="10" style="font-size:1px;line-height:10px">&nbsp;</td></tr></table>\n`,
  ].join('')
}

/** Renders lines until `room` bytes are used, then says how many events are not shown. */
function renderLines(message: SummaryMessage, room: number, deliveryId: string): string {
  const rows: string[] = []
  let used = 0
  for (const line of message.lines) {
    const row = renderLine(line)
    used += byteLength(row)
    if (used > room) break
    rows.push(row)
  }
  const more = formatRemainder(message, rows.length, deliveryId)
  if (rows.length === 0 && more === null) return ''
  const table = rows.length === 0 ? '' : `${tableStart}\n${rows.join('')}</table>\n`
  const rest =
    more === null
      ? ''
      : `<p style="margin:10px 0 0;font-size:14px;${faint};${wrap}">${escapeHtml(more)}</p>\n`
  return `${renderHeading('Events')}${table}${rest}`
}

function renderLine(line: SummaryLine): string {
  const { severity, title, identifier, remark, time, feed, link } = line
  const accent = accentColor(severity)
  const margin = [identifier, remark, time, `feed ${feed}`].filter((part) => part !== null)
  const open =
    link === null ? '' : ` &middot; <a href="${escapeHtml(link)}" style="color:inherit">Open</a>`
  const chip = `<span style="${chipStyle(severity)};font-size:11px">&nbsp;${escapeHtml(severityLabel(severity))}&nbsp;</span>`
  return [
    `<tr><td width="4" bgcolor="${accent}" style="width:4px;background-color:${accent};font-size:1px">&nbsp;</td>`,
    `<td style="padding:1px 0 1px 10px"><div style="font-size:15px;line-height:1.4;${wrap}">${chip} ${quoteHtml(title)}</div>`,
    `<div style="font-size:13px;line-height:1.4;${faint};${wrap}">${margin.map(quoteHtml).join(' &middot; ')}${open}</div></td></tr>`,
    '<tr><td colspan="2" height="12" style="font-size:1px;line-height:12px">&nbsp;</td></tr>\n',
  ].join('')
}

/** Outlook ignores max-width, so it gets a table of its own around the others. */
function limitWidth(content: string): string {
  return [
    '<!--[if mso]><table role="presentation" width="600" align="center" cellpadding="0" cellspacing="0" border="0"><tr><td><![endif]-->',
    `<div style="max-width:600px;margin:0 auto">\n${content}</div>`,
    '<!--[if mso]></td></tr></table><![endif]-->',
  ].join('\n')
}

function byteLength(text: string): number {
  return Buffer.byteLength(text)
}

/** Limits on what stands around the events. */
interface Narrowing {
  /** Code points of a name, a note, an alarm. */
  text: number
  names: number
  days: number
  feeds: number
  alreadySent: number
}

/** From mild to strict. */
const narrowings: readonly Narrowing[] = [
  { text: 200, names: 6, days: 31, feeds: 20, alreadySent: 10 },
  { text: 60, names: 5, days: 14, feeds: 10, alreadySent: 5 },
  { text: 30, names: 3, days: 7, feeds: 5, alreadySent: 3 },
]

/**
 * Shortens what stands around the events; feeds and events left out of the coverage stay counted.
 */
function narrowMessage(message: SummaryMessage, to: Narrowing): SummaryMessage {
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

function renderHeading(text: string): string {
  return `<h2 style="margin:22px 0 8px;font-size:15px;line-height:1.3">${escapeHtml(text)}</h2>\n`
}

function renderCounts(counts: SummaryMessage['counts']): string {
  return counts
    .map(({ label, entries }) => {
      const rows = entries.map(
        ({ name, count }) =>
          `<tr><td width="48" align="right" valign="top" style="padding:2px 10px 2px 0;font-size:14px;font-weight:bold">${count}</td><td dir="auto" valign="top" style="padding:2px 0;font-size:14px;${wrap}">${escapeHtml(name)}</td></tr>`,
      )
      return `${renderHeading(label)}${tableStart}\n${rows.join('\n')}\n</table>\n`
    })
    .join('')
}

function renderCoverage(coverage: Coverage): string {
  return [
    coverage.unlisted.length === 0
      ? ''
      : `${renderHeading('Not listed above')}${renderList(coverage.unlisted)}`,
    renderFeeds(coverage),
  ].join('')
}

/** Stands before the new events: these are the worst of the window. */
function renderAlreadySent(coverage: Coverage | null): string {
  if (!hasAlreadySent(coverage)) return ''
  const { alreadySent, moreAlreadySent } = coverage
  const lines = alreadySent.map(({ severity, title, link, sent }) => {
    const chip = `<span style="${chipStyle(severity)};font-size:11px">&nbsp;${escapeHtml(severityLabel(severity))}&nbsp;</span>`
    const open =
      link === null ? '' : ` &middot; <a href="${escapeHtml(link)}" style="color:inherit">Open</a>`
    return `<p style="margin:0 0 6px;font-size:14px;${wrap}">${chip} ${quoteHtml(title)}, sent ${escapeHtml(sent)}${open}</p>\n`
  })
  return `${renderHeading('Already sent')}${lines.join('')}${renderList(moreLine(moreAlreadySent))}`
}

function renderFeeds({ feeds, moreFeeds }: Coverage): string {
  if (feeds.length === 0) return ''
  const rows = feeds.map(({ feed, text, isBehind }) => {
    const mark = isBehind
      ? `<span style="${chipStyle('critical')};font-size:11px">&nbsp;BEHIND&nbsp;</span> `
      : ''
    return `<p style="margin:0 0 4px;font-size:14px;${wrap}">${mark}<b>${escapeHtml(feed)}</b> ${escapeHtml(text)}</p>\n`
  })
  return `${renderHeading('How far the feeds were read')}${rows.join('')}${renderList(moreLine(moreFeeds))}`
}

function moreLine(more: number): string[] {
  return more > 0 ? [`and ${more} more`] : []
}

function renderList(lines: readonly string[]): string {
  return lines
    .map(
      (line) =>
        `<p dir="auto" style="margin:0 0 4px;font-size:14px;${wrap}">${escapeHtml(line)}</p>\n`,
    )
    .join('')
}

type Day = SummaryMessage['days'][number]

const tableStart =
  '<table role="presentation" width="100%" cellpadding="0" cellspacing="0" border="0" style="border-collapse:collapse">'

/** Renders each severity with its count in white on its colour. */
function renderChips(counts: readonly SeverityCount[], heading: string): string {
  if (counts.length === 0) return ''
  const style = 'display:inline-block;margin:0 6px 6px 0;font-size:14px;line-height:1.7'
  const chips = counts.map(
    ({ severity, count }) =>
      `<span style="${style};${chipStyle(severity)}">&nbsp;${count} ${escapeHtml(formatSeverity(severity))}&nbsp;</span>`,
  )
  return `${heading}<p style="margin:0 0 14px;${wrap}">${chips.join(' ')}</p>\n`
}

/**
 * Renders one row per day: its name, a bar relative to the busiest day, and the counts in words.
 * Table cells need no image, and the Word engine of Outlook draws them too.
 */
function renderDays(days: readonly Day[]): string {
  const busiest = Math.max(...days.map(({ total }) => total), 0)
  if (days.length < 2 || busiest === 0) return ''
  return `${tableStart}\n${days.map((day) => renderDay(day, busiest)).join('\n')}\n</table>\n`
}

function renderDay({ label, total, bySeverity }: Day, busiest: number): string {
  const words = total === 0 ? 'none' : formatSeverities(bySeverity)
  const bar =
    total === 0
      ? ''
      : renderBar(bySeverity, total, Math.max(1, Math.round((100 * total) / busiest)))
  return [
    `<tr><td width="76" valign="top" style="padding:0 10px 8px 0;font-size:13px;white-space:nowrap">${escapeHtml(label)}</td>`,
    `<td valign="top" style="padding:3px 0 8px">${bar}<div style="font-size:12px;line-height:1.4;${faint};${wrap}">${escapeHtml(words)}</div></td></tr>`,
  ].join('')
}

/**
 * The bar's width is relative to the busiest day, the cells' widths to the day's own events; every
 * severity present gets a cell.
 */
function renderBar(counts: readonly SeverityCount[], total: number, percent: number): string {
  const cells = counts.map(({ severity, count }) => {
    const width = Math.max(1, Math.round((100 * count) / total))
    const colour = accentColor(severity)
    return `<td width="${width}%" height="12" bgcolor="${colour}" style="background-color:${colour};height:12px;font-size:1px;line-height:1px">&nbsp;</td>`
  })
  return `<table role="presentation" width="${percent}%" cellpadding="0" cellspacing="0" border="0" style="width:${percent}%;border-collapse:collapse"><tr>${cells.join('')}</tr></table>`
}

/** In code points: more than any inbox shows. */
const maxLead = 300

/** Filled: behind a short one an inbox goes on with the page, which may hold a leaked secret. */
function renderLead(lead: string): string {
  const shown = cutText(lead, maxLead)
  const left = maxLead - Array.from(shown).length
  return escapeHtml(shown) + '&nbsp;&zwnj;'.repeat(Math.ceil(left / 2))
}

/** Wraps content into a whole mail. An inbox shows `lead` beside the subject, which is `title`. */
function renderPage({ title, lead }: { title: string; lead: string }, content: string): string {
  return `<!doctype html>
<html lang="en" dir="ltr">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="format-detection" content="telephone=no, date=no, address=no, email=no, url=no">
<meta name="x-apple-disable-message-reformatting">
<meta name="color-scheme" content="light dark">
<meta name="supported-color-schemes" content="light dark">
<title>${escapeHtml(title)}</title>
</head>
<body style="margin:0;padding:16px;${sans};font-size:16px;line-height:1.45">
<div style="display:none;max-height:0;overflow:hidden">${renderLead(lead)}</div>
${content}
</body>
</html>
`
}

/**
 * Inline styles, because mail programs drop others. Text has the reader's own colours, so that a
 * dark mode may invert the page. Every colour here has a contrast of at least 4.5 to white, as text
 * or as background, and of 3 to near black (WCAG 2.2, 1.4.3 and 1.4.11).
 */
const sans = "font-family:-apple-system,'Segoe UI',Roboto,Helvetica,Arial,sans-serif"
const mono = 'font-family:ui-monospace,Menlo,Consolas,monospace'
const grey = '#767676'
/** Fainter on any background: no grey has a contrast of 4.5 to both white and near black. */
const faint = 'opacity:0.75'
const tint = 'background-color:rgba(127,127,127,0.14)'
const wrap = 'overflow-wrap:anywhere;word-break:break-word'

const accents: Readonly<Record<string, string>> = {
  critical: '#c62828',
  high: '#cb3f10',
  medium: '#9a6200',
  low: '#1976d2',
  info: grey,
}

/** An unknown severity is shown like `critical`. */
function accentColor(severity: string): string {
  return (Object.hasOwn(accents, severity) ? accents[severity] : undefined) ?? '#c62828'
}

/** White text on the severity's colour. */
function chipStyle(severity: string): string {
  return `padding:1px 7px;border-radius:4px;font-weight:bold;color:#ffffff;background-color:${accentColor(severity)}`
}

const entities: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

/**
 * Escapes text for HTML, between tags and in quoted attributes. The only way into the HTML part.
 */
export function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => entities[character] ?? '')
}

/** Text of others within a line of ours: its own direction, which ends where it ends. */
function quoteHtml(text: string): string {
  return `<span dir="auto">${escapeHtml(text)}</span>`
}
