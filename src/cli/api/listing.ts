/**
 * Prints what a command found, page by page: a table for people, or JSON and JSON lines for programs.
 * Text from outside is sanitized for terminals.
 */
import type { Command } from 'commander'
import type { z } from 'zod'
import { severityRank } from '../../event.ts'
import type { Fields, Operation } from '../../upstream/resources/operation.ts'
import { columnsOf } from './fields.ts'
import { itemProblem } from '../../feeds/types/events.ts'
import { cutWithCount } from '../../messages/sanitize.ts'
import { parseTimestamp } from '../../upstream/timestamps.ts'
import type { Context } from '../context.ts'
import { formatTable, jsonText, sanitize, type Style } from '../terminal.ts'
import type { OutputForm } from './api-command.ts'

interface Column<Row> {
  title: string
  text: (row: Row) => string
}

export interface Listing<Row> {
  columns: readonly Column<Row>[]
  /** Lines printed below a row of the table. */
  below?: (row: Row) => readonly string[]
  /** Every field, for programs. */
  json: (row: Row) => Readonly<Record<string, unknown>>
}

export interface Printer<Row> {
  add(rows: readonly Row[]): void
  /** `next`: where the rest begins; null at the end. */
  end(next: string | null): void
  /** Called instead of `end` after a failure or interruption: the output so far stays parseable. */
  stopEarly(next: string | null): void
}

export function createPrinter<Row>(
  { terminal }: Context,
  form: OutputForm,
  listing: Listing<Row>,
): Printer<Row> {
  switch (form) {
    case 'text':
      return textPrinter(terminal, listing)
    case 'json':
      return jsonPrinter(terminal, listing)
    case 'ndjson':
      return {
        add: (rows) => rows.forEach((row) => terminal.print(jsonText(listing.json(row)))),
        end: () => undefined,
        stopEarly: () => undefined,
      }
  }
}

type Terminal = Context['terminal']

/** Prints each page as it comes, its columns as wide as its cells; the titles stand above the first. */
function textPrinter<Row>(terminal: Terminal, { columns, below }: Listing<Row>): Printer<Row> {
  const titles = columns.map(({ title }) => title)
  let isFirst = true
  return {
    add(rows) {
      if (rows.length === 0) return
      const cells = rows.map((row) => columns.map(({ text }) => sanitize(text(row), 600)))
      const [head = '', ...lines] = formatTable([titles, ...cells])
      if (isFirst) terminal.print(terminal.paint('bold', head))
      isFirst = false
      for (const [at, row] of rows.entries()) {
        terminal.print(lines[at] ?? '')
        for (const line of below?.(row) ?? []) terminal.print(`    ${line}`)
      }
    },
    end: () => (isFirst ? terminal.print('nothing was found') : undefined),
    stopEarly: () => undefined,
  }
}

/** Prints one JSON object and writes its items as they come. */
function jsonPrinter<Row>(terminal: Terminal, { json }: Listing<Row>): Printer<Row> {
  let isFirst = true
  const open = (): void => {
    if (isFirst) terminal.print('{"items": [')
  }
  const end = (next: string | null): void => {
    open()
    terminal.print(`], "next": ${jsonText(next)}}`)
  }
  return {
    add(rows) {
      for (const row of rows) {
        open()
        terminal.print(`${isFirst ? '' : ','}${jsonText(json(row))}`)
        isFirst = false
      }
    },
    end,
    stopEarly: end,
  }
}

export function valueAt(fields: unknown, path: string): unknown {
  return path
    .split('.')
    .reduce(
      (value: unknown, key) =>
        typeof value === 'object' && value !== null
          ? (value as Record<string, unknown>)[key]
          : undefined,
      fields,
    )
}

function cellText(value: unknown): string {
  if (value === null || value === undefined) return ''
  return typeof value === 'string' ? value : jsonText(value)
}

/** Returns the valid items of a page and reports what is wrong with each other one. */
export function parseRows<Item>(
  { terminal }: Context,
  shape: z.ZodType<Item>,
  items: readonly unknown[],
): Item[] {
  return items.flatMap((item) => {
    const parsed = shape.safeParse(item)
    if (parsed.success) return [parsed.data]
    terminal.printError(
      `an item is left out, it is not readable: ${sanitize(itemProblem(parsed.error))}`,
    )
    return []
  })
}

const maxColumns = 6

/** A plain table of the first fields. */
export function rowListing({ item }: Pick<Operation, 'item'>): Listing<unknown> {
  const known = item ? columnsOf(item) : []
  const plain = (known.length > 0 ? known : ['value']).slice(0, maxColumns)
  const lastWords = plain.map((name) => name.split('.').at(-1))
  return {
    columns: plain.map((name) => {
      const word = name.split('.').at(-1) ?? name
      const title = lastWords.filter((one) => one === word).length > 1 ? name : word
      return {
        title: title.replaceAll(/[._]/g, ' ').toUpperCase(),
        text: (row) => cellText(valueAt(toObject(row), name)),
      }
    }),
    json: toObject,
  }
}

function toObject(item: unknown): Fields {
  return typeof item === 'object' && item !== null ? (item as Fields) : { value: item }
}

/** Formats `2026-11-01 12:00`, UTC; returns a text that is no time unchanged. */
export function shortTime(text: string | null | undefined): string {
  const atMs = text ? parseTimestamp(text) : null
  if (atMs === null) return text ?? ''
  return new Date(atMs).toISOString().slice(0, 16).replace('T', ' ')
}

/** Red from high on, yellow for medium. An unknown severity counts as critical. */
export function severityStyle(severity: string): Style {
  const rank = severityRank(severity.toLowerCase())
  if (rank >= 4) return 'red'
  return rank === 3 ? 'yellow' : 'dim'
}

export interface RevealOption {
  reveal?: true
}

/** Adds `--reveal`, which prints JSON: that alone shows every character of a secret. */
export function addRevealOption(command: Command): Command {
  return command
    .option('--reveal', 'show leaked secrets in clear, as JSON unless --output names another form')
    .hook('preAction', (called) => {
      const { reveal, output } = called.opts<RevealOption & { output: OutputForm }>()
      if (reveal && output === 'text') called.setOptionValue('output', 'json')
    })
}

const maxValueLength = 500
const maxFields = 200

/** Formats a thing for people, a line for each field that has a value. */
export function fieldLines(shown: unknown): string[] {
  const fields = flattenFields(shown)
  const more = fields.length - maxFields
  return [
    ...formatTable(
      fields
        .slice(0, maxFields)
        .map(([path, value]) => [
          sanitize(path, 60),
          cutWithCount(sanitize(value, Infinity), maxValueLength),
        ]),
    ),
    ...(more > 0 ? [`… and ${more} more fields; --output json has them all`] : []),
  ]
}

/** Flattens to dotted paths; a list of plain values is one field. */
function flattenFields(value: unknown, path = ''): [string, string][] {
  if (value === null || value === undefined || value === '') return []
  if (typeof value !== 'object') return [[path, `${value as string | number | boolean}`]]
  if (Array.isArray(value) && value.every((entry) => typeof entry !== 'object' || entry === null)) {
    return value.length === 0 ? [] : [[path, value.map(String).join(', ')]]
  }
  return Object.entries(value).flatMap(([key, inner]) =>
    flattenFields(inner, path === '' ? key : `${path}.${key}`),
  )
}
