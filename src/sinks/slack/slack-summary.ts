/**
 * What Slack shows of several events: Block Kit in which nothing is interpreted, as in slack-message.ts.
 * As many events as fit into what Slack takes; how many more there are is always said.
 */
import { cutText } from '../../messages/clean-text.ts'
import { moreOf, type SummaryLine, type SummaryMessage } from '../../messages/summary-message.ts'
import { severitiesInWords } from '../../messages/severity-counts.ts'
import {
  maxBlocksLength,
  quiet,
  severityMark,
  slackLimits,
  type SlackBlock,
  type SlackMessage,
} from './slack-message.ts'
import { escapeWithin, mrkdwnText, plainText } from './slack-text.ts'

/** More are not read in a channel. */
const maxLines = 25

/** What each part may take, in characters and in number. */
interface Allowance {
  text: number
  names: number
  feeds: number
}

/** The first under which the parts that must be said leave room for a few lines; the last always does. */
const allowances: readonly Allowance[] = [
  { text: 600, names: 10, feeds: 20 },
  { text: 250, names: 5, feeds: 8 },
  { text: 120, names: 3, feeds: 3 },
]
const mostForFrame = 7000

export function renderSlackSummary(message: SummaryMessage, deliveryId: string): SlackMessage {
  let frame: Frame | undefined
  for (const allowance of allowances) {
    frame = frameOf(message, deliveryId, allowance)
    if (lengthOf([...frame.before, ...frame.after]) <= mostForFrame) break
  }
  const blocks = [
    ...(frame?.before ?? []),
    ...listed(message, frame, deliveryId),
    ...(frame?.after ?? []),
  ]
  return { text: mrkdwnText(leadOf(message), slackLimits.text), blocks, ...quiet }
}

/** Words alone, for a Slack that refused the blocks: better plain than not at all. */
export function renderPlainSlackSummary(message: SummaryMessage, deliveryId: string): SlackMessage {
  const head = [message.title, ...message.alarms, ...message.notes].join('\n')
  const foot = originOf(message, deliveryId)
  const lines: string[] = []
  const bodyOf = (): string =>
    [head, ...lines, moreOf(message, lines.length, deliveryId) ?? '', foot]
      .filter(Boolean)
      .join('\n')
  for (const line of message.lines.slice(0, maxLines)) {
    lines.push(plainLine(line))
    if (escapeWithin(bodyOf(), Infinity).length < slackLimits.text) continue
    lines.pop()
    break
  }
  return { text: mrkdwnText(bodyOf(), slackLimits.text), ...quiet }
}

interface Frame {
  before: SlackBlock[]
  after: SlackBlock[]
}

function frameOf(message: SummaryMessage, deliveryId: string, allowance: Allowance): Frame {
  const mark = message.severity === null ? '' : `${severityMark(message.severity)} `
  return {
    before: [
      { type: 'header', text: plainText(`${mark}${message.title}`, slackLimits.header) },
      ...alarmBlock(message.alarms, allowance),
      ...contextBlock(message.notes, allowance),
      ...statementBlock(message),
      ...alreadySentBlocks(message, allowance),
    ],
    after: [
      ...countsBlock(message, allowance),
      ...coverageBlocks(message, allowance),
      ...contextBlock([originOf(message, deliveryId)], allowance),
    ],
  }
}

function alarmBlock(alarms: readonly string[], { text }: Allowance): SlackBlock[] {
  if (alarms.length === 0) return []
  const said = alarms.map((alarm) => `⚠️ ${cutText(alarm, text)}`).join('\n')
  return [{ type: 'section', text: plainText(said, slackLimits.section) }]
}

function contextBlock(texts: readonly string[], { text }: Allowance): SlackBlock[] {
  const shown = texts.slice(0, slackLimits.contextElements)
  if (shown.length === 0) return []
  return [{ type: 'context', elements: shown.map((each) => plainText(each, text)) }]
}

function statementBlock({ coverage }: SummaryMessage): SlackBlock[] {
  if (coverage === null) return []
  const said = [coverage.statement, `Window: ${coverage.window}`].filter((text) => text !== null)
  return [{ type: 'section', text: plainText(said.join('\n'), slackLimits.section) }]
}

function countsBlock({ counts }: SummaryMessage, { text, names }: Allowance): SlackBlock[] {
  const fields = counts.map(({ label, entries }) => {
    const shown = entries.slice(0, names).map(({ name, count }) => `${count} ${name}`)
    const more = entries.length - shown.length
    return plainText([label, ...shown, ...(more > 0 ? ['…'] : [])].join('\n'), text)
  })
  return fields.length === 0 ? [] : [{ type: 'section', fields }]
}

