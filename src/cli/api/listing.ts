/**
 * Prints what a command found, row by row: a table for people, or JSON, JSON lines and CSV for
 * programs. Text from outside is sanitized for terminals and spreadsheets.
 */
import type { Command } from 'commander'
import type { z } from 'zod'
import { severityRank } from '../../event.ts'
import type { Fields, Operation } from '../../upstream/resources/operation.ts'
import { columnsOf } from './fields.ts'
import { type Asked, maskAnswer } from './masks.ts'
import { itemProblem } from '../../feed-types/events.ts'
import { escapeCharacters } from '../../lib/logger.ts'
import { csvLine, byteOrderMark, isChangedInCsv } from '../../messages/csv.ts'
import { cutWithCount } from '../../messages/sanitize.ts'
import { parseTimestamp } from '../../upstream/timestamps.ts'
import type { Context } from '../context.ts'
import type { WideOption } from '../options.ts'
import { cutToWidth, measureWidth } from '../../lib/text-width.ts'
import {
  formatTable,
  jsonText,
  pluralize,
  sanitize,
  shrinkColumns,
  type Style,
} from '../terminal.ts'
import type { OutputForm } from './api-command.ts'

export interface Column<Row> {
  title: string
  /**
   * Width of the column; longer text is cut. The last column has what the terminal leaves.
   */
  width: number
  text: (row: Row) => string
  style?: (row: Row) => Style | undefined
}

export interface Listing<Row> {
  columns: readonly Column<Row>[]
  /** Lines printed below a row of the table. */
  below?: (row: Row) => readonly string[]
  /** Every field, for programs. */
  json: (row: Row) => Readonly<Record<string, unknown>>
  /** Source of the CSV cells where it is more than `json`. */
  csvFields?: (row: Row) => Readonly<Record<string, unknown>>
  /**
   * CSV columns: keys of `json` (or `csvFields`), dotted for nested objects; lists and objects are
   * written as JSON.
   */
  csv: readonly string[]
}

interface Printer<Row> {
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
  { wide }: WideOption,
): Printer<Row> {
  switch (form) {
    case 'text':
      return textPrinter(terminal, listing, wide ? undefined : terminal.columns)
    case 'json':
      return jsonPrinter(terminal, listing)
    case 'ndjson':
      return {
        add: (rows) => rows.forEach((row) => terminal.print(jsonText(listing.json(row)))),
        end: () => undefined,
        stopEarly: () => undefined,
      }
    case 'csv':
      return csvPrinter(terminal, listing)
  }
}

type Terminal = Context['terminal']

function textPrinter<Row>(
  terminal: Terminal,
  { columns, below }: Listing<Row>,
  terminalColumns = Infinity,
): Printer<Row> {
  let count = 0
  const natural = [...columns.slice(0, -1).map(({ width }) => width), leastLastWidth]
  const widths = shrinkColumns(natural, terminalColumns)
  const taken = widths.slice(0, -1).reduce((sum, width) => sum + width + 2, 0)
  const lastWidth = Math.max(widths.at(-1) ?? 0, terminalColumns - taken)
  const cell = (text: string, at: number): string => {
    if (at === columns.length - 1) return cutToWidth(text, lastWidth)
    const width = widths[at] ?? 0
    const cut = cutToWidth(text, terminalColumns === Infinity ? Infinity : width)
    return cut + ' '.repeat(Math.max(0, width - measureWidth(cut)))
  }
  return {
    add(rows) {
      if (count === 0 && rows.length > 0) {
        const titles = columns.map(({ title }, at) => cell(title, at))
        terminal.print(terminal.paint('bold', titles.join('  ').trimEnd()))
      }
      for (const row of rows) {
        const cells = columns.map(({ text, style }, at) => {
          const shown = cell(sanitize(text(row), 2_000), at)
          const painted = style?.(row)
          return painted === undefined ? shown : terminal.paint(painted, shown)
        })
        terminal.print(cells.join('  ').trimEnd())
        for (const line of below?.(row) ?? []) terminal.print(`    ${line}`)
      }
      count += rows.length
    },
    end() {
      if (count === 0) terminal.print('nothing was found')
    },
    stopEarly: () => undefined,
  }
}

/** A narrower last column says little: the others give way first. */
const leastLastWidth = 16

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

/**
 * At the end, reports how many cells were changed for spreadsheets: a revealed secret may be among
 * them.
 */
