/** The alert rules and their cases as the files say them, and what an expression of PromQL names. */
import { execFile } from 'node:child_process'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { parse, stringify } from 'yaml'
import type { MetricDefinition } from '../../src/lib/metrics/metric-kinds.ts'
import { metricTable } from '../../src/lib/metrics/metric-table.ts'

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

/** A series of its own: `<labels joined by _>:<what>:<unit>`. */
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

type Rule = AlertRule | RecordingRule

interface RuleGroups {
  groups: { name: string; rules: Rule[] }[]
}

function allRules(): Rule[] {
  return read<RuleGroups>('rules.yaml').groups.flatMap(({ rules }) => rules)
}

export function ruleTestFiles(): string[] {
  return readdirSync(prometheusFolder).filter((file) => file.endsWith('.test.yaml'))
}

export function ruleCases(): RuleCase[] {
  return ruleTestFiles().flatMap((file) => read<{ tests: RuleCase[] }>(file).tests)
}

function read<Content>(file: string): Content {
  return parse(readText(file)) as Content
}

function readText(file: string): string {
  return readFileSync(join(prometheusFolder, file), 'utf8')
}

/**
 * Writes the cases that ask for one alert alone into a file for each alert, beside the rules that it is made of,
 * and those of "rings once" beside all rules: promtool evaluates all rules of a file for each minute of each case.
 * Returns the names of the files.
 */
export function writeCasesByAlert(folder: string): string[] {
  writeFileSync(join(folder, 'rules.yaml'), readText('rules.yaml'))
  return ruleTestFiles().flatMap((file) => {
    const [head = '', ...cases] = readText(file).split(/^(?=  - name: )/m)
    const { length } = read<{ tests: RuleCase[] }>(file).tests
    if (cases.length !== length) throw new Error(`${file}: not each case begins with its name`)
    const byAlert = Map.groupBy(cases, (text) => /name: ['"](\w+)(?! rings once)\b/.exec(text)?.[1])
    return [...byAlert].map(([alert, own]) => {
      const rulesFile = alert === undefined ? 'rules.yaml' : `${alert}.rules.yaml`
      if (alert !== undefined) writeFileSync(join(folder, rulesFile), stringify(narrowRules(alert)))
      const name = `${alert ?? 'all'}.${file}`
      writeFileSync(
        join(folder, name),
        head.replace('[rules.yaml]', `[${rulesFile}]`) + own.join(''),
      )
      return name
    })
  })
}

/** The alert, and the recording rules that its expression needs, in their groups and their order. */
function narrowRules(alert: string): RuleGroups {
  const { groups } = read<RuleGroups>('rules.yaml')
  const all = groups.flatMap(({ rules }) => rules)
  const needed = all.filter((rule) => 'alert' in rule && rule.alert === alert)
  if (needed.length !== 1) throw new Error(`there is no alert ${alert}, or more than one`)
  for (const { expr } of needed) {
    const more = all.filter((rule) => 'record' in rule && expr.includes(rule.record))
    needed.push(...more.filter((rule) => !needed.includes(rule)))
  }
  return {
    groups: groups
      .map(({ name, rules }) => ({ name, rules: rules.filter((rule) => needed.includes(rule)) }))
      .filter(({ rules }) => rules.length > 0),
  }
}

/** What it says; rejects when it fails. */
export async function promtool(folder: string, ...args: string[]): Promise<string> {
  const env = { ...process.env, GOGC: '800' } // a third of its time went into collecting garbage
  const { stdout, stderr } = await promisify(execFile)('promtool', args, { cwd: folder, env })
  return stdout + stderr
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
