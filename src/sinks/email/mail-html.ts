/** Writes documents as the HTML part of a mail: one column for a phone, no images, nothing remote. */
import type { Fact } from '../../messages/types/description.ts'
import {
  type Document,
  type DocumentLine,
  fit,
  lineRemarks,
  pageLink,
} from '../../messages/document.ts'
import { cutText } from '../../messages/sanitize.ts'
import {
  formatSeverities,
  type SeverityCount,
  formatSeverity,
  severityLabel,
} from '../../messages/summary.ts'
import { busiestDay, mailFoot } from './mail-text.ts'

/** Gmail clips a mail at 102 kB. */
const maxHtmlBytes = 99_000

/** `sink`: what the foot names. */
export function renderHtml(document: Document, sink: string): string {
  return fit(document, {
    limit: maxHtmlBytes,
    maxLines: Infinity,
    render: (part) => renderPage(part, buildContent(part, mailFoot(part, sink))),
    measure: (html) => Buffer.byteLength(html),
  })
}

function buildContent(document: Document, foot: readonly string[]): string {
  const { severity, typeLabel, title, window, alarms, notes, statement, unlisted } = document
  const accent = accentColor(severity ?? 'info')
  return [
    typeLabel === null
      ? ''
      : `<p style="margin:0 0 4px;font-size:13px;font-weight:bold;letter-spacing:0.04em">${chip(severity ?? '')} &middot; ${escapeHtml(typeLabel)}</p>\n`,
    `<h1 dir="auto" style="margin:0 0 12px;font-size:20px;line-height:1.3;${wrap}">${escapeHtml(title)}</h1>\n`,
    window === null
      ? ''
      : `${paragraph(`margin:0 0 14px;font-size:14px;${faint}`, escapeHtml(`${window} (${document.foot.timeZone})`))}\n`,
    alarms.map(renderAlarm).join(''),
    notes.map(renderNote).join(''),
    statement === null ? '' : `${paragraph('margin:0 0 14px', escapeHtml(statement))}\n`,
    renderButton(document, accent),
    renderUndelivered(document),
    renderChips(document),
    ...document.body.map((line) => `${ownDirection('margin:0 0 4px;font-size:16px', line)}\n`),
    ...document.facts.map(renderFact),
    ...document.related.map(renderSmallFact),
    renderGuidance(document),
    renderExtract(document),
    renderDays(document),
    renderLines(document),
    document.counts.map(renderCounts).join(''),
    unlisted.length === 0 ? '' : `${renderHeading('Not listed above')}${renderList(unlisted)}`,
    renderFeeds(document),
    renderDetails(document),
    `<p style="margin:24px 0 0;font-size:12px;line-height:1.5;${faint};${wrap}">${renderFoot(document, foot)}</p>\n`,
  ].join('')
}

/**
 * What an inbox shows beside the subject: what is wrong, then what the title leaves out. A leaked secret
 * stays out of it, and so does a template's body, which may hold one: a locked phone shows this to
 * whoever looks.
 */
function leadText(document: Document): string {
  const { alarms, notes, statement, bySeverity, headline, title, facts, details, lines } = document
  const unsaid = [...facts, ...details].filter(
    ({ kind, value }) => kind !== 'secret' && !title.includes(value),
  )
  const titles = lines.map((line) => line.title).filter((one) => !headline.includes(one))
  const counts = bySeverity.length > 1 ? formatSeverities(bySeverity) : ''
  return [
    ...alarms.slice(0, 2),
    statement ?? '',
    counts,
    ...[...new Set(titles)].slice(0, 3),
    ...notes,
    ...unsaid.map(({ label, value }) => `${label}: ${value}`),
  ]
    .filter(Boolean)
    .join(' · ')
}

function paragraph(style: string, html: string): string {
  return `<p style="${style};${wrap}">${html}</p>`
}

/** Text of others on a line of its own. */
function ownDirection(style: string, text: string): string {
  return `<p dir="auto" style="${style};${wrap}">${escapeHtml(text)}</p>`
}

/** A bar in the severity's colour along the mail. Outlook ignores max-width, so it gets a table around it. */
function frame(content: string, accent: string): string {
  return [
    '<!--[if mso]><table role="presentation" width="600" align="center" cellpadding="0" cellspacing="0" border="0"><tr><td><![endif]-->',
    `<div style="max-width:600px;margin:0 auto;padding:0 0 0 14px;border-left:4px solid ${accent}">\n${content}</div>`,
    '<!--[if mso]></td></tr></table><![endif]-->',
  ].join('\n')
}