function csvPrinter<Row>(
  terminal: Terminal,
  { json, csvFields = json, csv }: Listing<Row>,
): Printer<Row> {
  let isBegun = false
  let changed = 0
  const begin = (): void => {
    if (!isBegun) terminal.print(`${byteOrderMark}${csvLine(csv)}`.trimEnd())
    isBegun = true
  }
  return {
    add(rows) {
      begin()
      for (const row of rows) {
        const fields = csvFields(row)
        const cells = csv.map((path) => cellText(valueAt(fields, path)))
        changed += cells.filter(isChangedInCsv).length
        terminal.print(csvLine(cells).trimEnd())
      }
    },
    end() {
      begin()
      warnChanged()
    },
    stopEarly: warnChanged,
  }

  function warnChanged(): void {
    if (changed === 0) return
    const cells = pluralize(changed, 'cell')
    terminal.printError(
      `${cells} changed so that no spreadsheet runs what is in there; --output ndjson has the exact text`,
    )
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

/** A row of a table: the item as it is shown, and masked. The table has it masked. */
export interface Shown<Item = unknown> {
  shown: Item
  masked: Item
}

export function toShown<Item>(
  row: Operation,
  item: Item,
  asked: Asked,
  { reveal }: RevealOption,
): Shown<Item> {
  const masked = maskAnswer(row, item, asked) as Item
  return { shown: reveal ? item : masked, masked }
}

const maxColumns = 6

/** A plain table of the first fields; CSV has all of them. */
export function rowListing({ item }: Operation): Listing<Shown> {
  const known = item ? columnsOf(item) : []
  const columns = known.length > 0 ? known : [{ name: 'value', isPlain: true }]
  const plain = columns.filter(({ isPlain }) => isPlain).slice(0, maxColumns)
  const lastWords = plain.map(({ name }) => name.split('.').at(-1) ?? name)
  return {
    columns: plain.map(({ name }, at) => ({
      title: (lastWords.filter((word) => word === lastWords[at]).length > 1
        ? name
        : (lastWords[at] ?? name)
      )
        .replaceAll(/[._]/g, ' ')
        .toUpperCase(),
      width: /(^|[._])id$/.test(name) ? 12 : 28,
      text: ({ masked }) => cellText(valueAt(toObject(masked), name)),
    })),
    below: ({ shown, masked }) => (shown === masked ? [] : revealedLines(shown, masked)),
    json: ({ shown }) => toObject(shown),
    csv: columns.map(({ name }) => name),
  }
}

export function toObject(item: unknown): Fields {
  return typeof item === 'object' && item !== null ? (item as Fields) : { value: item }
}

/** Says `none given` for an empty list: how the API treats one is not documented. */
export function formatList(list: readonly (string | number)[] | null | undefined): string {
  return list === undefined || list === null || list.length === 0 ? 'none given' : list.join(', ')
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

/** Secrets in API responses are masked unless `reveal`. */

export interface RevealOption {
  reveal?: true
}

export function addRevealOption(command: Command, help = 'show leaked secrets in clear'): Command {
  return command.option('--reveal', help)
}

/** Characters that are invisible, unusual spaces, or the fourth and later marks on one letter. */
const deceptiveCharacters =
  /[\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]|(?! )\p{Zs}|(?<=\p{M}{4})\p{M}/gu
const quoteOrSpaceAtEnds = /^["\s]|\s$/u

/**
 * Formats a secret on one line without losing a character: as it is, or quoted as JSON where it
 * holds characters that a terminal would not show.
 */
export function formatRevealed(secret: string): string {
  const isPlain = secret.search(deceptiveCharacters) === -1 && !quoteOrSpaceAtEnds.test(secret)
  return isPlain ? secret : escapeCharacters(jsonText(secret), deceptiveCharacters)
}

const maxValueLength = 500
const maxPathLength = 60
const maxFields = 200

/**
 * Formats a thing for people, a line for each field that has a value. A value that masking changes
 * is a secret, so it is not cut when revealed.
 */
export function fieldLines(shown: unknown, masked: unknown): string[] {
  const fields = flattenFields(shown)
  const maskedFields = new Map(flattenFields(masked))
  const more = fields.length - maxFields
  return [
    ...formatTable(
      fields
        .slice(0, maxFields)
        .map(([path, value]) => [
          sanitize(path, maxPathLength),
          maskedFields.get(path) === value
            ? cutWithCount(sanitize(value, Infinity), maxValueLength)
            : formatRevealed(value),
        ]),
    ),
    ...(more > 0 ? [`… and ${more} more fields; --output json has them all`] : []),
  ]
}

/** The fields that masking changes, in full, each on a line of its own. */
function revealedLines(shown: unknown, masked: unknown): string[] {
  const maskedFields = new Map(flattenFields(masked))
  return flattenFields(shown).flatMap(([path, value]) =>
    maskedFields.get(path) === value
      ? []
      : [`${sanitize(path, maxPathLength)}: ${formatRevealed(value)}`],
  )
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
