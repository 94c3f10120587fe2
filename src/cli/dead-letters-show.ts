import { countDeadLetters, listDeadLetters, type DeadLetter } from '../ledger/dead-letters.ts'
import { readPayload } from '../ledger/records.ts'
import type { Message } from '../messages/message.ts'
import { severityInWords } from '../messages/severity-counts.ts'
import { aboutEvent, linkLines } from './about.ts'
import { loadConfigFile } from './config-file.ts'
import { print, type CommonOptions, type Context } from './context.ts'
import { drawersOf, letterById, type Drawer } from './dead-letters-find.ts'
import { destinationLabels, type DestinationLabels } from './destination-labels.ts'
import { withLedger } from './open-ledger.ts'
import { itemJson, itemLines, reasonOf, storyJson, storyLines } from './story.ts'
import { counted, harmless, isoTime, table, timeInWords } from './words.ts'

export interface ListOptions extends CommonOptions {
  sink?: string
  limit: number
  page: number
}

export async function listLetters(context: Context, options: ListOptions): Promise<void> {
  const { config } = loadConfigFile(context, options.config)
  const { total, letters } = await withLedger(config, async (ledger) =>
    readPage(await drawersOf(ledger, config, options.sink), options),
  )
  const labels = destinationLabels(config)
  const { page, limit } = options
  print(context, options, {
    json: { total, page, limit, letters: letters.map((letter) => letterJson(letter, labels)) },
    lines: () => listLines(letters, labels, { total, page, limit }),
  })
}

async function readPage(
  drawers: Drawer[],
  { limit, page }: ListOptions,
): Promise<{ total: number; letters: DeadLetter[] }> {
  const counts = await Promise.all(drawers.map(({ book, sink }) => countDeadLetters(book, sink)))
  const first = { offset: 0, count: page * limit }
  const newest = await Promise.all(
    drawers.map(({ book, sink }) => listDeadLetters(book, sink, first)),
  )
  const letters = newest
    .flatMap((drawer) => drawer.letters)
    .toSorted((left, right) => right.diedAtMs - left.diedAtMs)
  return {
    total: counts.reduce((sum, count) => sum + count, 0),
    letters: letters.slice((page - 1) * limit, page * limit),
  }
}

function letterJson(
  { id, diedAtMs, record, item }: DeadLetter,
  labels: DestinationLabels,
): Record<string, unknown> {
  return {
    id,
    died_at: isoTime(diedAtMs),
    uid: record.uid,
    reason: reasonOf(item),
    item: itemJson(item, labels),
  }
}

function listLines(
  letters: readonly DeadLetter[],
  labels: DestinationLabels,
  { total, page, limit }: { total: number; page: number; limit: number },
): string[] {
  if (total === 0) return ['There are no dead letters.']
  const pages = Math.ceil(total / limit)
  const rows = letters.map(({ id, diedAtMs, record, item }) => [
    id,
    timeInWords(diedAtMs),
    severityInWords(item.severity),
    harmless(labels.get(item.destination) ?? item.destination, 60),
    reasonOf(item),
    harmless(record.uid, 200),
  ])
  return [
    ...table([['id', 'dead since', 'severity', 'destination', 'reason', 'uid'], ...rows]),
    `page ${page} of ${pages}, ${counted(total, 'dead letter')} in all${page < pages ? `; more with --page ${page + 1}` : ''}`,
  ]
}

export async function showLetter(
  context: Context,
  id: string,
  options: CommonOptions,
): Promise<void> {
  const { config } = loadConfigFile(context, options.config)
  const { letter, payload } = await withLedger(config, async (ledger) => {
    const found = await letterById(ledger, id)
    const book = ledger.books.find(({ account }) => account === found.record.account)
    return { letter: found, payload: book && (await readPayload(book, found.record.recordId)) }
  })
  const labels = destinationLabels(config)
  const message = payload && aboutEvent(config, letter.record, payload, letter.item.routes)
  print(context, options, {
    json: {
      ...letterJson(letter, labels),
      story: storyJson(letter.record, labels),
      message: message ?? null,
    },
    lines: () => [
      `dead letter ${id}`,
      ...itemLines(letter.item, labels),
      '',
      ...storyLines(letter.record, labels),
      '',
      ...(message ? messageLines(message) : [payloadGone]),
    ],
  })
}

const payloadGone =
  'The content is no longer kept (retention.payload): this letter cannot be replayed.'

function messageLines({ summary, facts, extract, notes, ...message }: Message): string[] {
  return [
    summary,
    ...facts.map(({ label, value }) => `  ${label}: ${value}`),
    ...(extract ? [`  ${extract.label}: ${extract.text.replaceAll('\n', ' ')}`] : []),
    ...linkLines(message).map((line) => `  ${line}`),
    ...notes.map((note) => `  ${note}`),
  ]
}
