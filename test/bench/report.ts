/** The rows of the bench in the order of its report, with their targets; and how they are printed. */

import { availableParallelism, loadavg } from 'node:os'

/** What measures a row; `--only` names it, or the row. */
export type Part = (typeof parts)[number]

export const parts = [
  'speed',
  'intake',
  'empty-poll',
  'memory',
  'commands',
  'series',
  'uids',
  'records',
  'fleet-150',
  'fleet-1000',
  'tenants-500',
] as const

export interface Row {
  key: string
  part: Part
  what: string
  unit: 'events/s' | 'ratio' | 'µs' | 'MiB' | 's' | '%' | 'bytes' | ''
  atLeast?: number
  atMost?: number
}

/** Where it was measured; compare within one run, by ratios. */
export function describeMachine(redisVersion: string): string {
  const cores = availableParallelism()
  const load = loadavg()[0] ?? 0
  const others =
    load > cores ? ` Others use it: the load is ${load.toFixed(0)}, and times say little.` : ''
  return `Node ${process.version}, Redis ${redisVersion}, ${cores} cores, all on loopback.${others}`
}

/** What was measured, by the key of its row. */
export type Figures = Record<string, number>

export interface Report {
  machine: string
  figures: Figures
  /** Why a part could not be measured. */
  failures: Partial<Record<Part, string>>
}

/** What an installation of many accounts costs while nothing happens. */
export type StandingKey = (typeof standing)[number]['key']
export type Standing = Record<StandingKey, number>

const standing = [
  { key: 'start', what: 'start', unit: 's', atMost: 5 },
  { key: 'cpu', what: 'idle CPU of a core', unit: '%', atMost: 25 },
  { key: 'rss', what: 'resident memory', unit: 'MiB', atMost: 450 },
  { key: 'scrape', what: 'scrape', unit: 's', atMost: 0.5 },
  { key: 'up', what: 'tocsin_redis_up in every scrape', unit: '', atLeast: 1 },
  { key: 'series', what: 'series', unit: '' },
  { key: 'connections', what: 'connections to Redis', unit: '', atMost: 10 },
  { key: 'commands', what: 'commands of Redis a second, of all replicas', unit: '' },
  { key: 'searches', what: 'searches a second, of all replicas', unit: '' },
  { key: 'sigterm', what: 'SIGTERM', unit: 's', atMost: 10 },
] as const satisfies Omit<Row, 'part'>[]

export const standingRows: readonly (Omit<Row, 'part'> & { key: StandingKey })[] = standing

function fleetRows(part: Part, of: string): Row[] {
  return standingRows.map((row) => ({
    ...row,
    part,
    key: `${part}-${row.key}`,
    what: `${of}: ${row.what}`,
  }))
}