/** Before what is new: these are the worst of the window. */
function alreadySentBlocks({ coverage }: SummaryMessage, { text, names }: Allowance): SlackBlock[] {
  const sent = coverage?.alreadySent.slice(0, names) ?? []
  if (coverage === null || sent.length === 0) return []
  const more = coverage.alreadySent.length - sent.length + coverage.moreAlreadySent
  const list: RichList = {
    type: 'rich_text_list',
    style: 'bullet',
    elements: sent.map(({ severity, title, link, time }) => ({
      type: 'rich_text_section',
      elements: [
        { type: 'text', text: severityMark(severity), style: { bold: true } },
        { type: 'text', text: ` ${cutText(title, text)} (already sent ${time}) ` },
        ...linkElement(link),
      ],
    })),
  }
  return [
    { type: 'rich_text', block_id: 'already_sent', elements: [list] },
    ...(more > 0 ? [contextOf(`and ${more} more that were already sent`)] : []),
  ]
}

function linkElement(link: string | null): RichElement[] {
  return link === null || link.length > slackLimits.url
    ? []
    : [{ type: 'link', url: link, text: 'open' }]
}

function coverageBlocks(message: SummaryMessage, { text, feeds }: Allowance): SlackBlock[] {
  const { coverage, days } = message
  if (coverage === null) return []
  const shown = coverage.feeds.slice(0, feeds)
  const more = coverage.feeds.length - shown.length + coverage.moreFeeds
  const parts = [
    [
      'Days',
      ...days
        .filter(({ total }) => total > 0)
        .slice(-7)
        .map(({ label, bySeverity }) => `${label}: ${severitiesInWords(bySeverity)}`),
    ],
    ['Not listed', ...coverage.left],
    [
      'Feeds',
      ...shown.map((feed) => `${feed.isBehind ? '⚠️ BEHIND ' : ''}${feed.feed}: ${feed.text}`),
      ...(more > 0 ? [`and ${more} more`] : []),
    ],
  ]
  return parts
    .filter((lines) => lines.length > 1)
    .map((lines) => ({
      type: 'context',
      elements: [plainText(lines.join('\n'), Math.min(slackLimits.text, text * 2))],
    }))
}

/** The lines for which the frame leaves room, and how many events there are besides. */
function listed(
  message: SummaryMessage,
  frame: Frame | undefined,
  deliveryId: string,
): SlackBlock[] {
  const around = lengthOf([...(frame?.before ?? []), ...(frame?.after ?? [])])
  let blocks = linesBlocks(message, 0, deliveryId)
  for (let shown = 1; shown <= Math.min(maxLines, message.lines.length); shown += 1) {
    const fuller = linesBlocks(message, shown, deliveryId)
    if (around + lengthOf(fuller) >= maxBlocksLength) break
    blocks = fuller
  }
  return blocks
}

function linesBlocks(message: SummaryMessage, shown: number, deliveryId: string): SlackBlock[] {
  const more = moreOf(message, shown, deliveryId)
  const lines = message.lines.slice(0, shown)
  return [
    ...(lines.length > 0 ? [listBlock(lines)] : []),
    ...(more === null ? [] : [contextOf(more)]),
  ]
}

function contextOf(text: string): SlackBlock {
  return { type: 'context', elements: [plainText(text, 500)] }
}

/** Rich text interprets none of its text; a link in it is ours: the words are, and the address is checked. */
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
  return [
    { type: 'text', text: severityMark(line.severity), style: { bold: true } },
    { type: 'text', text: ` ${line.title}${marginOf(line)} ` },
    ...linkElement(line.link),
  ]
}

function marginOf({ identifier, remark, time }: SummaryLine): string {
  const parts = [identifier, remark, time].filter((part) => part !== null)
  return ` (${parts.join(' · ')})`
}

function plainLine(line: SummaryLine): string {
  return `• ${severityMark(line.severity)} ${line.title}${marginOf(line)}`
}

/** What a notification shows: alarms are as much news as events. */
function leadOf({ subject, alarms }: SummaryMessage): string {
  return [subject, ...alarms].join('\n')
}

function originOf({ route, timeZone }: SummaryMessage, deliveryId: string): string {
  const by = route === null ? '' : ` · route ${route}`
  return `delivery ${deliveryId}${by} · times are ${timeZone}`
}

function lengthOf(blocks: readonly SlackBlock[]): number {
  return JSON.stringify(blocks).length
}
