/**
 * What a command found, as it comes: a table for people, or JSON, JSON lines and CSV for machines.
 * Text that others wrote is made harmless to terminals and spreadsheets.
 */
import { csvLine, csvMark, isChangedInCsv } from '../../messages/csv.ts'
import type { Context } from '../context.ts'
import type { Style } from '../terminal.ts'
import { jsonText } from '../json-text.ts'
import { counted, harmless } from '../words.ts'
import type { OutputForm } from './service-command.ts'

export interface Column<Row> {
  title: string
  /** Characters of the table that it gets; what is longer is cut. The last column is as long as it is. */
  width: number
  text: (row: Row) => string
  style?: (row: Row) => Style | undefined
}

export interface Listing<Row> {
  columns: readonly Column<Row>[]
  /** Lines of the table below a row. */
  below?: (row: Row) => readonly string[]
  /** Every field that machines get. */
  json: (row: Row) => Readonly<Record<string, unknown>>
  /** What the CSV takes its cells from, where that is more than `json`. */
  csvFields?: (row: Row) => Readonly<Record<string, unknown>>
  /** Keys of `json` (or `csvFields`) in the CSV, dotted for those of an object within; lists and objects are written as JSON. */
  csv: readonly string[]
}

export interface Printer<Row> {
  add(rows: readonly Row[]): void
  /** `next`: where the rest begins, of a listing that has a rest. */
  end(next: string | null): void
  /** Instead of `end`, where something ended it early: what was printed can be read all the same. */
  breakOff(next: string | null): void
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
        breakOff: () => undefined,
      }
    case 'csv':
      return csvPrinter(terminal, listing)
  }
}

type Terminal = Context['terminal']

function textPrinter<Row>(terminal: Terminal, { columns, below }: Listing<Row>): Printer<Row> {
  let count = 0
  return {
    add(rows) {
      if (count === 0 && rows.length > 0) {
        const titles = columns.map(({ title, width }, at) => cell(title, width, at, columns.length))
        terminal.print(terminal.paint('bold', titles.join('  ').trimEnd()))
      }
      for (const row of rows) {
        const cells = columns.map(({ width, text, style }, at) => {
          const shown = cell(harmless(text(row), 2_000), width, at, columns.length)
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
    breakOff: () => undefined,
  }
}

function cell(text: string, width: number, at: number, columns: number): string {
  if (at === columns - 1) return text
  const letters = Array.from(text)
  return letters.length <= width ? text.padEnd(width) : `${letters.slice(0, width - 1).join('')}…`
}

/** One object, whose items are written as they come. */
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
    breakOff: end,
  }
}

/** Says at the end how many cells are not what the service sent: a revealed secret may be among them. */
function csvPrinter<Row>(
  terminal: Terminal,
  { json, csvFields = json, csv }: Listing<Row>,
): Printer<Row> {
  let isBegun = false
  let changed = 0
  const begin = (): void => {
    if (!isBegun) terminal.print(`${csvMark}${csvLine(csv)}`.trimEnd())
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
      sayChanged()
    },
    breakOff: sayChanged,
  }

  function sayChanged(): void {
    if (changed === 0) return
    const cells = counted(changed, 'cell')
    terminal.complain(
      `${cells} changed so that no spreadsheet runs what is in there; --output ndjson has the exact text`,
    )
  }
}

function valueAt(fields: unknown, path: string): unknown {
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
