/** The report as text, in tables. */
import { mostBytesPerUid } from './plan.ts'
import type { Figure, Row } from './row.ts'

export interface Report {
  machine: { node: string; redis: string; cores: number }
  rows: Row[]
  /** A remembered uid takes no more than is promised. */
  keepsPromise: boolean
}

type Column = [title: string, cell: (row: Row) => string]

const costs: Column[] = [
  ['seconds', ({ span }) => span.seconds.toFixed(1)],
  ['CPU tocsin', (row) => cpu(row, 'tocsin')],
  ['redis', (row) => cpu(row, 'redis')],
  ['sandbox', (row) => cpu(row, 'sandbox')],
  ['RSS tocsin', ({ span }) => mebibytes(span.rss.tocsin)],
  ['redis', ({ span }) => mebibytes(span.rss.redis)],
]

const perEvent = costOfOne('event')
const perItem = costOfOne('item')

const eventsPerSecond: Column = ['events/s', ({ figures }) => number(figures.eventsPerSecond)]
const itemsPerSecond: Column = ['items/s', ({ figures }) => number(figures.eventsPerSecond)]

/** Each table takes the rows that have the figure it is about. */
const tables: { title: string; about: Figure; columns: Column[] }[] = [
  {
    title: 'from the service to the sink',
    about: 'ofCeiling',
    columns: [
      eventsPerSecond,
      ['of ceiling', ({ figures }) => number(figures.ofCeiling, 3)],
      ...perEvent,
      ...costs,
    ],
  },
  {
    title: 'polling, by feed type',
    about: 'polledOfCeiling',
    columns: [
      itemsPerSecond,
      ['of ceiling', ({ figures }) => number(figures.polledOfCeiling, 3)],
      ['pages/s', ({ figures }) => number(figures.pagesPerSecond)],
      ...perItem,
      ...costs,
    ],
  },
  {
    title: 'cost of the sweep',
    about: 'shareOfBudget',
    columns: [
      ['pages', ({ figures }) => number(figures.pages)],
      ['if hourly, of 1 request/s', ({ figures }) => percent(figures.shareOfBudget)],
      itemsPerSecond,
      ...perItem,
      ...costs,
    ],
  },
  {
    title: 'intake alone',
    about: 'commitsPerSecond',
    columns: [
      eventsPerSecond,
      ['commits/s', ({ figures }) => number(figures.commitsPerSecond)],
      ...perEvent,
      ...costs,
    ],
  },
  {
    title: 'bytes in Redis',
    about: 'bytes',
    columns: [['bytes', ({ figures }) => number(figures.bytes, 1)], ...costs],
  },
  {
    title: 'what retention.max_bytes: 1GiB keeps',
    about: 'daysAtOne',
    columns: [
      ['bytes', ({ figures }) => number(figures.bytes, 1)],
      ['days at 1 event/s', ({ figures }) => number(figures.daysAtOne, 1)],
      ['hours at 40/s', ({ figures }) => number(figures.hoursAtForty, 1)],
    ],
  },
]

export function renderReport({ machine, rows, keepsPromise }: Report): string {
  const { node, redis, cores } = machine
  const blocks = tables.map(({ title, about, columns }) => {
    const those = rows.filter(({ figures }) => figures[about] !== undefined)
    return [...table(title, columns, those), '']
  })
  return [
    `Node ${node}, Redis ${redis}, ${cores} cores, all on loopback: compare within one run, by ratios.`,
    '',
    ...blocks.flat(),
    `${keepsPromise ? 'PASS' : 'FAIL'}: a remembered uid takes at most ${mostBytesPerUid} bytes`,
    '',
  ].join('\n')
}

function table(title: string, columns: Column[], rows: Row[]): string[] {
  const cells = [
    [title, ...columns.map(([name]) => name)],
    ...rows.map((row) => [row.label, ...columns.map(([, cell]) => cell(row))]),
  ]
  const widths = cells[0]!.map((_none, i) => Math.max(...cells.map((line) => line[i]!.length)))
  return cells.map((line) =>
    line
      .map((text, i) => (i === 0 ? text.padEnd(widths[i]!) : text.padStart(widths[i]!)))
      .join('  ')
      .trimEnd(),
  )
}

function costOfOne(what: 'event' | 'item'): Column[] {
  return [
    [`µs/${what} tocsin`, (row) => microsecondsPerEvent(row, 'tocsin')],
    ['redis', (row) => microsecondsPerEvent(row, 'redis')],
  ]
}

function cpu({ span }: Row, name: keyof Row['span']['cpuSeconds']): string {
  const seconds = span.cpuSeconds[name]
  return `${seconds.toFixed(1)} s ${Math.round((100 * seconds) / span.seconds)}%`
}

function microsecondsPerEvent({ figures, span }: Row, name: 'tocsin' | 'redis'): string {
  return figures.events === undefined ? '' : number((1e6 * span.cpuSeconds[name]) / figures.events)
}

function mebibytes(bytes: number): string {
  return `${Math.round(bytes / 2 ** 20)} MiB`
}

function percent(share: number | undefined): string {
  return share === undefined ? '' : `${number(100 * share, 1)}%`
}

function number(value: number | undefined, digits = 0): string {
  if (value === undefined) return ''
  return value.toLocaleString('en', {
    minimumFractionDigits: digits,
    maximumFractionDigits: digits,
  })
}
