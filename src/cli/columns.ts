/** Columns that are declared once: the fields of JSON, and the table that people read. */
import type { Context } from './context.ts'
import { formatTable, sanitize } from './terminal.ts'

/** A field of JSON, and the column of the table where it has a title. */
export interface Column<Row> {
  key: string
  json: (row: Row) => unknown
  title?: string
  /** What people read; else the value of the JSON. */
  text?: (row: Row) => string
}

export function toJson<Row>(columns: readonly Column<Row>[], row: Row): Record<string, unknown> {
  return Object.fromEntries(columns.map(({ key, json }) => [key, json(row)]))
}

/** The titles, then a line for each row; as wide as the terminal, unless `wide`. */
export function tableLines<Row>(
  { terminal }: Context,
  columns: readonly Column<Row>[],
  rows: readonly Row[],
  { wide = false }: { wide?: boolean | undefined } = {},
): string[] {
  const titled = columns.filter(({ title }) => title !== undefined)
  const [head = '', ...body] = formatTable(
    [
      titled.map(({ title = '' }) => title),
      ...rows.map((row) => titled.map((column) => cellOf(column, row))),
    ],
    wide ? undefined : terminal.columns,
  )
  return [terminal.paint('bold', head), ...body]
}

function cellOf<Row>({ json, text }: Column<Row>, row: Row): string {
  const value = text ? text(row) : json(row)
  return sanitize(typeof value === 'string' || typeof value === 'number' ? `${value}` : '-', 600)
}