function renderHeading(text: string): string {
  return `<h2 style="margin:22px 0 8px;font-size:15px;line-height:1.3">${escapeHtml(text)}</h2>\n`
}

function renderNote(note: string): string {
  return `${paragraph(`margin:0 0 12px;padding:8px 12px;font-size:14px;${tint}`, escapeHtml(note))}\n`
}

function renderAlarm(alarm: string): string {
  const red = accentColor('critical')
  return [
    `${tableStart}<tr><td style="padding:10px 12px;border-left:5px solid ${red};${tint};font-size:15px;font-weight:bold;${wrap}">`,
    `&#9888; ${escapeHtml(alarm)}</td></tr><tr><td height="10" style="font-size:1px;line-height:10px">&nbsp;</td></tr></table>\n`,
  ].join('')
}

/** The first link of a message that has one: the service's, else ours. */
function renderButton(document: Document, accent: string): string {
  const { link } = document
  const first = link === null ? pageLink(document) : { text: 'Open event', url: link }
  if (first === null) return ''
  const style = `display:inline-block;padding:10px 18px;border-radius:4px;background-color:${accent};color:#ffffff;text-decoration:none;font-weight:bold`
  return `<p style="margin:0 0 20px"><a href="${escapeHtml(first.url)}" style="${style}">${first.text}</a></p>\n`
}

function renderFoot(document: Document, foot: readonly string[]): string {
  const page = pageLink(document)
  const links = page === null ? [] : [anchor(page.url, page.text)]
  return [...links, ...foot.map(escapeHtml)].join('<br>')
}

/** Runbooks are the operator's own links. */
function renderGuidance({ guidance: { texts, runbookUrls } }: Document): string {
  const style = `margin:0 0 10px;padding:8px 12px;font-size:15px;${tint}`
  return [
    ...texts.map(({ label, text }) =>
      paragraph(style, `<b>${escapeHtml(label)}:</b> ${escapeHtml(text)}`),
    ),
    ...runbookUrls.map((url) =>
      paragraph('margin:0 0 10px;font-size:15px', anchor(url, 'Open runbook')),
    ),
  ]
    .map((html) => `${html}\n`)
    .join('')
}

function anchor(url: string, text: string): string {
  return `<a href="${escapeHtml(url)}" style="color:inherit">${text}</a>`
}

function renderFact({ label, value, kind }: Fact): string {
  const font = kind === 'code' || kind === 'secret' ? `${mono};font-size:14px` : 'font-size:16px'
  return [
    `<p style="margin:0;font-size:12px;${faint}">${escapeHtml(label)}</p>`,
    `${ownDirection(`margin:0 0 10px;${font}`, value)}\n`,
  ].join('')
}

function renderSmallFact({ label, value }: Fact): string {
  const html = `${escapeHtml(label)}: ${quoteHtml(value)}`
  return `${paragraph(`margin:0 0 4px;font-size:13px;${faint}`, html)}\n`
}

function renderDetails({ details }: Document): string {
  if (details.length === 0) return ''
  const style = `margin:20px 0 0;padding:12px 0 0;border-top:1px solid ${grey}`
  return `<div style="${style}">\n${details.map(renderSmallFact).join('')}</div>\n`
}

function renderExtract({ extract }: Document): string {
  if (extract === null) return ''
  return [
    `<p style="margin:10px 0 4px;font-size:12px;${faint}">${escapeHtml(extract.label)}</p>`,
    `<pre dir="auto" style="margin:0;padding:10px 12px;${tint};${mono};font-size:13px;line-height:1.4;white-space:pre-wrap;${wrap}">${escapeHtml(extract.text)}</pre>\n`,
  ].join('\n')
}

function renderLines({ lines, more }: Document): string {
  if (lines.length === 0 && more === null) return ''
  const rows = lines.map(renderLine)
  const table = rows.length === 0 ? '' : `${tableStart}\n${rows.join('')}</table>\n`
  const rest =
    more === null
      ? ''
      : `${paragraph(`margin:10px 0 0;font-size:14px;${faint}`, escapeHtml(more))}\n`
  return `${renderHeading('Events')}${table}${rest}`
}

