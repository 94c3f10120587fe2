/**
 * Renders deliveries as Adaptive Cards for Microsoft Teams. All text stands in text runs, for which
 * the schema says that Markdown is not supported: TextBlock and FactSet interpret links, mentions
 * and emphasis, and clients differ in what they let escape. What phones interpret all the same is
 * broken up.
 */
import {
  type Allowance,
  firstFitting,
  formatOrigin,
  type Message,
  messageAllowances,
} from '../../messages/message.ts'
import { guidanceTexts, type MessageGuidance } from '../../messages/guidance.ts'
import { cutText, isolate } from '../../messages/sanitize.ts'
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

/** What a workflow's trigger "When a Teams webhook request is received" takes. */
export interface TeamsMessage {
  type: 'message'
  attachments: [
    {
      contentType: 'application/vnd.microsoft.card.adaptive'
      contentUrl: null
      content: AdaptiveCard
    },
  ]
}

interface AdaptiveCard {
  $schema: 'http://adaptivecards.io/schemas/adaptive-card.json'
  type: 'AdaptiveCard'
  /** The oldest one that has text runs: a client that knows less than this shows nothing. */
  version: '1.2'
  msteams: { width: 'Full' }
  body: CardElement[]
  actions?: OpenUrl[]
}

type CardElement = RichText | Container

interface RichText {
  type: 'RichTextBlock'
  inlines: TextRun[]
  spacing?: 'none' | 'small' | 'medium'
  separator?: true
}

interface Container {
  type: 'Container'
  id?: string
  style?: 'emphasis'
  items: RichText[]
}

interface TextRun extends TextLook {
  type: 'TextRun'
  text: string
  selectAction?: OpenUrl
}

interface TextLook {
  weight?: 'bolder'
  size?: 'small' | 'medium'
  color?: CardColor
  isSubtle?: true
  fontType?: 'monospace'
}

type CardColor = 'attention' | 'warning' | 'accent' | 'default'

interface OpenUrl {
  type: 'Action.OpenUrl'
  title?: string
  url: string
}

/**
 * Bytes of the whole request. Documented are 28 KB, but others were refused from 21 KB on, and a
 * workflow accepts what Teams then refuses (docs/api-notes.md, Microsoft Teams).
 */
export const maxRequestBytes = 20_000

/**
 * Throws SinkError `invalid` for several events without a summary. A webhook of Teams takes no
 * files.
 */
export function renderTeams(
  delivery: Delivery,
  renderMessage: RenderEvent = renderEventMessage,
): TeamsMessage {
  const { id, summary } = delivery
  if (summary === undefined) {
    return renderEvent(renderMessage(delivery), id)
  }
  return renderEvents(renderSummary({ ...delivery, summary, attachment: undefined }), id)
}

/** What a reader of the card sees, line by line; links by their address. */
export function cardText({ attachments: [{ content }] }: TeamsMessage): string {
  const blocks = content.body.flatMap((one) => (one.type === 'Container' ? one.items : [one]))
  const lines = blocks.map(({ inlines }) =>
    inlines.map(({ text, selectAction }) => selectAction?.url ?? text).join(''),
  )
  const links = (content.actions ?? []).map(({ title, url }) => [title, url].join(': '))
  return [...lines, ...links].join('\n')
}

const maxExtractLines = 20

function renderEvent(message: Message, deliveryId: string): TeamsMessage {
  const actions = linkActions(message.link, message.guidance)
  return firstFitting(
    messageAllowances,
    (allowance) => wrapCard(eventBody(message, deliveryId, allowance), actions),
    (card) => countBytes(card) <= maxRequestBytes,
  )
}

function wrapCard(body: CardElement[], actions: OpenUrl[] = []): TeamsMessage {
  const content: AdaptiveCard = {
    $schema: 'http://adaptivecards.io/schemas/adaptive-card.json',
    type: 'AdaptiveCard',
    version: '1.2',
    msteams: { width: 'Full' },
    body,
    ...(actions.length > 0 && { actions }),
  }
  const contentType = 'application/vnd.microsoft.card.adaptive'
  return { type: 'message', attachments: [{ contentType, contentUrl: null, content }] }
}

function eventBody(message: Message, deliveryId: string, allowance: Allowance): CardElement[] {
  const look = { size: 'medium' } as const
  return [
    paragraph([mark(message.severity, look), run(` · ${message.title}`, { ...look, ...bold })]),
    ...message.notes.map((note) => aside(cutText(note, allowance.note))),
    ...bodyParagraphs(message, allowance),
    ...factParagraphs(message, allowance),
    ...guidanceParagraphs(message.guidance, allowance),
    ...extractElements(message.extract, allowance),
    origin(formatContext(message), allowance.origin),
    small(formatOrigin(message, deliveryId), allowance.origin),
  ]
}

