/**
 * Writes documents as Adaptive Cards for Microsoft Teams. All text stands in text runs, for which
 * the schema says that Markdown is not supported. TextBlock and FactSet interpret links, mentions
 * and emphasis, and clients differ in what they let escape. What phones interpret all the same is
 * broken up.
 */
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
import { isolate } from '../../messages/sanitize.ts'
import { severityLabel } from '../../messages/summary.ts'
import type { Delivery } from '../sink.ts'
import { renderDocument } from '../templates/templates.ts'

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

/** Nobody reads more in a channel. */
const maxLines = 25

/**
 * Throws SinkError `invalid` for several events without a summary. A webhook of Teams takes no
 * files.
 */
export function renderTeams(delivery: Delivery, render = renderDocument): TeamsMessage {
  return fit(render({ ...delivery, attachment: undefined }), {
    limit: maxRequestBytes,
    maxLines,
    render: buildCard,
    measure: (card) => Buffer.byteLength(JSON.stringify(card)),
  })
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

function buildCard(document: Document): TeamsMessage {
  const actions = documentLinks(document).map(({ text, url }): OpenUrl => {
    return { type: 'Action.OpenUrl', title: text, url }
  })
  const content: AdaptiveCard = {
    $schema: 'http://adaptivecards.io/schemas/adaptive-card.json',
    type: 'AdaptiveCard',
    version: '1.2',
    msteams: { width: 'Full' },
    body: cardBody(document),
    ...(actions.length > 0 && { actions }),
  }
  const contentType = 'application/vnd.microsoft.card.adaptive'
  return { type: 'message', attachments: [{ contentType, contentUrl: null, content }] }
}

function cardBody(document: Document): CardElement[] {
  const { alarms, notes, undelivered, facts, lines, more, guidance, context } = document
  const alarmLook = { ...bold, color: 'attention' } as const
  return [
    heading(document),
    ...alarms.map((alarm) => paragraph([run(`⚠️ ${alarm}`, alarmLook)])),
    ...notes.map(aside),
    ...textParagraphs(document),
    ...container(undelivered.map(undeliveredLine), { id: 'not_delivered' }),
    ...facts.map(({ label, value }, at) => labelled(label, value, at === 0 ? 'medium' : 'none')),
    ...chatRelated(document).map(aside),
    ...container(lines.map(eventLine), { id: 'events' }),
    ...(more === null ? [] : [aside(more)]),
    ...guidance.texts.map(({ label, text }) => labelled(label, text, 'small')),
    ...extractElements(document),
    ...[...chatCounts(document), ...chatCoverage(document)].map(({ label, texts }) =>
      labelled(label, texts.join(' · '), 'small'),
    ),
    ...[...(context === '' ? [] : [context]), chatFoot(document)].map(footParagraph),
  ]
}

function heading({ severity, headline, typeLabel }: Document): RichText {
  const size = { size: 'medium' } as const
  const look = { ...size, ...bold }
  if (severity === null) return paragraph([run(headline, look)])
  const title =
    typeLabel === null ? [run(' · ', size), run(headline, look)] : [run(` · ${headline}`, look)]
  return paragraph([mark(severity, size), ...title])
}

/** A template's lines stand close to each other. */
function textParagraphs(document: Document): RichText[] {
  const lines = chatText(document)
  if (document.body.length === 0) return lines.map((line) => paragraph([run(line)]))
  return lines.map((line, at) => paragraph([run(line)], at === 0 ? 'medium' : 'none'))
}

function container(items: RichText[], look: Omit<Container, 'type' | 'items'>): Container[] {
  return items.length === 0 ? [] : [{ type: 'Container', ...look, items }]
}

const maxExtractLines = 20

/** A text run breaks no line, so each line is a paragraph; the lines beyond a number are joined. */
function extractElements({ extract }: Document): CardElement[] {
  if (extract === null || extract.text === '') return []
  const lines = extract.text.split('\n')
  const shown = [
    ...lines.slice(0, maxExtractLines - 1),
    ...[lines.slice(maxExtractLines - 1).join(' ')].filter((rest) => rest !== ''),
  ]
  const quoted = shown.map((line) => paragraph([run(line, { fontType: 'monospace' })], 'none'))
  return [paragraph([run(extract.label, bold)]), ...container(quoted, { style: 'emphasis' })]
}

function undeliveredLine({ severity, title, link }: Document['undelivered'][number]): RichText {
  const words = ` ${isolate(title)} (not delivered) `
  return paragraph([mark(severity), run(words), ...linkRuns(link)])
}

function eventLine(line: DocumentLine): RichText {
  const links = linkRuns(line.link)
  const words = [line.title, ...lineRemarks(line)].map(isolate).join(' · ')
  const text = run(` ${words}${links.length === 0 ? '' : ' · '}`)
  return paragraph([mark(line.severity), text, ...links], 'small')
}

/** The words of a link are ours and its address is checked. */
function linkRuns(link: string | null): TextRun[] {
  if (link === null) return []
  return [{ ...run('open'), selectAction: { type: 'Action.OpenUrl', url: link } }]
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

/** The small lines at the end, set apart from the message. */
function footParagraph(text: string, at: number): RichText {
  const small = paragraph([run(text, { size: 'small', isSubtle: true })], 'none')
  return at === 0 ? { ...small, spacing: 'medium', separator: true } : small
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
