/** Numbers as coordinates of SVG bars (pure). A plot is 100 high, and its drawing stretches it. */

export interface Segment {
  /** What it counts; also its class. */
  name: string
  y: number
  height: number
}

export interface Column {
  x: number
  width: number
  segments: Segment[]
  /** "3 critical, 2 high"; empty: nothing. */
  text: string
}

export interface ColumnPlot {
  /** Of the view box. */
  width: number
  columns: Column[]
  /** Over all columns, in the order of the names. */
  sums: { name: string; count: number }[]
  total: number
  /** The sum of the highest column. */
  highest: number
}

const height = 100
const step = 10
const gap = 2

/** One day alone is no wall. */
const fewestColumns = 7

/** The least that can be seen: one critical event among hundreds must not vanish. */
const leastHeight = 2

type Counts = Readonly<Record<string, number>>

/** Columns of stacked segments: the first of `names` at the bottom. Counts that are 0 have no segment. */
export function plotColumns(rows: readonly Counts[], names: readonly string[]): ColumnPlot {
  const totals = rows.map((row) => sum(names.map((name) => countOf(row, name))))
  const highest = Math.max(0, ...totals)
  const perEvent = (height - leastHeight * names.length) / Math.max(1, highest)
  const sums = names.map((name) => ({ name, count: sum(rows.map((row) => countOf(row, name))) }))
  return {
    width: Math.max(fewestColumns, rows.length) * step,
    columns: rows.map((row, at) => ({
      x: at * step + gap / 2,
      width: step - gap,
      segments: stack(row, names, perEvent),
      text: describe(row, names),
    })),
    sums,
    total: sum(totals),
    highest,
  }
}

function stack(row: Counts, names: readonly string[], perEvent: number): Segment[] {
  let top = height
  return names
    .filter((name) => countOf(row, name) > 0)
    .map((name) => {
      const tall = leastHeight + countOf(row, name) * perEvent
      top -= tall
      return { name, y: round(top), height: round(tall) }
    })
}

function describe(row: Counts, names: readonly string[]): string {
  return names
    .filter((name) => countOf(row, name) > 0)
    .map((name) => `${countOf(row, name)} ${name}`)
    .join(', ')
}

/** The length of each bar in percent of the longest; what is not 0 can be seen. */
export function plotLengths(counts: readonly number[]): number[] {
  const longest = Math.max(1, ...counts)
  return counts.map((count) => (count <= 0 ? 0 : Math.max(1, round((100 * count) / longest))))
}

function countOf(row: Counts, name: string): number {
  return Math.max(0, row[name] ?? 0)
}

function sum(counts: readonly number[]): number {
  return counts.reduce((total, count) => total + count, 0)
}

function round(value: number): number {
  return Math.round(value * 100) / 100
}
