/** The rows of the bench in the order of its report, with their targets; and how they are printed. */

import { availableParallelism } from 'node:os'
import { delayScenes } from './delay.ts'

/** What measures a row; `--only` names it, its first word, or the row. */
export const parts = [
  'speed',
  'alertmanager',
  'poll-post',
  'command-ledger',
  'empty-poll',
  'memory',
  'uids',
  'records',
  'fleet-1000',
  'fleet-tenants',
  'delay',
  'page',
] as const

export type Part = (typeof parts)[number]

type Unit = 'events/s' | 'ratio' | 'µs' | 'MiB' | 's' | 'ms' | '%' | 'kB' | 'bytes' | ''
interface Target {
  atLeast?: number
  atMost?: number
  /** Better still. */
  aim?: number | undefined
}

export interface Row {
  key: string
  part: Part
  what: string
  unit: Unit
  target: Target | undefined
}

/** Key, unit, what it is, and its target. */
type Cells = readonly [key: string, unit: Unit, what: string, target?: Target | undefined]

const atLeast = (value: number, aim?: number): Target => ({ atLeast: value, aim })
const atMost = (value: number, aim?: number): Target => ({ atMost: value, aim })

/** What an installation of many accounts costs while nothing happens. */
const standing: readonly Cells[] = [
  ['start', 's', 'start until it polls', atMost(5)],
  ['cpu', '%', 'idle CPU of a core', atMost(20)],
  ['rss', 'MiB', 'resident memory', atMost(350)],
  ['scrape', 's', 'slowest scrape', atMost(0.5)],
  ['up', '', 'tocsin_redis_up in every scrape', atLeast(1)],
  ['series', '', 'series'],
  ['connections', '', 'connections to Redis', atMost(10)],
  ['commands', '', 'commands of Redis a second'],
  ['searches', '', 'searches a second'],
  ['sigterm', 's', 'SIGTERM until it is gone', atMost(10)],
]

const delays: readonly Cells[] = [
  ['delay', 's', 'an event until its webhook, mean'],
  ['delay-longest', 's', '  longest'],
]

const byPart: Record<Part, readonly Cells[]> = {
  speed: [
    ['plain', 'events/s', 'plain loop: fetch a page, POST each event; keeps nothing'],
    ['pipeline', 'events/s', 'BullMQ pipeline of SET NX, addBulk and 32 signed POSTs at once'],
    ['pipeline-node', 'µs', '  its CPU of Node per event'],
    ['pipeline-redis', 'µs', '  its CPU of Redis per event'],
    ['single', 'ratio', 'single webhooks, of the pipeline', atLeast(0.9, 1.1)],
    ['batched', 'ratio', 'webhooks of up to 50 events, of the pipeline', atLeast(1.1, 1.5)],
    ['intake', 'ratio', 'intake alone, of the intake of the pipeline', atLeast(0.85, 1)],
    ['cpu-node', 'µs', 'CPU of Node per event, batched', atMost(300, 250)],
    ['cpu-node-single', 'µs', '  single'],
    ['cpu-redis', 'µs', 'CPU of Redis per event, batched', atMost(130, 110)],
    ['cpu-redis-single', 'µs', '  single'],
    ['cpu-redis-13', 'µs', '  more with 13 weeks of fingerprints, batched', atMost(70)],
    ['full-event-node', 'µs', 'CPU of Node more for a full event, single', atMost(500)],
    ['full-event-redis', 'µs', '  CPU of Redis', atMost(150)],
  ],
  alertmanager: [
    ['alertmanager', 'events/s', 'Alertmanager, all in memory, a group for each event'],
  ],
  'poll-post': [
    ['poll-post-p50', 'ms', 'from page to POST, one event at a time, median', atMost(10)],
    ['poll-post-worst', 'ms', '  worst of a hundred', atMost(20)],
  ],
  'command-ledger': [
    ['command-ledger-1', 's', 'a command that asks the ledger, 1 account', atMost(0.3)],
    ['command-ledger-300', 's', '  300 accounts', atMost(1)],
  ],
  'empty-poll': [
    ['poll-scripts', '', 'scripts of a poll that finds nothing', atMost(3)],
    ['poll-commands', '', '  commands, those of scripts included', atMost(30)],
  ],
  memory: [
    ['rss-idle', 'MiB', 'resident memory, idle', atMost(125, 110)],
    ['rss-load', 'MiB', 'resident memory, held load of 800 events/s', atMost(250)],
    ['load-rate', 'events/s', '  delivered meanwhile'],
  ],
  uids: [
    ['uid-1000', 'bytes', 'bytes per remembered uid, 1,000 a week', atMost(20)],
    ['uid-10000', 'bytes', '  10,000 a week', atMost(14)],
    ['uid-1000000', 'bytes', '  1,000,000 a week', atMost(12)],
  ],
  records: [
    ['record-1', 'bytes', 'all bytes of a settled event of one destination', atMost(1_500)],
    ['record-3', 'bytes', '  of three destinations'],
    ['record-3-expired', 'bytes', '  of three, after its content has expired'],
  ],
  'fleet-1000': within('fleet-1000', '1,000 organizations, 5 feeds and a sink each', [
    ...standing,
    ...delays,
  ]),
  'fleet-tenants': within('fleet-tenants', '500 tenants of one organization, a feed each', [
    ...standing,
    ...delays,
    ['delay-bound', 'ratio', '  longest, of 1.5 · N / R', atMost(1)],
  ]),
  delay: delayScenes.flatMap((scene): Cells[] => {
    const most = scene === 'poisson' || scene === 'empty-page' ? 1.15 : 1.25
    const isBounded = scene !== 'session' && scene !== 'diurnal'
    return [
      [
        `delay-${scene}-bound`,
        'ratio',
        `${scene}: mean, of D*`,
        isBounded ? atMost(most) : undefined,
      ],
      [`delay-${scene}-longest`, 'ratio', '  longest, of a round of all feeds', atMost(1.6)],
      [`delay-${scene}-more`, 's', '  mean more than round robin', atMost(0)],
    ]
  }),
  page: within('page', 'the page over 100,000 records', [
    ['bytes', 'kB', 'the largest answer', atMost(60)],
    ['p95', 'ms', 'p95 of the slowest view', atMost(150)],
    ['worst', 'ms', '  worst'],
    ['redis-cpu', 'ms', 'CPU of Redis for an answer of the dearest view, mean'],
  ]),
}

