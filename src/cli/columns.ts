/** The table of columns that people read. */
import type { Column } from '../operator/reports/columns.ts'
import type { Context } from './context.ts'
import { formatTable, sanitize } from './terminal.ts'

/** The titles, then a line for each row. */
export function tableLines<Row>(
  { terminal }: Context,
  columns: readonly Column<Row>[],
  rows: readonly Row[],
): string[] {
  const titled = columns.filter(({ title }) => title !== undefined)
  const [head = '', ...body] = formatTable([
    titled.map(({ title = '' }) => title),
    ...rows.map((row) => titled.map((column) => cellOf(column, row))),
  ])
  return [terminal.paint('bold', head), ...body]
}

function cellOf<Row>({ json, text }: Column<Row>, row: Row): string {
  const value = text ? text(row) : json(row)
  return sanitize(typeof value === 'string' || typeof value === 'number' ? `${value}` : '-', 600)
}
