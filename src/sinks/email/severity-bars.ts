/** Severities as a picture of table cells: no image to load, and the Word engine of Outlook draws it too. */
import type { SummaryMessage } from '../../messages/summary-message.ts'
import {
  severitiesInWords,
  severityInWords,
  type SeverityCount,
} from '../../messages/severity-counts.ts'
import { escapeHtml } from './escape-html.ts'
import { accentOf, chipStyle, faint, wrap } from './mail-style.ts'

type Day = SummaryMessage['days'][number]

export const tableStart =
  '<table role="presentation" width="100%" cellpadding="0" cellspacing="0" border="0" style="border-collapse:collapse">'

/** Each severity with its count, the colour behind white letters. */
export function renderChips(counts: readonly SeverityCount[]): string {
  if (counts.length === 0) return ''
  const style = 'display:inline-block;margin:0 6px 6px 0;font-size:14px;line-height:1.7'
  const chips = counts.map(
    ({ severity, count }) =>
      `<span style="${style};${chipStyle(severity)}">&nbsp;${count} ${escapeHtml(severityInWords(severity))}&nbsp;</span>`,
  )
  return `<p style="margin:0 0 14px;${wrap}">${chips.join(' ')}</p>\n`
}

/** One row a day: its name, a bar as long as the day was busy, the counts in words. */
export function renderDays(days: readonly Day[]): string {
  const busiest = Math.max(...days.map(({ total }) => total), 0)
  if (days.length < 2 || busiest === 0) return ''
  return `${tableStart}\n${days.map((day) => renderDay(day, busiest)).join('\n')}\n</table>\n`
}

function renderDay({ label, total, bySeverity }: Day, busiest: number): string {
  const words = total === 0 ? 'none' : severitiesInWords(bySeverity)
  const bar =
    total === 0
      ? ''
      : renderBar(bySeverity, total, Math.max(1, Math.round((100 * total) / busiest)))
  return [
    `<tr><td width="76" valign="top" style="padding:0 10px 8px 0;font-size:13px;white-space:nowrap">${escapeHtml(label)}</td>`,
    `<td valign="top" style="padding:3px 0 8px">${bar}<div style="font-size:12px;line-height:1.4;${faint};${wrap}">${escapeHtml(words)}</div></td></tr>`,
  ].join('')
}

/** Widths are of the busiest day and, within the bar, of the day's own events; a cell is never without. */
function renderBar(counts: readonly SeverityCount[], total: number, percent: number): string {
  const cells = counts.map(({ severity, count }) => {
    const width = Math.max(1, Math.round((100 * count) / total))
    const colour = accentOf(severity)
    return `<td width="${width}%" height="12" bgcolor="${colour}" style="background-color:${colour};height:12px;font-size:1px;line-height:1px">&nbsp;</td>`
  })
  return `<table role="presentation" width="${percent}%" cellpadding="0" cellspacing="0" border="0" style="width:${percent}%;border-collapse:collapse"><tr>${cells.join('')}</tr></table>`
}
