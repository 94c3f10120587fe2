import { describe, expect, test } from 'vitest'
import { metricTable } from '../../../src/lib/metrics/metric-table.ts'
import { aggregationsOf, mistakesIn } from '../../support/alert-rules.ts'
import { queriesOf, readDashboard, type Panel } from '../../support/dashboard.ts'

const dashboard = readDashboard()
const { panels, annotations } = dashboard
const variables = dashboard.templating.list
const queries = queriesOf(dashboard)

function overlap(one: Panel['gridPos'], other: Panel['gridPos']): boolean {
  const inX = one.x < other.x + other.w && other.x < one.x + one.w
  const inY = one.y < other.y + other.h && other.y < one.y + one.h
  return inX && inY
}

describe('the grid', () => {
  test('no panel covers another or leaves the 24 columns', () => {
    const covered = panels.flatMap((panel, at) =>
      panels
        .slice(at + 1)
        .filter((other) => overlap(panel.gridPos, other.gridPos))
        .map((other) => [panel.title, other.title]),
    )
    expect(covered).toEqual([])
    expect(panels.filter(({ gridPos: { x, w } }) => x < 0 || x + w > 24)).toEqual([])
  })
})

describe('variables', () => {
  test('are the data source, the job, the feed and the sink', () => {
    expect(variables.map(({ name }) => name)).toEqual(['datasource', 'job', 'feed', 'sink'])
  })

  test('ask for metrics that exist', () => {
    const asked = variables.flatMap(({ query }) => (typeof query === 'string' ? [] : [query.query]))
    expect(asked.length).toBe(3)
    expect(asked.flatMap(mistakesIn)).toEqual([])
  })

  test('every panel and annotation reads from the chosen data source', () => {
    const marked = annotations.list.map(({ datasource }) => datasource.uid)
    const uids = panels.flatMap(({ datasource, targets = [] }) => [
      ...(datasource ? [datasource.uid] : []),
      ...targets.map((target) => target.datasource.uid),
    ])
    expect(uids.length).toBeGreaterThan(50)
    expect(marked.length).toBeGreaterThan(0)
    expect(new Set([...uids, ...marked])).toEqual(new Set(['${datasource}']))
  })
})

function labelsOf(series: string): string[] {
  const name = series.replace(/^tocsin_/, '').replace(/_(?:bucket|sum|count)$/, '')
  return Object.keys(metricTable[name as keyof typeof metricTable].labels)
}

describe.each(queries)('$name', ({ expr, legend }) => {
  test('names metrics that exist, with labels that they have', () => {
    expect(mistakesIn(expr)).toEqual([])
  })

  test('selects the job in every series, and uses no variable that does not exist', () => {
    const series = expr.match(/\btocsin_\w+|\bprocess_\w+|\bup\b/g) ?? []
    expect(expr.match(/job=~"\$job"/g)).toHaveLength(series.length)
    const known = new Set([...variables.map(({ name }) => name), '__range', '__rate_interval'])
    const used = [...expr.matchAll(/\$(\w+)/g)].map(([, name]) => name ?? '')
    expect(used.filter((name) => !known.has(name))).toEqual([])
  })

  test('goes blank by no choice of a feed or a sink where the series are summed over them', () => {
    const chosen = [...expr.matchAll(/\b(tocsin_\w+)\{([^}]*)\}/g)].flatMap(
      ([, name = '', labels = '']) =>
        ['feed', 'sink']
          .filter((label) => labels.includes(`${label}=~"$${label}"`))
          .map((label) => [name, label] as const),
    )
    const isMissing = ([name, label]: (typeof chosen)[number]): boolean =>
      !labelsOf(name).includes(label)
    expect(chosen.filter(isMissing)).toEqual([])
  })

  test('has a legend of labels that the result carries', () => {
    const carried = aggregationsOf(expr).flatMap(({ labels }) => labels)
    const said = [...legend.matchAll(/\{\{(\w+)\}\}/g)].map(([, label]) => label ?? '')
    expect(said.filter((label) => !carried.includes(label))).toEqual([])
  })
})