function renderLine(line: DocumentLine): string {
  const { severity, title, feed, link } = line
  const accent = accentColor(severity)
  const margin = [...lineRemarks(line), `feed ${feed}`].map(quoteHtml).join(' &middot; ')
  return [
    `<tr><td width="4" bgcolor="${accent}" style="width:4px;background-color:${accent};font-size:1px">&nbsp;</td>`,
    `<td style="padding:1px 0 1px 10px"><div style="font-size:15px;line-height:1.4;${wrap}">${chip(severity)} ${quoteHtml(title)}</div>`,
    `<div style="font-size:13px;line-height:1.4;${faint};${wrap}">${margin}${openLink(link)}</div></td></tr>`,
    '<tr><td colspan="2" height="12" style="font-size:1px;line-height:12px">&nbsp;</td></tr>\n',
  ].join('')
}

/** A word in white on its severity's colour. */
function chip(severity: string, word = severityLabel(severity)): string {
  return `<span style="${chipStyle(severity)};font-size:11px">&nbsp;${escapeHtml(word)}&nbsp;</span>`
}

function openLink(link: string | null): string {
  return link === null ? '' : ` &middot; ${anchor(link, 'Open')}`
}

function renderCounts({ label, entries }: Document['counts'][number]): string {
  const rows = entries.map(
    ({ name, count }) =>
      `<tr><td width="48" align="right" valign="top" style="padding:2px 10px 2px 0;font-size:14px;font-weight:bold">${count}</td><td dir="auto" valign="top" style="padding:2px 0;font-size:14px;${wrap}">${escapeHtml(name)}</td></tr>`,
  )
  return `${renderHeading(label)}${tableStart}\n${rows.join('\n')}\n</table>\n`
}

/** The worst of a digest's window: stands before the new events. */
function renderUndelivered({ undelivered }: Document): string {
  if (undelivered.length === 0) return ''
  const lines = undelivered.map(({ severity, title, link }) => {
    const html = `${chip(severity)} ${quoteHtml(title)}${openLink(link)}`
    return `${paragraph('margin:0 0 6px;font-size:14px', html)}\n`
  })
  return `${renderHeading('Not delivered to you')}${lines.join('')}`
}

function renderFeeds({ feeds, moreFeeds }: Document): string {
  if (feeds.length === 0) return ''
  const rows = feeds.map(({ feed, text, isBehind }) => {
    const mark = isBehind ? `${chip('critical', 'BEHIND')} ` : ''
    const html = `${mark}<b>${escapeHtml(feed)}</b> ${escapeHtml(text)}`
    return `${paragraph('margin:0 0 4px;font-size:14px', html)}\n`
  })
  const more = moreFeeds > 0 ? [`and ${moreFeeds} more`] : []
  return `${renderHeading('How far the feeds were read')}${rows.join('')}${renderList(more)}`
}

function renderList(lines: readonly string[]): string {
  return lines.map((line) => `${ownDirection('margin:0 0 4px;font-size:14px', line)}\n`).join('')
}

type Day = Document['days'][number]

const tableStart =
  '<table role="presentation" width="100%" cellpadding="0" cellspacing="0" border="0" style="border-collapse:collapse">'

/** Renders each severity with its count in white on its colour. */
function renderChips({ bySeverity }: Document): string {
  if (bySeverity.length === 0) return ''
  const style = 'display:inline-block;margin:0 6px 6px 0;font-size:14px;line-height:1.7'
  const chips = bySeverity.map(
    ({ severity, count }) =>
      `<span style="${style};${chipStyle(severity)}">&nbsp;${count} ${escapeHtml(formatSeverity(severity))}&nbsp;</span>`,
  )
  return `<p style="margin:0 0 14px;${wrap}">${chips.join(' ')}</p>\n`
}

/**
 * Renders one row per day: its name, a bar relative to the busiest day, and the counts in words.
 * Table cells need no image, and the Word engine of Outlook draws them too.
 */
function renderDays(document: Document): string {
  const busiest = busiestDay(document)
  if (busiest === 0) return ''
  const rows = document.days.map((day) => renderDay(day, busiest))
  return `${renderHeading('By day')}${tableStart}\n${rows.join('\n')}\n</table>\n`
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

function renderPage(document: Document, content: string): string {
  return `<!doctype html>
<html lang="en" dir="ltr">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="format-detection" content="telephone=no, date=no, address=no, email=no, url=no">
<meta name="x-apple-disable-message-reformatting">
<meta name="color-scheme" content="light dark">
<meta name="supported-color-schemes" content="light dark">
<title>${escapeHtml(document.notification)}</title>
</head>
<body style="margin:0;padding:16px;${sans};font-size:16px;line-height:1.45">
<div style="display:none;max-height:0;overflow:hidden">${renderLead(leadText(document))}</div>
${frame(content, accentColor(document.severity ?? 'info'))}
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
