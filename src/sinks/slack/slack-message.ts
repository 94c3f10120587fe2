/** Renders deliveries as Slack messages. */
import type { IncomingWebhookSendArguments } from '@slack/webhook'
import {
  type Allowance,
  firstFitting,
  formatOrigin,
  type Message,
  messageAllowances,
} from '../../messages/message.ts'
import { guidanceTexts, type MessageGuidance } from '../../messages/guidance.ts'
import { closeIsolate, cutText, isolate, isolateRoom } from '../../messages/sanitize.ts'
import {
  formatRemainder,
  formatSummaryOrigin,
  outlineSummary,
  renderSummary,
  type SummaryLine,
  type SummaryMessage,
  type SummaryOutline,
} from '../../messages/summary-message.ts'
import { severityLabel } from '../../messages/summary.ts'
import { arrangeFacts, type Delivery, formatContext } from '../sink.ts'
import { type RenderEvent, renderEventMessage } from '../templates.ts'

/** The Slack message of a delivery, and its plain form should Slack refuse the blocks. */
interface SlackPreview {
  inBlocks: SlackMessage
  plainText: SlackMessage
}

/**
 * Throws SinkError `invalid` for several events without a summary. An incoming webhook takes no
 * files.
 */
export function previewSlack(
  delivery: Delivery,
  renderEvent: RenderEvent = renderEventMessage,
): SlackPreview {
  const { id, summary } = delivery
  if (summary !== undefined) {
    const message = renderSummary({ ...delivery, summary, attachment: undefined })
    return {
      inBlocks: renderSlackSummary(message, id),
      plainText: renderPlainSlackSummary(message, id),
    }
  }
  const message = renderEvent(delivery)
  return { inBlocks: renderSlack(message, id), plainText: renderPlainSlack(message, id) }
}

/** A Slack message: Block Kit, with text from the feed only where nothing is interpreted. */
export type SlackMessage = Pick<
  IncomingWebhookSendArguments,
  'text' | 'blocks' | 'unfurl_links' | 'unfurl_media'
> & { mrkdwn: false }

type SlackBlock = NonNullable<SlackMessage['blocks']>[number]

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

/**
 * Slack may not fetch what the feed links to, so nothing unfurls; nor may it format the message's
 * `text`.
 */
const noUnfurling = { mrkdwn: false, unfurl_links: false, unfurl_media: false } as const

export function renderSlack(message: Message, deliveryId: string): SlackMessage {
  const blocks = firstFitting(
    messageAllowances,
    (allowance) => buildBlocks(message, deliveryId, allowance),
    (built) => jsonLength(built) < maxBlocksLength,
  )
  return { text: mrkdwnText(message.summary, slackLimits.text), blocks, ...noUnfurling }
}

/** Renders text only, for a Slack that refused the blocks. */
export function renderPlainSlack(message: Message, deliveryId: string): SlackMessage {
  const lines = [
    message.summary,
    ...message.notes,
    ...(message.body ?? []),
    message.link ?? '',
    ...guidanceLines(message.guidance),
    formatContext(message),
    formatOrigin(message, deliveryId),
  ]
  return { text: plainFallback(message.guidance, lines), ...noUnfurling }
}

/**
 * Ids of the configuration ping here too, below the line that a notification shows; nothing else of
 * the text may.
 */
function plainFallback(guidance: MessageGuidance, lines: readonly string[]): string {
  const pings = formatMentions(guidance)
  const room = slackLimits.text - pings.length - 1
  const text = mrkdwnText(lines.filter(Boolean).join('\n'), room)
  const [first, ...rest] = text.split('\n')
  return [first, ...(pings === '' ? [] : [pings]), ...rest].join('\n')
}

function guidanceLines(guidance: MessageGuidance): string[] {
  return [
    ...guidanceTexts(guidance).map(({ label, text }) => `${label}: ${text}`),
    ...guidance.runbookUrls.map((url) => `Runbook: ${url}`),
  ]
}

