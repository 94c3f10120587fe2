import type { Message } from '../../messages/message.ts'
import { severityLabel } from '../../messages/severity-counts.ts'
import { factsForPeople } from '../message-facts.ts'
import { originOf, type MailOrigin } from './mail-origin.ts'

/** The plain part. A quotation stands behind bars, so that none of its lines passes for one of ours. */
export function renderText(message: Message, origin: MailOrigin): string {
  const facts = factsForPeople(message).map(({ label, value }) => `${label}: ${value}`)
  const paragraphs = [
    message.notes.map((note) => `* ${note}`).join('\n'),
    `${severityLabel(message.severity)} ${message.title}`,
    facts.join('\n'),
    quotation(message.extract),
    message.link === null ? '' : `Open event: ${message.link}`,
    `--\n${originOf(message, origin).join('\n')}`,
  ]
  return `${paragraphs.filter((paragraph) => paragraph !== '').join('\n\n')}\n`
}

function quotation(extract: Message['extract']): string {
  if (extract === null) return ''
  const lines = extract.text.split('\n').map((line) => `  | ${line}`)
  return [`${extract.label}:`, ...lines].join('\n')
}