/** The first row says what there are many of. */
function within(part: Part, of: string, cells: readonly Cells[]): Cells[] {
  return cells.map(([key, unit, what, target], at) => [
    `${part}-${key}`,
    unit,
    at === 0 ? `${of}: ${what}` : `  ${what}`,
    target,
  ])
}

export const rows: readonly Row[] = parts.flatMap((part) =>
  byPart[part].map(([key, unit, what, target]) => ({ key, part, what, unit, target })),
)

/** What was measured, or why it was not, by the key of its row. */
export type Figures = Record<string, number | string>

/** Of an even number of values the mean of the two in the middle. */
export function median(values: readonly number[]): number {
  const sorted = values.toSorted((left, right) => left - right)
  const middle = (sorted.length - 1) / 2
  return (sorted[Math.floor(middle)]! + sorted[Math.ceil(middle)]!) / 2
}

export interface Report {
  machine: string
  figures: Figures
  /** Why a part could not be measured. */
  failures: Partial<Record<Part, string>>
  /** What is behind the figures of a part, line by line. */
  tables?: Partial<Record<Part, string>>
}

/** Where it was measured. `load`: the share of this machine that others used, 0 to 1. */
export function describeMachine(redisVersion: string, load: number): string {
  const used = written(100 * load, '%')
  return `Node ${process.version}, Redis ${redisVersion}, ${availableParallelism()} cores, of which others used ${used}; all on loopback.`
}

/** The rows that `--only` names; all of them where it names none. */
export function chosenRows(names: readonly string[]): Row[] {
  const isNamed =
    (name: string) =>
    ({ key, part }: Row) =>
      key === name || part === name || part.startsWith(`${name}-`)
  const unknown = names.filter((name) => !rows.some(isNamed(name)))
  if (unknown.length > 0) {
    const known = `write one of ${parts.join(', ')}, fleet, or the key of a row`
    throw new Error(`--only ${unknown.join(', ')}: ${known}`)
  }
  return rows.filter((row) => names.length === 0 || names.some((name) => isNamed(name)(row)))
}

export function renderReport(
  { machine, figures, failures, tables = {} }: Report,
  chosen: readonly Row[],
): string {
  const lines = chosen.map((row) => [row.key, row.what, ...judged(row, figures[row.key])])
  return [
    machine,
    '',
    ...aligned([['row', 'what', 'measured', 'target', 'aim', ''], ...lines]),
    ...Object.entries(tables).map(([part, table]) => `\n${part}\n\n${table}`),
    ...Object.entries(failures).map(([part, why]) => `\n${part} was not measured: ${why}`),
    '',
  ].join('\n')
}

/** What was measured, the target, the aim, and whether it is met; what could not be measured has missed it. */
export function judged({ target, unit }: Row, value: number | string | undefined): string[] {
  const measured = typeof value === 'number' ? written(value, unit) : (value ?? '-')
  if (target === undefined) return [measured, '', '', '']
  const { atLeast: least = -Infinity, atMost: most = Infinity, aim } = target
  const isMet = typeof value === 'number' && value >= least && value <= most
  const bound =
    target.atLeast === undefined ? `≤ ${written(most, unit)}` : `≥ ${written(least, unit)}`
  const aimed = aim === undefined ? '' : written(aim, unit)
  return [measured, bound, aimed, isMet ? 'met' : 'missed']
}

const digits: Record<Unit, number> = {
  ratio: 2,
  s: 2,
  bytes: 1,
  '': 1,
  '%': 1,
  kB: 1,
  ms: 0,
  MiB: 0,
  µs: 0,
  'events/s': 0,
}

function written(value: number, unit: Unit): string {
  const shown = value.toLocaleString('en', { maximumFractionDigits: digits[unit] })
  if (unit === 'ratio' || unit === '') return shown
  return unit === '%' ? `${shown}%` : `${shown} ${unit}`
}

/** Columns with two spaces between them: words to the left, figures to the right. */
export function aligned(lines: readonly string[][]): string[] {
  const widths = lines[0]!.map((_none, i) => Math.max(...lines.map((line) => line[i]!.length)))
  return lines.map((line) =>
    line
      .map((cell, i) =>
        i < 2 || i === line.length - 1 ? cell.padEnd(widths[i]!) : cell.padStart(widths[i]!),
      )
      .join('  ')
      .trimEnd(),
  )
}
