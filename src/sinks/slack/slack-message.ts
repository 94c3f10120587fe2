/** Writes documents as Slack messages. */
import {
  chatCounts,
  chatCoverage,
  chatFoot,
  chatRelated,
  chatText,
  type Document,
  type DocumentLine,
  documentLinks,
  fit,
  lineRemarks,
} from '../../messages/document.ts'
import type { MessageGuidance } from '../../messages/guidance.ts'
import { closeIsolate, isolate, isolateRoom } from '../../messages/sanitize.ts'
import { severityLabel } from '../../messages/summary.ts'
import type { Delivery } from '../sink.ts'
import { renderDocument } from '../templates/templates.ts'

/** The Slack message of a delivery, and its plain form should Slack refuse the blocks. */
interface SlackPreview {
  inBlocks: SlackMessage
  plainText: SlackMessage
}

/**
 * Throws SinkError `invalid` for several events without a summary. An incoming webhook takes no
 * files.
 */
export function previewSlack(delivery: Delivery, render = renderDocument): SlackPreview {
  const document = render({ ...delivery, attachment: undefined })
  return { inBlocks: renderSlack(document), plainText: renderPlainSlack(document) }
}

/** A Slack message: Block Kit, with text from the feed only where nothing is interpreted. */
export interface SlackMessage {
  text: string
  blocks?: SlackBlock[]
  mrkdwn: false
  unfurl_links: false
  unfurl_media: false
}

/** The part of Block Kit that messages use (Block Kit reference). */
type SlackBlock =
  | { type: 'header'; text: PlainText }
  | { type: 'section'; text: PlainText | { type: 'mrkdwn'; text: string } }
  | { type: 'section'; fields: PlainText[] }
  | { type: 'context'; elements: PlainText[] }
  | { type: 'actions'; elements: { type: 'button'; text: PlainText; url: string }[] }
  | RichBlock

interface RichBlock {
  type: 'rich_text'
  block_id?: string
  elements: (RichText | RichList)[]
}

interface RichText {
  type: 'rich_text_section' | 'rich_text_preformatted'
  elements: RichElement[]
}

interface RichList {
  type: 'rich_text_list'
  style: 'bullet'
  elements: RichText[]
}

type RichElement =
  | { type: 'text'; text: string; style?: { bold: true } }
  | { type: 'link'; url: string; text: string }

/** Block Kit reference: lengths in characters, after escaping. */
export const slackLimits = {
  text: 3000,
  header: 150,
  section: 3000,
  field: 2000,
  contextElements: 10,
  blocks: 50,
  url: 3000,
} as const

/** Undocumented: Slack refuses messages whose blocks come to some 13,200 characters as too long. */
export const maxBlocksLength = 12_000

/** Nobody reads more in a channel. */
const maxLines = 25

/**
 * Slack may not fetch what the feed links to, so nothing unfurls; nor may it format the message's
 * `text`.
 */
const noUnfurling = { mrkdwn: false, unfurl_links: false, unfurl_media: false } as const

function renderSlack(document: Document): SlackMessage {
  const blocks = fit(document, {
    limit: maxBlocksLength - 1,
    maxLines,
    render: buildBlocks,
    measure: (built) => JSON.stringify(built).length,
  })
  const text = [document.notification, ...document.alarms].join('\n')
  return { text: mrkdwnText(text, slackLimits.text), blocks, ...noUnfurling }
}

function buildBlocks(document: Document): SlackBlock[] {
  const { alarms, notes, undelivered, facts, lines, more, guidance, context } = document
  return [
    { type: 'header', text: plainText(headerText(document), slackLimits.header) },
    ...mentionBlock(guidance),
    ...textBlock(alarms.map((alarm) => `⚠️ ${alarm}`)),
    ...contextBlock(notes),
    ...textBlock(chatText(document)),
    ...listBlock(undelivered.map(undeliveredElements), { block_id: 'not_delivered' }),
    ...fieldsBlock(facts.map(({ label, value }) => `${label}\n${value}`)),
    ...contextBlock(chatRelated(document)),
    ...listBlock(lines.map(lineElements)),
    ...contextBlock(more === null ? [] : [more]),
    ...guidanceBlock(guidance),
    ...extractBlock(document),
    ...linkBlock(document),
    ...fieldsBlock(chatCounts(document).map(({ label, texts }) => [label, ...texts].join('\n'))),
    ...chatCoverage(document).flatMap(({ label, texts }) =>
      contextBlock([[label, ...texts].join('\n')]),
    ),
    ...contextBlock(context === '' ? [] : [context]),
    ...contextBlock([chatFoot(document)]),
  ]
}

