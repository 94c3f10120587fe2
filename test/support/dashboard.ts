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
  templating: { list: Variable[] }
}

const file = join(import.meta.dirname, '../../deploy/grafana/tocsin.json')

export function readDashboard(): Dashboard {
  return JSON.parse(readFileSync(file, 'utf8')) as Dashboard
}

/** Every query with the panel that asks it; names in brackets only tell them apart. */
export function queriesOf({ panels }: Dashboard): { name: string; expr: string; legend: string }[] {
  return panels.flatMap(({ title, targets = [] }) =>
    targets.map(({ refId, expr, legendFormat = '' }) => ({
      name: `${title} (${refId})`,
      expr,
      legend: legendFormat,
    })),
  )
}
