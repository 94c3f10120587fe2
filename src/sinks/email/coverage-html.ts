/** The lower half of a summary's HTML part: counts, and what a digest covers. */
import type { Coverage } from '../../messages/coverage.ts'
import { severityLabel } from '../../messages/severity-counts.ts'
import type { SummaryMessage } from '../../messages/summary-message.ts'
import { escapeHtml } from './escape-html.ts'
import { chipStyle, wrap } from './mail-style.ts'
import { tableStart } from './severity-bars.ts'

export function heading(text: string): string {
  return `<h2 style="margin:22px 0 8px;font-size:15px;line-height:1.3">${escapeHtml(text)}</h2>\n`
}

export function renderCounts(counts: SummaryMessage['counts']): string {
  return counts
    .map(({ label, entries }) => {
      const rows = entries.map(
        ({ name, count }) =>
          `<tr><td width="48" align="right" valign="top" style="padding:2px 10px 2px 0;font-size:14px;font-weight:bold">${count}</td><td valign="top" style="padding:2px 0;font-size:14px;${wrap}">${escapeHtml(name)}</td></tr>`,
      )
      return `${heading(label)}${tableStart}\n${rows.join('\n')}\n</table>\n`
    })
    .join('')
}

export function renderCoverage(coverage: Coverage): string {
  return [
    coverage.left.length === 0 ? '' : `${heading('Not listed above')}${list(coverage.left)}`,
    renderFeeds(coverage),
  ].join('')
}

/** Before what is new: these are the worst of the window. */
export function renderAlreadySent({ alreadySent, moreAlreadySent }: Coverage): string {
  if (alreadySent.length === 0) return ''
  const lines = alreadySent.map(({ severity, title, link, time }) => {
    const chip = `<span style="${chipStyle(severity)};font-size:11px">&nbsp;${escapeHtml(severityLabel(severity))}&nbsp;</span>`
    const open =
      link === null ? '' : ` &middot; <a href="${escapeHtml(link)}" style="color:inherit">Open</a>`
    return `<p style="margin:0 0 6px;font-size:14px;${wrap}">${chip} ${escapeHtml(title)}, sent ${escapeHtml(time)}${open}</p>\n`
  })
  return `${heading('Already sent')}${lines.join('')}${list(moreLine(moreAlreadySent))}`
}

function renderFeeds({ feeds, moreFeeds }: Coverage): string {
  if (feeds.length === 0) return ''
  const rows = feeds.map(({ feed, text, isBehind }) => {
    const mark = isBehind
      ? `<span style="${chipStyle('critical')};font-size:11px">&nbsp;BEHIND&nbsp;</span> `
      : ''
    return `<p style="margin:0 0 4px;font-size:14px;${wrap}">${mark}<b>${escapeHtml(feed)}</b> ${escapeHtml(text)}</p>\n`
  })
  return `${heading('How far the feeds were read')}${rows.join('')}${list(moreLine(moreFeeds))}`
}

function moreLine(more: number): string[] {
  return more > 0 ? [`and ${more} more`] : []
}

function list(lines: readonly string[]): string {
  return lines
    .map((line) => `<p style="margin:0 0 4px;font-size:14px;${wrap}">${escapeHtml(line)}</p>\n`)
    .join('')
}