function buildBlocks(message: Message, deliveryId: string, allowance: Allowance): SlackBlock[] {
  const header = `${severityMark(message.severity)} · ${message.title}`
  return [
    { type: 'header', text: plainText(header, slackLimits.header) },
    ...mentionBlock(message.guidance),
    ...notesBlock(message.notes, allowance),
    ...bodyBlock(message, allowance),
    ...factsBlock(message, allowance),
    ...guidanceBlocks(message.guidance, allowance),
    ...extractBlock(message.extract, allowance),
    ...linkBlock(message.link, message.guidance),
    smallBlock(formatContext(message), allowance),
    smallBlock(formatOrigin(message, deliveryId), allowance),
  ]
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

function notesBlock(notes: readonly string[], { note }: Allowance): SlackBlock[] {
  const shown = notes.slice(0, slackLimits.contextElements)
  if (shown.length === 0) return []
  return [{ type: 'context', elements: shown.map((text) => plainText(text, note)) }]
}

function bodyBlock({ body = [] }: Message, { extract }: Allowance): SlackBlock[] {
  if (body.length === 0) return []
  return [{ type: 'section', text: plainText(body.join('\n'), extract) }]
}

/** The other facts are behind the link. */
function factsBlock(message: Message, { value }: Allowance): SlackBlock[] {
  const { first } = arrangeFacts(message)
  const fields = first.map((fact) => plainText(`${fact.label}\n${fact.value}`, value))
  return fields.length === 0 ? [] : [{ type: 'section', fields }]
}

function smallBlock(text: string, { origin }: Allowance): SlackBlock {
  return { type: 'context', elements: [plainText(text, origin)] }
}

/** Rich text interprets none of its text, so it is not escaped: entities would be shown as such. */
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

/** The one block that is mrkdwn: it holds ids of the configuration, which its reader checked. */
function mentionBlock(guidance: MessageGuidance): SlackBlock[] {
  const text = formatMentions(guidance)
  return text === '' ? [] : [{ type: 'section', text: { type: 'mrkdwn', text } }]
}

/** Whoever is pinged may have to tell those who are not. */
function formatMentions({ mentions, moreMentions }: MessageGuidance): string {
  const pings = mentions.map(formatMention).join(' ')
  if (moreMentions === 0) return pings
  return `${pings} and ${moreMentions} more who ${moreMentions === 1 ? 'is' : 'are'} not pinged`
}

function formatMention(id: string): string {
  if (id === 'here' || id === 'channel') return `<!${id}>`
  return id.startsWith('S') ? `<!subteam^${id}>` : `<@${id}>`
}

function guidanceBlocks(
  guidance: MessageGuidance,
  { note }: Pick<Allowance, 'note'>,
): SlackBlock[] {
  const elements = guidanceTexts(guidance).flatMap(({ label, text }, at): RichElement[] => [
    { type: 'text', text: at === 0 ? label : `\n${label}`, style: { bold: true } },
    { type: 'text', text: `\n${cutText(text, note)}` },
  ])
  if (elements.length === 0) return []
  return [{ type: 'rich_text', elements: [{ type: 'rich_text_section', elements }] }]
}

function linkBlock(link: string | null, { runbookUrls }: MessageGuidance): SlackBlock[] {
  const buttons = [
    ...(link === null ? [] : [{ text: 'Open event', url: link }]),
    ...runbookUrls.map((url) => ({ text: 'Open runbook', url })),
  ].filter(({ url }) => url.length <= slackLimits.url)
  if (buttons.length === 0) return []
  const elements = buttons.map(({ text, url }) => {
    return { type: 'button', text: { type: 'plain_text', text, emoji: false }, url } as const
  })
  return [{ type: 'actions', elements }]
}

/** Nobody reads more in a channel. */
const maxLines = 25

/** What each part may take, in characters and in number. */
interface SummaryAllowance {
  text: number
  names: number
  feeds: number
}

/** The first one whose required parts leave room for a few lines is used; the last always does. */
const summaryAllowances: readonly [SummaryAllowance, ...SummaryAllowance[]] = [
  { text: 600, names: 10, feeds: 20 },
  { text: 250, names: 5, feeds: 8 },
  { text: 120, names: 3, feeds: 3 },
]
const maxFrameLength = 7000
/** What the mentions of a message take at most, with the line break behind them. */
const maxPings = 200

function renderSlackSummary(message: SummaryMessage, deliveryId: string): SlackMessage {
  const frame = firstFitting(
    summaryAllowances,
    (allowance) => buildFrame(message, deliveryId, allowance),
    ({ before, after }) => jsonLength([...before, ...after]) <= maxFrameLength,
  )
  const blocks = [...frame.before, ...fitLines(message, frame, deliveryId), ...frame.after]
  return { text: mrkdwnText(leadText(message), slackLimits.text), blocks, ...noUnfurling }
}

/** Renders text only, for a Slack that refused the blocks. */
function renderPlainSlackSummary(message: SummaryMessage, deliveryId: string): SlackMessage {
  const { alarms, notes, guidance } = message
  const { statement } = outlineSummary(message, { names: 0, feeds: 0 })
  const sent = plainAlreadySent(message)
  const texts = [...statement, ...alarms, ...notes, ...sent, ...guidanceLines(guidance)]
  const head = [headerText(message), ...texts].join('\n')
  const foot = formatSummaryOrigin(message, deliveryId).join('\n')
  const lines: string[] = []
  const buildBody = (): string =>
    [head, ...lines, formatRemainder(message, lines.length, deliveryId) ?? '', foot]
      .filter(Boolean)
      .join('\n')
  for (const line of message.lines.slice(0, maxLines)) {
    lines.push(plainLine(line))
    if (escapeWithin(buildBody(), Infinity).length < slackLimits.text - maxPings) continue
    lines.pop()
    break
  }
  return { text: plainFallback(guidance, [buildBody()]), ...noUnfurling }
}

/** The worst of a digest's window, of which a text has room for a few. */
function plainAlreadySent(message: SummaryMessage): string[] {
  const { alreadySent } = outlineSummary(message, { names: 3, feeds: 0 })
  const lines = alreadySent.events.map(({ severity, title, link, sent }) => {
    const words = `• ${severityMark(severity)} ${isolate(cutText(title, 120))} (already sent ${sent})`
    return link === null ? words : `${words} ${link}`
  })
  return [...lines, ...(alreadySent.more === null ? [] : [alreadySent.more])]
}

function headerText({ severity, headline }: SummaryMessage): string {
  return severity === null ? headline : `${severityMark(severity)} · ${headline}`
}

interface Frame {
  before: SlackBlock[]
  after: SlackBlock[]
}

function buildFrame(
  message: SummaryMessage,
  deliveryId: string,
  allowance: SummaryAllowance,
): Frame {
  const outline = outlineSummary(message, allowance)
  return {
    before: [
      { type: 'header', text: plainText(headerText(message), slackLimits.header) },
      ...mentionBlock(message.guidance),
      ...alarmBlock(message.alarms, allowance),
      ...contextBlock(message.notes, allowance),
      ...statementBlock(outline),
      ...alreadySentBlocks(outline, allowance),
    ],
    after: [
      ...guidanceBlocks(message.guidance, { note: allowance.text }),
      ...linkBlock(null, message.guidance),
      ...countsBlock(outline, allowance),
      ...coverageBlocks(outline, allowance),
      ...contextBlock(formatSummaryOrigin(message, deliveryId), allowance),
    ],
  }
}

function alarmBlock(alarms: readonly string[], { text }: SummaryAllowance): SlackBlock[] {
  if (alarms.length === 0) return []
  const alarmText = alarms.map((alarm) => `⚠️ ${cutText(alarm, text)}`).join('\n')
  return [{ type: 'section', text: plainText(alarmText, slackLimits.section) }]
}

function contextBlock(texts: readonly string[], { text }: SummaryAllowance): SlackBlock[] {
  const shown = texts.slice(0, slackLimits.contextElements)
  if (shown.length === 0) return []
  return [{ type: 'context', elements: shown.map((each) => plainText(each, text)) }]
}

function statementBlock({ statement }: SummaryOutline): SlackBlock[] {
  if (statement.length === 0) return []
  return [{ type: 'section', text: plainText(statement.join('\n'), slackLimits.section) }]
}

function countsBlock({ counts }: SummaryOutline, { text }: SummaryAllowance): SlackBlock[] {
  const fields = counts.map(({ label, texts }) => plainText([label, ...texts].join('\n'), text))
  return fields.length === 0 ? [] : [{ type: 'section', fields }]
}

/** Stands before the new events: these are the worst of the window. */
function alreadySentBlocks(
  { alreadySent: { events, more } }: SummaryOutline,
  { text }: SummaryAllowance,
): SlackBlock[] {
  if (events.length === 0) return []
  const list: RichList = {
    type: 'rich_text_list',
    style: 'bullet',
    elements: events.map(({ severity, title, link, sent }) => ({
      type: 'rich_text_section',
      elements: [
        { type: 'text', text: severityMark(severity), style: { bold: true } },
        { type: 'text', text: ` ${isolate(cutText(title, text))} (already sent ${sent}) ` },
        ...linkElement(link),
      ],
    })),
  }
  return [
    { type: 'rich_text', block_id: 'already_sent', elements: [list] },
    ...(more === null ? [] : [textContext(more)]),
  ]
}

function linkElement(link: string | null): RichElement[] {
  return link === null || link.length > slackLimits.url
    ? []
    : [{ type: 'link', url: link, text: 'open' }]
}

function coverageBlocks({ coverage }: SummaryOutline, { text }: SummaryAllowance): SlackBlock[] {
  return coverage.map(({ label, texts }) => ({
    type: 'context',
    elements: [plainText([label, ...texts].join('\n'), Math.min(slackLimits.text, text * 2))],
  }))
}

/** Builds the lines for which the frame leaves room, and says how many more events there are. */
function fitLines(message: SummaryMessage, frame: Frame, deliveryId: string): SlackBlock[] {
  const around = jsonLength([...frame.before, ...frame.after])
  let blocks = linesBlocks(message, 0, deliveryId)
  for (let shown = 1; shown <= Math.min(maxLines, message.lines.length); shown += 1) {
    const fuller = linesBlocks(message, shown, deliveryId)
    if (around + jsonLength(fuller) >= maxBlocksLength) break
    blocks = fuller
  }
  return blocks
}

function linesBlocks(message: SummaryMessage, shown: number, deliveryId: string): SlackBlock[] {
  const more = formatRemainder(message, shown, deliveryId)
  const lines = message.lines.slice(0, shown)
  return [
    ...(lines.length > 0 ? [listBlock(lines)] : []),
    ...(more === null ? [] : [textContext(more)]),
  ]
}

function textContext(text: string): SlackBlock {
  return { type: 'context', elements: [plainText(text, 500)] }
}

/**
 * Rich text interprets none of its text. A link in it is safe: its words are ours and its address
 * is checked.
 */
function listBlock(lines: readonly SummaryLine[]): SlackBlock {
  return {
    type: 'rich_text',
    elements: [
      {
        type: 'rich_text_list',
        style: 'bullet',
        elements: lines.map((line) => ({
          type: 'rich_text_section',
          elements: lineElements(line),
        })),
      },
    ],
  }
}

type RichBlock = Extract<SlackBlock, { type: 'rich_text' }>
type RichList = Extract<RichBlock['elements'][number], { type: 'rich_text_list' }>
type RichElement = RichList['elements'][number]['elements'][number]

function lineElements(line: SummaryLine): RichElement[] {
  const links = linkElement(line.link)
  const words = ` ${isolate(line.title)}${formatMargin(line)}${links.length === 0 ? '' : ' · '}`
  return [
    { type: 'text', text: severityMark(line.severity), style: { bold: true } },
    { type: 'text', text: words },
    ...links,
  ]
}

function formatMargin({ identifier, remark, time }: SummaryLine): string {
  const parts = [identifier, remark, time].filter((part) => part !== null)
  return ` · ${parts.map(isolate).join(' · ')}`
}

function plainLine(line: SummaryLine): string {
  return `• ${severityMark(line.severity)} ${isolate(line.title)}${formatMargin(line)}`
}

/** What a notification shows: alarms are as important as events. */
function leadText({ subject, alarms }: SummaryMessage): string {
  return [subject, ...alarms].join('\n')
}

function jsonLength(blocks: readonly SlackBlock[]): number {
  return JSON.stringify(blocks).length
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
 * Replaces exactly `&`, `<` and `>` by entities (Slack, "Escaping text"); the result has at most
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