function headerText({ severity, headline }: Document): string {
  return severity === null ? headline : `${severityMark(severity)} · ${headline}`
}

const squares: Readonly<Record<string, string>> = {
  critical: '🟥',
  high: '🟧',
  medium: '🟨',
  low: '🟦',
  info: '⬜',
}

/**
 * The word carries the meaning, the square only helps the eye. An unknown severity is shown like
 * `critical`.
 */
function severityMark(severity: string): string {
  const square = Object.hasOwn(squares, severity) ? squares[severity] : squares['critical']
  return `${square ?? ''} ${severityLabel(severity)}`
}

function textBlock(lines: readonly string[]): SlackBlock[] {
  if (lines.length === 0) return []
  return [{ type: 'section', text: plainText(lines.join('\n'), slackLimits.section) }]
}

function fieldsBlock(texts: readonly string[]): SlackBlock[] {
  if (texts.length === 0) return []
  return [{ type: 'section', fields: texts.map((text) => plainText(text, slackLimits.field)) }]
}

function contextBlock(texts: readonly string[]): SlackBlock[] {
  const shown = texts.slice(0, slackLimits.contextElements)
  if (shown.length === 0) return []
  return [{ type: 'context', elements: shown.map((text) => plainText(text, slackLimits.field)) }]
}

/**
 * Rich text interprets none of its text, so it is not escaped: entities would be shown as such. A
 * link in it is safe: its words are ours and its address is checked.
 */
function listBlock(rows: RichElement[][], id: { block_id?: string } = {}): SlackBlock[] {
  if (rows.length === 0) return []
  const list: RichList = {
    type: 'rich_text_list',
    style: 'bullet',
    elements: rows.map((elements) => ({ type: 'rich_text_section', elements })),
  }
  return [{ type: 'rich_text', ...id, elements: [list] }]
}

function undeliveredElements({
  severity,
  title,
  link,
}: Document['undelivered'][number]): RichElement[] {
  const text = ` ${isolate(title)} (not delivered) `
  return [boldElement(severityMark(severity)), { type: 'text', text }, ...linkElement(link)]
}

function lineElements(line: DocumentLine): RichElement[] {
  const links = linkElement(line.link)
  const text = ` ${lineText(line)}${links.length === 0 ? '' : ' · '}`
  return [boldElement(severityMark(line.severity)), { type: 'text', text }, ...links]
}

function lineText(line: DocumentLine): string {
  return [line.title, ...lineRemarks(line)].map(isolate).join(' · ')
}

function boldElement(text: string): RichElement {
  return { type: 'text', text, style: { bold: true } }
}

function linkElement(link: string | null): RichElement[] {
  return link === null || link.length > slackLimits.url
    ? []
    : [{ type: 'link', url: link, text: 'open' }]
}

function extractBlock({ extract }: Document): SlackBlock[] {
  if (extract === null || extract.text === '') return []
  const quoted = { type: 'text', text: extract.text } as const
  return [
    {
      type: 'rich_text',
      elements: [
        { type: 'rich_text_section', elements: [boldElement(extract.label)] },
        { type: 'rich_text_preformatted', elements: [quoted] },
      ],
    },
  ]
}

/** The one block that is mrkdwn: it holds ids of the configuration, which its reader checked. */
function mentionBlock(guidance: MessageGuidance): SlackBlock[] {
  const text = formatMentions(guidance)
  return text === '' ? [] : [{ type: 'section', text: { type: 'mrkdwn', text } }]
}

function formatMentions({ mentions }: MessageGuidance): string {
  return mentions.map(formatMention).join(' ')
}

function formatMention(id: string): string {
  if (id === 'here' || id === 'channel') return `<!${id}>`
  return id.startsWith('S') ? `<!subteam^${id}>` : `<@${id}>`
}

function guidanceBlock({ texts }: MessageGuidance): SlackBlock[] {
  if (texts.length === 0) return []
  const elements = texts.flatMap(({ label, text }, at): RichElement[] => [
    boldElement(at === 0 ? label : `\n${label}`),
    { type: 'text', text: `\n${text}` },
  ])
  return [{ type: 'rich_text', elements: [{ type: 'rich_text_section', elements }] }]
}

