/** The table of columns that people read. */
import type { Column } from '../operator/reports/columns.ts'
import type { Context } from './context.ts'
import { formatTable, sanitize } from './terminal.ts'

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
