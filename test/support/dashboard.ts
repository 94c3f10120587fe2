/** The Grafana dashboard as its file says it. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'

export interface Panel {
  id: number
  type: string
  title: string
  gridPos: { x: number; y: number; w: number; h: number }
  datasource?: { type: string; uid: string }
  targets?: {
    refId: string
    expr: string
    legendFormat?: string
    datasource: { type: string; uid: string }
  }[]
}

export interface Variable {
  name: string
  type: string
  query: string | { query: string }
}

export interface Dashboard {
  schemaVersion: number
  panels: Panel[]
  annotations: {
    list: { name: string; expr: string; textFormat: string; datasource: { uid: string } }[]
  }
  templating: { list: Variable[] }
}

const file = join(import.meta.dirname, '../../deploy/grafana/tocsin.json')

export function readDashboard(): Dashboard {
  return JSON.parse(readFileSync(file, 'utf8')) as Dashboard
}

/**
 * Every query with the panel or the annotation that asks it; names in brackets only tell them
 * apart.
 */
export function queriesOf({
  panels,
  annotations,
}: Dashboard): { name: string; expr: string; legend: string }[] {
  const marks = annotations.list.map(({ name, expr, textFormat }) => ({
    name: `${name} (annotation)`,
    expr,
    legend: textFormat,
  }))
  const drawn = panels.flatMap(({ title, targets = [] }) =>
    targets.map(({ refId, expr, legendFormat = '' }) => ({
      name: `${title} (${refId})`,
      expr,
      legend: legendFormat,
    })),
  )
  return [...drawn, ...marks]
}
