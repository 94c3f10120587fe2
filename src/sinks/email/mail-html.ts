/** The HTML part of one event: one column for a phone, no images and nothing remote. */
import type { Fact } from '../../messages/description.ts'
import type { Message } from '../../messages/message.ts'
import { severityLabel } from '../../messages/severity-counts.ts'
import { factsForPeople } from '../message-facts.ts'
import { escapeHtml } from './escape-html.ts'
import { htmlPage } from './html-page.ts'
import { originOf, type MailOrigin } from './mail-origin.ts'
import { accentOf, grey, mono, tint, wrap } from './mail-style.ts'

export function renderHtml(message: Message, origin: MailOrigin): string {
  const accent = accentOf(message.severity)
  const content = [
    message.notes.map(renderNote).join(''),
    `<p style="margin:0 0 4px;font-size:13px;font-weight:bold;letter-spacing:0.04em;color:${accent}">`,
    `${escapeHtml(severityLabel(message.severity))} &middot; ${escapeHtml(message.typeLabel)}</p>`,
    `<h1 style="margin:0 0 16px;font-size:20px;line-height:1.3;${wrap}">${escapeHtml(message.title)}</h1>`,
    renderLink(message.link, accent),
    factsForPeople(message).map(renderFact).join(''),
    renderExtract(message.extract),
    `<p style="margin:24px 0 0;font-size:12px;line-height:1.5;color:${grey};${wrap}">`,
    `${originOf(message, origin).map(escapeHtml).join('<br>')}</p>`,
  ]
  return htmlPage(message.summary, framed(content.join('\n'), accent))
}

/** A bar in the severity's colour along the whole mail. */
function framed(content: string, accent: string): string {
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

function renderFact({ label, value, kind }: Fact): string {
  const font = kind === 'code' ? `${mono};font-size:14px` : 'font-size:16px'
  return [
    `<p style="margin:0;font-size:12px;color:${grey}">${escapeHtml(label)}</p>`,
    `<p style="margin:0 0 10px;${font};${wrap}">${escapeHtml(value)}</p>\n`,
  ].join('')
}

function renderExtract(extract: Message['extract']): string {
  if (extract === null) return ''
  return [
    `<p style="margin:10px 0 4px;font-size:12px;color:${grey}">${escapeHtml(extract.label)}</p>`,
    `<pre style="margin:0;padding:10px 12px;${tint};${mono};font-size:13px;line-height:1.4;white-space:pre-wrap;${wrap}">${escapeHtml(extract.text)}</pre>`,
  ].join('\n')
}
