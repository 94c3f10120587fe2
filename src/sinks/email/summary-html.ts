/**
 * The HTML part of several events: one column that a phone shows whole, tables where the Word engine
 * of Outlook needs them. As many events as keep the part under what Gmail clips; the rest is counted.
 */
import { moreOf, type SummaryLine, type SummaryMessage } from '../../messages/summary-message.ts'
import { severitiesInWords, severityLabel } from '../../messages/severity-counts.ts'
import { heading, renderAlreadySent, renderCounts, renderCoverage } from './coverage-html.ts'
import { escapeHtml } from './escape-html.ts'
import { htmlPage } from './html-page.ts'
import { summaryOriginOf, type MailOrigin } from './mail-origin.ts'
import { accentOf, chipStyle, faint, tint, wrap } from './mail-style.ts'
import { renderChips, renderDays, tableStart } from './severity-bars.ts'
import { narrowed, narrowings } from './summary-narrowing.ts'

/** Gmail clips a mail at 102 kB. */
const maxHtmlBytes = 99_000
/** What may go around the events before it is said in less. */
const maxFrameBytes = 60_000

export function renderSummaryHtml(message: SummaryMessage, origin: MailOrigin): string {
  const frameOf = (narrow: SummaryMessage): Frame => renderFrame(narrow, origin)
  let frame = frameOf(message)
  for (const narrowing of narrowings) {
    if (bytesOf(frame.before + frame.after) <= maxFrameBytes) break
    frame = frameOf(narrowed(message, narrowing))
  }
  const room = maxHtmlBytes - bytesOf(frame.before + frame.after) - 2000
  return htmlPage(
    leadOf(message),
    widthOf600(`${frame.before}${renderLines(message, room, origin.deliveryId)}${frame.after}`),
  )
}

interface Frame {
  before: string
  after: string
}

/** An inbox shows what is wrong before what is new. */
function leadOf({ alarms, subject, bySeverity }: SummaryMessage): string {
  return [...alarms.slice(0, 2), subject, severitiesInWords(bySeverity)].filter(Boolean).join(' · ')
}

function renderFrame(message: SummaryMessage, origin: MailOrigin): Frame {
  const { coverage, days } = message
  const picture = renderDays(days)
  const before = [
    `<h1 style="margin:0 0 10px;font-size:21px;line-height:1.3;${wrap}">${escapeHtml(message.title)}</h1>\n`,
    coverage === null ? '' : renderWindow(coverage.window, message.timeZone),
    message.alarms.map(renderAlarm).join(''),
    message.notes.map(renderNote).join(''),
    coverage?.statement
      ? `<p style="margin:0 0 14px;${wrap}">${escapeHtml(coverage.statement)}</p>\n`
      : '',
    renderChips(message.bySeverity),
    picture === '' ? '' : `${heading('By day')}${picture}`,
    coverage === null ? '' : renderAlreadySent(coverage),
  ]
  const foot = summaryOriginOf(message, origin).map(escapeHtml).join('<br>')
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
  const red = accentOf('critical')
  return [
    `${tableStart}<tr><td style="padding:10px 12px;border-left:5px solid ${red};${tint};font-size:15px;font-weight:bold;${wrap}">`,
    `&#9888; ${escapeHtml(alarm)}</td></tr><tr><td height="10" style="font-size:1px;line-height:10px">&nbsp;</td></tr></table>\n`,
  ].join('')
}

function renderNote(note: string): string {
  return `<p style="margin:0 0 12px;padding:8px 12px;font-size:14px;${tint};${wrap}">${escapeHtml(note)}</p>\n`
}

/** Lines until `room` bytes are used, then how many events are not shown. */
function renderLines(message: SummaryMessage, room: number, deliveryId: string): string {
  const rows: string[] = []
  let used = 0
  for (const line of message.lines) {
    const row = renderLine(line)
    used += bytesOf(row)
    if (used > room) break
    rows.push(row)
  }
  const more = moreOf(message, rows.length, deliveryId)
  if (rows.length === 0 && more === null) return ''
  const table = rows.length === 0 ? '' : `${tableStart}\n${rows.join('')}</table>\n`
  const rest =
    more === null
      ? ''
      : `<p style="margin:10px 0 0;font-size:14px;${faint};${wrap}">${escapeHtml(more)}</p>\n`
  return `${heading('Events')}${table}${rest}`
}

function renderLine(line: SummaryLine): string {
  const { severity, title, identifier, remark, time, feed, link } = line
  const accent = accentOf(severity)
  const margin = [identifier, remark, time, `feed ${feed}`].filter((part) => part !== null)
  const open =
    link === null ? '' : ` &middot; <a href="${escapeHtml(link)}" style="color:inherit">Open</a>`
  const chip = `<span style="${chipStyle(severity)};font-size:11px">&nbsp;${escapeHtml(severityLabel(severity))}&nbsp;</span>`
  return [
    `<tr><td width="4" bgcolor="${accent}" style="width:4px;background-color:${accent};font-size:1px">&nbsp;</td>`,
    `<td style="padding:1px 0 1px 10px"><div style="font-size:15px;line-height:1.4;${wrap}">${chip} ${escapeHtml(title)}</div>`,
    `<div style="font-size:13px;line-height:1.4;${faint};${wrap}">${margin.map(escapeHtml).join(' &middot; ')}${open}</div></td></tr>`,
    '<tr><td colspan="2" height="12" style="font-size:1px;line-height:12px">&nbsp;</td></tr>\n',
  ].join('')
}

/** Outlook knows no max-width, so it gets a table of its own around the others. */
function widthOf600(content: string): string {
  return [
    '<!--[if mso]><table role="presentation" width="600" align="center" cellpadding="0" cellspacing="0" border="0"><tr><td><![endif]-->',
    `<div style="max-width:600px;margin:0 auto">\n${content}</div>`,
    '<!--[if mso]></td></tr></table><![endif]-->',
  ].join('\n')
}

function bytesOf(text: string): number {
  return Buffer.byteLength(text)
}
