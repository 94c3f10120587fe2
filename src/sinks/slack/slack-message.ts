/** What Slack shows of a delivery: Block Kit, text from the feed only where nothing is interpreted. */
import type { IncomingWebhookSendArguments } from '@slack/webhook'
import { cutText } from '../../messages/clean-text.ts'
import type { Message } from '../../messages/message.ts'
import { severityLabel } from '../../messages/severity-counts.ts'
import { factsForPeople } from '../message-facts.ts'
import { mrkdwnText, plainText } from './slack-text.ts'

export type SlackMessage = Pick<
  IncomingWebhookSendArguments,
  'text' | 'blocks' | 'unfurl_links' | 'unfurl_media'
> & { mrkdwn: false }

export type SlackBlock = NonNullable<SlackMessage['blocks']>[number]

/** Block Kit reference: lengths in characters, after escaping. */
export const slackLimits = {
  text: 3000,
  header: 150,
  section: 3000,
  field: 2000,
  fieldsPerSection: 10,
  contextElements: 10,
  blocks: 50,
  url: 3000,
} as const

/** Undocumented: Slack refuses messages whose blocks come to some 13,200 characters as too long. */
export const maxBlocksLength = 12_000

/** What each part may take, in characters. */
interface Allowance {
  value: number
  facts: number
  extract: number
  note: number
  origin: number
}

/** The first under which the blocks keep within `maxBlocksLength`; the last always does. */
const allowances: readonly Allowance[] = [
  { value: 1200, facts: 20, extract: 3000, note: 1000, origin: 1000 },
  { value: 250, facts: 20, extract: 800, note: 200, origin: 600 },
  { value: 60, facts: 10, extract: 200, note: 100, origin: 150 },
]

/** Slack may not fetch what the feed links to, so nothing unfurls; nor format the message's own `text`. */
export const quiet = { mrkdwn: false, unfurl_links: false, unfurl_media: false } as const

export function renderSlack(message: Message, deliveryId: string): SlackMessage {
  const attempts = allowances.map((allowance) => () => blocksOf(message, deliveryId, allowance))
  let blocks: SlackBlock[] = []
  for (const attempt of attempts) {
    blocks = attempt()
    if (JSON.stringify(blocks).length < maxBlocksLength) break
  }
  return { text: mrkdwnText(message.summary, slackLimits.text), blocks, ...quiet }
}

/** Words alone, for a Slack that refused the blocks: better plain than not at all. */
export function renderPlainSlack(message: Message, deliveryId: string): SlackMessage {
  const lines = [
    message.summary,
    ...message.notes,
    message.link ?? '',
    originOf(message, deliveryId),
  ]
  return { text: mrkdwnText(lines.filter(Boolean).join('\n'), slackLimits.text), ...quiet }
}

function blocksOf(message: Message, deliveryId: string, allowance: Allowance): SlackBlock[] {
  const header = `${severityMark(message.severity)} · ${message.title}`
  return [
    { type: 'header', text: plainText(header, slackLimits.header) },
    ...notesBlock(message.notes, allowance),
    ...factBlocks(message, allowance),
    ...extractBlock(message.extract, allowance),
    ...linkBlock(message.link),
    {
      type: 'context',
      elements: [plainText(originOf(message, deliveryId), allowance.origin)],
    },
  ]
}

const squares: Readonly<Record<string, string>> = {
  critical: '🟥',
  high: '🟧',
  medium: '🟨',
  low: '🟦',
  info: '⬜',
}

/** The word says it; the square only helps the eye. An unknown word is as grave as the gravest. */
export function severityMark(severity: string): string {
  const square = Object.hasOwn(squares, severity) ? squares[severity] : squares['critical']
  return `${square} ${severityLabel(severity)}`
}

function notesBlock(notes: readonly string[], { note }: Allowance): SlackBlock[] {
  const shown = notes.slice(0, slackLimits.contextElements)
  if (shown.length === 0) return []
  return [{ type: 'context', elements: shown.map((text) => plainText(text, note)) }]
}

function factBlocks(message: Message, { facts, value }: Allowance): SlackBlock[] {
  const fields = factsForPeople(message)
    .slice(0, facts)
    .map((fact) => plainText(`${fact.label}\n${fact.value}`, value))
  const sections: SlackBlock[] = []
  for (let at = 0; at < fields.length; at += slackLimits.fieldsPerSection) {
    sections.push({ type: 'section', fields: fields.slice(at, at + slackLimits.fieldsPerSection) })
  }
  return sections
}

/** Rich text is built of elements and interprets none of its text, so entities would show as such. */
function extractBlock(extract: Message['extract'], allowance: Allowance): SlackBlock[] {
  if (extract === null || extract.text === '') return []
  const label = { type: 'text', text: extract.label || 'Extract', style: { bold: true } } as const
  const quoted = { type: 'text', text: cutText(extract.text, allowance.extract) } as const
  return [
    {
      type: 'rich_text',
      elements: [
        { type: 'rich_text_section', elements: [label] },
        { type: 'rich_text_preformatted', elements: [quoted] },
      ],
    },
  ]
}

function linkBlock(link: string | null): SlackBlock[] {
  if (link === null || link.length > slackLimits.url) return []
  const text = { type: 'plain_text', text: 'Open event', emoji: false } as const
  return [{ type: 'actions', elements: [{ type: 'button', text, url: link }] }]
}

/** Where the message came from, for whoever asks Tocsin about it: `explain <uid>`. */
function originOf(message: Message, deliveryId: string): string {
  const routes = message.routes.join(', ') || '-'
  return `delivery ${deliveryId} · uid ${message.uid} · feed ${message.feed} · routes ${routes}`
}