function bodyParagraphs({ body = [] }: Message, { value }: Allowance): RichText[] {
  return body.map((line, index) =>
    paragraph([run(cutText(line, value))], index === 0 ? 'medium' : 'none'),
  )
}

/** Each on a line of its own, close to the one before. */
function factParagraphs(message: Message, { value }: Allowance): RichText[] {
  return arrangeFacts(message).first.map((fact, index) =>
    labelled(fact.label, cutText(fact.value, value), index === 0 ? 'medium' : 'none'),
  )
}

/** A text run breaks no line, so each line is a paragraph; the lines beyond a number are joined. */
function extractElements(extract: Message['extract'], allowance: Allowance): CardElement[] {
  if (extract === null || extract.text === '') return []
  const lines = cutText(extract.text, allowance.extract).split('\n')
  const shown = [
    ...lines.slice(0, maxExtractLines - 1),
    ...[lines.slice(maxExtractLines - 1).join(' ')].filter((rest) => rest !== ''),
  ]
  const quoted = shown.map((line) => paragraph([run(line, { fontType: 'monospace' })], 'none'))
  return [
    paragraph([run(extract.label || 'Extract', bold)]),
    { type: 'Container', style: 'emphasis', items: quoted },
  ]
}

function guidanceParagraphs(
  guidance: MessageGuidance,
  { note }: Pick<Allowance, 'note'>,
): RichText[] {
  return guidanceTexts(guidance).map(({ label, text }) =>
    labelled(label, cutText(text, note), 'small'),
  )
}

function linkActions(link: string | null, { runbookUrls }: MessageGuidance): OpenUrl[] {
  return [
    ...(link === null ? [] : [{ title: 'Open event', url: link }]),
    ...runbookUrls.map((url) => ({ title: 'Open runbook', url })),
  ].map((action) => ({ type: 'Action.OpenUrl', ...action }))
}

/** Nobody reads more in a channel. */
const maxLines = 25

/** What each part may take, in characters (`text`, `link`) and in number. */
interface SummaryAllowance {
  text: number
  link: number
  names: number
  feeds: number
}

/** The first one whose required parts leave room for a few lines is used; the last always does. */
const summaryAllowances: readonly [SummaryAllowance, ...SummaryAllowance[]] = [
  { text: 600, link: 2000, names: 10, feeds: 20 },
  { text: 250, link: 1000, names: 5, feeds: 8 },
  { text: 100, link: 300, names: 3, feeds: 3 },
]
const maxFrameBytes = 12_000

interface Frame {
  before: CardElement[]
  after: CardElement[]
}

function renderEvents(message: SummaryMessage, deliveryId: string): TeamsMessage {
  const frame = firstFitting(
    summaryAllowances,
    (allowance) => buildFrame(message, deliveryId, allowance),
    (built) => countBytes(built) <= maxFrameBytes,
  )
  const withLines = (shown: number): TeamsMessage =>
    wrapCard(
      [...frame.before, ...eventLines(message, shown, deliveryId), ...frame.after],
      linkActions(null, message.guidance),
    )
  let fitting = withLines(0)
  for (let shown = 1; shown <= Math.min(maxLines, message.lines.length); shown += 1) {
    const fuller = withLines(shown)
    if (countBytes(fuller) > maxRequestBytes) break
    fitting = fuller
  }
  return fitting
}

function buildFrame(
  message: SummaryMessage,
  deliveryId: string,
  allowance: SummaryAllowance,
): Frame {
  const outline = outlineSummary(message, allowance)
  const look = { size: 'medium' } as const
  const severity = message.severity === null ? [] : [mark(message.severity, look), run(' · ', look)]
  return {
    before: [
      paragraph([...severity, run(message.headline, { ...look, ...bold })]),
      ...alarmParagraphs(message.alarms, allowance),
      ...message.notes.map((note) => aside(cutText(note, allowance.text))),
      ...statementParagraphs(outline, allowance),
      ...alreadySentElements(outline, allowance),
    ],
    after: [
      ...guidanceParagraphs(message.guidance, { note: allowance.text }),
      ...countParagraphs(outline, allowance),
      ...coverageParagraphs(outline, allowance),
      ...summaryOrigin(message, deliveryId, allowance),
    ],
  }
}

function summaryOrigin(
  message: SummaryMessage,
  deliveryId: string,
  { text }: SummaryAllowance,
): RichText[] {
  return formatSummaryOrigin(message, deliveryId).map((line, at) =>
    at === 0 ? origin(line, text) : small(line, text),
  )
}