export const rows: readonly Row[] = [
  {
    key: 'plain',
    part: 'speed',
    what: 'plain loop: fetch a page, POST each event, next page; no durability',
    unit: 'events/s',
  },
  { key: 'fetch', part: 'speed', what: 'bare fetch loop', unit: 'events/s' },
  {
    key: 'single',
    part: 'speed',
    what: 'single webhooks, of the plain loop',
    unit: 'ratio',
    atLeast: 1,
  },
  {
    key: 'batched',
    part: 'speed',
    what: 'webhooks of up to 50 events, of the plain loop',
    unit: 'ratio',
    atLeast: 2,
  },
  {
    key: 'cpu-node',
    part: 'speed',
    what: 'CPU of Node per event, batched',
    unit: 'µs',
    atMost: 250,
  },
  {
    key: 'cpu-redis',
    part: 'speed',
    what: 'CPU of Redis per event, batched, one week of fingerprints',
    unit: 'µs',
    atMost: 150,
  },
  {
    key: 'cpu-redis-13',
    part: 'speed',
    what: '  with 13 weeks, of that with one',
    unit: 'ratio',
    atMost: 1.5,
  },
  {
    key: 'intake',
    part: 'intake',
    what: "one feed's intake, of the bare fetch loop",
    unit: 'ratio',
    atLeast: 0.3,
  },
  {
    key: 'poll-scripts',
    part: 'empty-poll',
    what: 'scripts of a poll that finds nothing',
    unit: '',
    atMost: 3,
  },
  {
    key: 'poll-commands',
    part: 'empty-poll',
    what: 'commands of a poll that finds nothing, those of scripts included',
    unit: '',
    atMost: 30,
  },
  { key: 'rss-idle', part: 'memory', what: 'resident memory, idle', unit: 'MiB', atMost: 140 },
  {
    key: 'rss-load',
    part: 'memory',
    what: 'resident memory, held load of 800 events/s',
    unit: 'MiB',
    atMost: 250,
  },
  { key: 'load-rate', part: 'memory', what: '  delivered meanwhile', unit: 'events/s' },
  {
    key: 'command-check',
    part: 'commands',
    what: 'start of a command: check',
    unit: 's',
    atMost: 0.4,
  },
  { key: 'command-feeds', part: 'commands', what: '  feeds list', unit: 's', atMost: 0.4 },
  { key: 'command-sinks', part: 'commands', what: '  sinks list', unit: 's', atMost: 0.4 },
  { key: 'command-silences', part: 'commands', what: '  silences list', unit: 's', atMost: 0.4 },
  { key: 'command-routes', part: 'commands', what: '  routes show', unit: 's', atMost: 0.4 },
  ...fleetRows('fleet-150', '150 organizations, 5 feeds and a sink each'),
  ...fleetRows('fleet-1000', '1,000 organizations, 5 feeds and a sink each'),
  ...fleetRows('tenants-500', 'one organization of 500 tenants, a feed and a sink each'),
  { key: 'series-feed', part: 'series', what: 'series per feed', unit: '', atMost: 15 },
  { key: 'series-sink', part: 'series', what: 'series per sink', unit: '', atMost: 30 },
  {
    key: 'uid-1000',
    part: 'uids',
    what: 'bytes per remembered uid, 1,000 a week',
    unit: 'bytes',
    atMost: 20,
  },
  {
    key: 'uid-10000',
    part: 'uids',
    what: 'bytes per remembered uid, 10,000 a week',
    unit: 'bytes',
    atMost: 14,
  },
  {
    key: 'uid-1000000',
    part: 'uids',
    what: 'bytes per remembered uid, 1,000,000 a week',
    unit: 'bytes',
    atMost: 12,
  },
  {
    key: 'record-1',
    part: 'records',
    what: 'all bytes of a settled event of one destination',
    unit: 'bytes',
  },
  {
    key: 'record-3',
    part: 'records',
    what: 'all bytes of a settled event of three destinations',
    unit: 'bytes',
  },
  {
    key: 'record-3-expired',
    part: 'records',
    what: '  after its content has expired',
    unit: 'bytes',
  },
]

/** The rows that `--only` names, by key or by part; all of them where it names none. */
export function chosenRows(names: readonly string[]): Row[] {
  const unknown = names.filter(
    (name) => !rows.some(({ key, part }) => key === name || part === name),
  )
  if (unknown.length > 0) {
    throw new Error(
      `--only ${unknown.join(', ')}: write one of ${parts.join(', ')}, or the key of a row`,
    )
  }
  return rows.filter(
    ({ key, part }) => names.length === 0 || names.includes(key) || names.includes(part),
  )
}

export function renderReport(
  { machine, figures, failures }: Report,
  chosen: readonly Row[],
): string {
  const lines = chosen.map((row) => [row.key, row.what, ...judged(row, figures[row.key])])
  return [
    machine,
    '',
    ...aligned([['row', 'what', 'measured', 'target', ''], ...lines]),
    ...Object.entries(failures).map(([part, why]) => `\n${part} was not measured: ${why}`),
    '',
  ].join('\n')
}

/** What was measured, the target, and whether it is met; what could not be measured has missed it. */
export function judged(row: Omit<Row, 'part'>, value: number | undefined): string[] {
  const { atLeast, atMost, unit } = row
  const measured = value === undefined ? '-' : written(value, unit)
  const target = atLeast ?? atMost
  if (target === undefined) return [measured, '', '']
  const isMet = value !== undefined && (atLeast === undefined ? value <= target : value >= target)
  const bound = `${atLeast === undefined ? '≤' : '≥'} ${written(target, unit)}`
  return [measured, bound, isMet ? 'met' : 'missed']
}

const digits: Record<Row['unit'], number> = {
  ratio: 2,
  s: 2,
  bytes: 1,
  '': 1,
  '%': 1,
  MiB: 0,
  µs: 0,
  'events/s': 0,
}

function written(value: number, unit: Row['unit']): string {
  const shown = value.toLocaleString('en', { maximumFractionDigits: digits[unit] })
  if (unit === 'ratio' || unit === '') return shown
  return unit === '%' ? `${shown}%` : `${shown} ${unit}`
}

/** Columns with two spaces between them: the first two and the last to the left, figures to the right. */
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