function linkBlock(document: Document): SlackBlock[] {
  const links = documentLinks(document).filter(({ url }) => url.length <= slackLimits.url)
  if (links.length === 0) return []
  const elements = links.map(({ text, url }) => {
    return { type: 'button', text: { type: 'plain_text', text, emoji: false }, url } as const
  })
  return [{ type: 'actions', elements }]
}

/**
 * What a reader of the blocks sees, as text only, for a Slack that refused them. A locked phone shows it,
 * so its secret facts are left out.
 */
function renderPlainSlack(document: Document): SlackMessage {
  const pings = formatMentions(document.guidance)
  const foot = mrkdwnText(chatFoot(document), slackLimits.text / 3) // its id is there, whatever is cut
  const room = slackLimits.text - pings.length - 1 - foot.length - 1
  const facts = document.facts.filter(({ kind }) => kind !== 'secret')
  const silent = { ...document, facts, guidance: { ...document.guidance, mentions: [] } }
  const plain = fit(silent, {
    limit: room,
    maxLines,
    render: (part) => buildBlocks(part).slice(0, -1).flatMap(blockLines).map(unescape).join('\n'),
    measure: (text) => mrkdwnText(text, Infinity).length,
  })
  // Ids of the configuration ping below the line that a notification shows; nothing else of it may.
  const [first, ...rest] = mrkdwnText(plain, room).split('\n')
  const text = [first, ...(pings === '' ? [] : [pings]), ...rest, foot].join('\n')
  return { text, ...noUnfurling }
}

/** What a reader of the blocks sees, line by line. */
export function slackText({ text, blocks = [] }: SlackMessage): string {
  if (blocks.length === 0) return unescape(text)
  return blocks.map((block) => blockLines(block).map(unescape).join('\n')).join('\n\n')
}

function blockLines(block: SlackBlock): string[] {
  switch (block.type) {
    case 'header':
      return [block.text.text]
    case 'section':
      return 'text' in block
        ? [block.text.text]
        : block.fields.map(({ text }) => text.replace('\n', ': '))
    case 'context':
      return block.elements.map(({ text }) => text)
    case 'actions':
      return block.elements.map(({ text, url }) => `[ ${text.text} ] ${url}`)
    case 'rich_text':
      return block.elements.flatMap(richLines)
  }
}

function richLines(part: RichText | RichList): string[] {
  if (part.type === 'rich_text_list')
    return part.elements.flatMap(richLines).map((one) => `• ${one}`)
  const words = part.elements.map((one) =>
    one.type === 'link' ? `${one.text} ${one.url}` : one.text,
  )
  return [words.join('')]
}

/** Slack decodes the three entities, the ampersand last. */
function unescape(text: string): string {
  return text.replaceAll('&lt;', '<').replaceAll('&gt;', '>').replaceAll('&amp;', '&')
}

/** Text for Slack in which nothing can become a mention, a link or markup, within a length. */
interface PlainText {
  type: 'plain_text'
  text: string
  emoji: false
}

/** A plain_text object: no formatting and no emoji. Slack decodes the three entities in it. */
export function plainText(text: string, maxLength: number): PlainText {
  return { type: 'plain_text', text: escapeWithin(text, maxLength) || '-', emoji: false }
}

/**
 * A link, which can only be ours, or the colon of `:skull:`, but not that of the minutes of a time.
 */
const linkOrEmoji = /https?:\/\/\S+|:(?!\d\d:)(?=[\p{L}\p{N}\p{M}_+'-]+:)/gu

/**
 * Escapes the message's own `text`, which goes with `mrkdwn: false`: Slack formats nothing in it
 * but still expands emoji names. Their colons are bracketed as `defang` does, so that `refang`
 * undoes it.
 */
export function mrkdwnText(text: string, maxLength: number): string {
  const inert = text
    .replaceAll('`', "'")
    .replace(linkOrEmoji, (found) => (found === ':' ? '[:]' : found))
  return escapeWithin(inert, maxLength) || '-'
}

/**
 * Replaces exactly `&`, `<` and `>` by entities (Slack, "Escaping text"). The result has at most
 * `maxLength` characters, cut between code points and never inside an entity.
 */
export function escapeWithin(text: string, maxLength: number): string {
  const whole = escape(text)
  if (whole.length <= maxLength) return whole
  const room = maxLength - isolateRoom(text)
  let kept = ''
  for (const character of text) {
    const escaped = escape(character)
    if (kept.length + escaped.length >= room) break
    kept += escaped
  }
  return `${closeIsolate(kept)}…`
}

function escape(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
}