function alarmParagraphs(alarms: readonly string[], { text }: SummaryAllowance): RichText[] {
  return alarms.map((alarm) =>
    paragraph([run(`⚠️ ${cutText(alarm, text)}`, { ...bold, color: 'attention' })]),
  )
}

function statementParagraphs(
  { statement }: SummaryOutline,
  { text }: SummaryAllowance,
): RichText[] {
  return statement.map((line) => paragraph([run(cutText(line, text))]))
}

/** Stands before the new events: these are the worst of the window. */
function alreadySentElements(
  { alreadySent: { events, more } }: SummaryOutline,
  allowance: SummaryAllowance,
): CardElement[] {
  if (events.length === 0) return []
  const items = events.map(({ severity, title, link, sent }) =>
    paragraph([
      mark(severity),
      run(` ${isolate(cutText(title, allowance.text))} (already sent ${sent}) `),
      ...linkRuns(link, allowance.link),
    ]),
  )
  return [{ type: 'Container', id: 'already_sent', items }, ...(more === null ? [] : [aside(more)])]
}

/** The worst events, each on a line, and how many more there are. */
function eventLines(message: SummaryMessage, shown: number, deliveryId: string): CardElement[] {
  const more = formatRemainder(message, shown, deliveryId)
  const items = message.lines.slice(0, shown).map(eventLine)
  return [
    ...(items.length > 0 ? [{ type: 'Container', id: 'events', items } as const] : []),
    ...(more === null ? [] : [aside(more)]),
  ]
}

function eventLine(line: SummaryLine): RichText {
  const { identifier, remark, time } = line
  const margin = [identifier, remark, time].filter((part) => part !== null)
  const links = linkRuns(line.link)
  const words = ` ${isolate(line.title)} · ${margin.map(isolate).join(' · ')}${links.length === 0 ? '' : ' · '}`
  return paragraph([mark(line.severity), run(words), ...links], 'small')
}

/** The words of a link are ours and its address is checked. */
function linkRuns(link: string | null, maxLength = Infinity): TextRun[] {
  if (link === null || link.length > maxLength) return []
  return [{ ...run('open'), selectAction: { type: 'Action.OpenUrl', url: link } }]
}

function countParagraphs({ counts }: SummaryOutline, { text }: SummaryAllowance): RichText[] {
  return counts.map(({ label, texts }) =>
    labelled(label, cutText(texts.join(' · '), text), 'small'),
  )
}

function coverageParagraphs({ coverage }: SummaryOutline, { text }: SummaryAllowance): RichText[] {
  return coverage.map(({ label, texts }) =>
    labelled(label, cutText(texts.join(' · '), text * 2), 'small'),
  )
}

const bold = { weight: 'bolder' } as const

function run(text: string, look: TextLook = {}): TextRun {
  return { type: 'TextRun', text: breakMarkup(text) || '-', ...look }
}

/**
 * Parts with a blank what phones read in a text run in spite of the schema: links (iOS) and dates
 * (docs/api-notes.md, Microsoft Teams). Emphasis and lists, which iOS reads too, lead nowhere.
 */
function breakMarkup(text: string): string {
  return text.replaceAll('](', '] (').replaceAll(/\{(?=\{(?:DATE|TIME)\()/gu, '{ ')
}

function paragraph(inlines: TextRun[], spacing?: RichText['spacing']): RichText {
  return { type: 'RichTextBlock', inlines, ...(spacing !== undefined && { spacing }) }
}

function labelled(label: string, value: string, spacing: RichText['spacing']): RichText {
  return paragraph([run(`${label}: `, { ...bold, isSubtle: true }), run(value)], spacing)
}

function aside(text: string): RichText {
  return paragraph([run(text, { isSubtle: true })], 'small')
}

function origin(text: string, maxLength: number): RichText {
  return { ...small(text, maxLength), spacing: 'medium', separator: true }
}

function small(text: string, maxLength: number): RichText {
  return paragraph([run(cutText(text, maxLength), { size: 'small', isSubtle: true })], 'none')
}

const colors: Readonly<Record<string, CardColor>> = {
  critical: 'attention',
  high: 'warning',
  medium: 'accent',
  low: 'default',
  info: 'default',
}

/**
 * The word carries the meaning, the colour only helps the eye. An unknown severity is shown like
 * `critical`.
 */
function mark(severity: string, look: TextLook = {}): TextRun {
  const color = (Object.hasOwn(colors, severity) ? colors[severity] : undefined) ?? 'attention'
  return run(severityLabel(severity), { ...look, ...bold, color })
}

function countBytes(value: unknown): number {
  return Buffer.byteLength(JSON.stringify(value))
}
