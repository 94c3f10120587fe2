/** The alert rules and their cases as the files say them, and what an expression of PromQL names. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parse } from 'yaml'
import { type MetricDefinition, metricTable } from '../../src/lib/metric-table.ts'

export const prometheusFolder = join(import.meta.dirname, '../../deploy/prometheus')

export interface AlertRule {
  alert: string
  expr: string
  for?: string
  labels: Record<string, string>
  annotations: Record<string, string>
}

export interface RuleCase {
  name: string
  promql_expr_test: { expr: string; exp_samples: unknown[] }[]
}

/** A series of its own: `<labels joined by _>:<what>:<unit>`, or an old name of a metric. */
export interface RecordingRule {
  record: string
  expr: string
}

export function alertRules(): AlertRule[] {
  return allRules().filter((rule) => 'alert' in rule)
}

export function recordingRules(): RecordingRule[] {
  return allRules().filter((rule) => 'record' in rule)
}

function allRules(): (AlertRule | RecordingRule)[] {
  const { groups } = read<{ groups: { rules: (AlertRule | RecordingRule)[] }[] }>('rules.yaml')
  return groups.flatMap(({ rules }) => rules)
}

export function ruleTestFiles(): string[] {
  return readdirSync(prometheusFolder).filter((file) => file.endsWith('.test.yaml'))
}

export function ruleCases(): RuleCase[] {
  return ruleTestFiles().flatMap((file) => read<{ tests: RuleCase[] }>(file).tests)
}

function read<Content>(file: string): Content {
  return parse(readFileSync(join(prometheusFolder, file), 'utf8')) as Content
}

/** Metrics of Prometheus itself and of Node, which the table does not have. */
const others: Record<string, string[]> = { up: [], process_start_time_seconds: [] }

/** What every scraped series carries. */
const targetLabels = ['job', 'instance']

/** Labels of a series by that name; undefined: no such metric. */
function labelsOf(series: string): string[] | undefined {
  const [level = '', what] = series.split(':')
  if (what !== undefined) return isRecorded(series) ? level.split('_') : undefined
  const own = others[series] ?? tocsinLabels(series)
  return own && [...own, ...targetLabels]
}

function isRecorded(series: string): boolean {
  return recordingRules().some(({ record }) => record === series)
}

function tocsinLabels(series: string): string[] | undefined {
  const table: Record<string, MetricDefinition> = metricTable
  const name = series.replace(/^tocsin_/, '')
  const [, base = '', suffix] = /^(.*)_(bucket|sum|count)$/.exec(name) ?? []
  const histogram = table[base]?.kind === 'histogram' ? table[base] : undefined
  const definition = table[name] ?? histogram
  if (!definition || !series.startsWith('tocsin_')) return undefined
  return [...Object.keys(definition.labels), ...(histogram && suffix === 'bucket' ? ['le'] : [])]
}

export interface Selector {
  series: string
  labels: string[]
}

/** The series that an expression selects, with the labels in braces. */
export function selectorsOf(expr: string): Selector[] {
  const found = expr.matchAll(/(?<![\w:])(job_[\w:]+|tocsin_\w+|up|process_\w+)\b(?:\{([^}]*)\})?/g)
  return [...found].map(([, series = '', braces = '']) => ({
    series,
    labels: [...braces.matchAll(/(\w+)\s*(?:=~|!~|!=|=)/g)].map(([, label = '']) => label),
  }))
}

export interface Aggregation {
  labels: string[]
  /** What is aggregated. */
  inner: string
}

/** Every `by (a, b) (…)` of an expression, nested ones too. */
export function aggregationsOf(expr: string): Aggregation[] {
  return [...expr.matchAll(/\bby \(([^)]*)\)\s*\(/g)].map((match) => ({
    labels: (match[1] ?? '').split(',').map((label) => label.trim()),
    inner: balanced(expr.slice(match.index + match[0].length)),
  }))
}

/** The text up to the parenthesis that closes the one before it. */
function balanced(text: string): string {
  let depth = 1
  const end = text.split('').findIndex((sign) => {
    if (sign === '(') depth += 1
    if (sign === ')') depth -= 1
    return depth === 0
  })
  return text.slice(0, end)
}

/** What an expression says wrongly of the metrics; empty: all of it holds. */
export function mistakesIn(expr: string): string[] {
  const selected = selectorsOf(expr)
  const unknown = selected.filter(({ series }) => labelsOf(series) === undefined)
  const strange = selected.flatMap(({ series, labels }) =>
    labels.filter((label) => labelsOf(series)?.includes(label) === false).map((l) => [series, l]),
  )
  const notThere = aggregationsOf(expr).flatMap(({ labels, inner }) =>
    selectorsOf(inner).flatMap(({ series }) =>
      labels.filter((label) => labelsOf(series)?.includes(label) === false).map((l) => [series, l]),
    ),
  )
  return [
    ...(selected.length === 0 ? ['no metric at all'] : []),
    ...unknown.map(({ series }) => `no metric ${series}`),
    ...[...strange, ...notThere].map(([series, label]) => `${series} has no label ${label}`),
  ]
}
