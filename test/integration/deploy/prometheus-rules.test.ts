import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { parse } from 'yaml'
import {
  aggregationsOf,
  alertRules,
  mistakesIn,
  prometheusFolder,
  promtool,
  recordingRules,
  ruleCases,
  writeCasesByAlert,
} from '../../support/alert-rules.ts'
import { installByApt, isInstalled } from '../../support/tools.ts'

interface AlertmanagerExample {
  route: { routes: { group_by: string[] }[] }
  inhibit_rules: { equal: string[] }[]
}

const hasPromtool = isInstalled('promtool', installByApt('prometheus'))
const rules = alertRules()
const cases = ruleCases()

// Every case against all rules: test/faults/long-runs/rule-cases.test.ts.
describe.skipIf(!hasPromtool)('promtool', () => {
  test('accepts the configuration and the rules', async () => {
    expect(await promtool(prometheusFolder, 'check', 'config', 'prometheus.yml')).toContain(
      'SUCCESS',
    )
  })

  test('finds every case as it says', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'tocsin-rules-'))
    onTestFinished(() => rmSync(folder, { recursive: true }))
    const files = writeCasesByAlert(folder)
    const said = await promtool(folder, 'test', 'rules', ...files)
    expect(said.match(/SUCCESS/g)).toHaveLength(files.length)
  }, 300_000)
})

describe.each(rules)('$alert', ({ alert, expr, labels, annotations }) => {
  test('has a case that fires and one that stays silent', () => {
    for (const [kind, isFiring] of [
      ['fires', true],
      ['stays silent', false],
    ] as const) {
      const own = cases.filter(({ name }) => name.startsWith(`${alert} ${kind}: `))
      expect(own, `${alert} ${kind}`).not.toEqual([])
      for (const { promql_expr_test: asked } of own) {
        const exprs = new Set(asked.map((one) => one.expr))
        expect([...exprs]).toEqual([`ALERTS{alertname="${alert}", alertstate="firing"}`])
        expect(asked.every(({ exp_samples: samples }) => samples.length > 0)).toBe(isFiring)
      }
    }
  })

  test('names metrics that exist, with labels that they have', () => {
    expect(mistakesIn(expr)).toEqual([])
  })

  test('has a severity, and says what is wrong, what it means and what to do', () => {
    expect(['critical', 'warning', 'info']).toContain(labels['severity'])
    const { runbook_url: runbook, ...words } = annotations
    expect(Object.keys(words).toSorted()).toEqual(['description', 'remedy', 'summary'])
    const [file = '', anchor] = (runbook ?? '').split('#')
    const page = readFileSync(join(prometheusFolder, '../..', file), 'utf8')
    const headings = [...page.matchAll(/^#+ (.*)$/gm)].map(([, heading]) => heading?.toLowerCase())
    expect(headings).toContain(anchor)
    expect(anchor).toBe(alert.toLowerCase())
  })

  test('speaks only of labels that the alert carries', () => {
    const aggregated = aggregationsOf(expr).flatMap((aggregation) => aggregation.labels)
    const carried = aggregated.length > 0 ? aggregated : ['job', 'instance']
    const said = Object.values(annotations).flatMap((text) =>
      [...text.matchAll(/\$labels\.(\w+)/g)].map(([, label]) => label),
    )
    expect(said.filter((label) => !carried.includes(label ?? ''))).toEqual([])
  })
})

describe('the example for Alertmanager', () => {
  const page = readFileSync(join(prometheusFolder, '../../docs/reference/alerts.md'), 'utf8')
  const text = /```text\n(route:.*?)```/s.exec(page)?.[1] ?? ''
  const { route, inhibit_rules: inhibitions } = parse(text) as AlertmanagerExample
  const carriedByAll = ['alertname', 'severity', 'job']

  test('groups, and compares, by labels that every alert carries', () => {
    const [own] = route.routes
    expect(own?.group_by).toContain('job')
    const used = [...(own?.group_by ?? []), ...inhibitions.flatMap(({ equal }) => equal)]
    expect(used.filter((label) => !carriedByAll.includes(label))).toEqual([])
    const without = rules.filter(({ expr }) => {
      const aggregated = aggregationsOf(expr)
      return aggregated.some(({ labels }) => !labels.includes('job'))
    })
    expect(without).toEqual([])
  })

  test('names alerts that exist', () => {
    const names = text.match(/(?<=")Tocsin\w+(?=")/g) ?? []
    expect(names).not.toEqual([])
    expect(names.filter((name) => !rules.some(({ alert }) => alert === name))).toEqual([])
  })
})

test('no case is for an alert that does not exist, and no alert stands there twice', () => {
  const names = rules.map(({ alert }) => alert)
  expect(new Set(names).size).toBe(names.length)
  const tested = cases.map(({ name }) => name.split(' ')[0] ?? '')
  expect(tested.filter((name) => !names.includes(name))).toEqual([])
})

test('a case of "rings once" asks for every alert, and names one at least', () => {
  const once = cases.filter(({ name }) => / rings once: /.test(name))
  expect(once.length).toBeGreaterThan(5)
  for (const { promql_expr_test: asked } of once) {
    for (const { expr } of asked)
      expect(expr).toMatch(/^ALERTS\{alertstate="firing"(, feed!?="\w+")?\}$/)
    expect(asked.some(({ exp_samples: samples }) => samples.length > 0)).toBe(true)
  }
})

test.each(recordingRules())(
  '$record has the labels that its name begins with',
  ({ record, expr }) => {
    expect(mistakesIn(expr)).toEqual([])
    const level = record.split(':')[0]?.split('_')
    const fine = aggregationsOf(expr).filter(({ labels }) => labels.length > 1)
    expect(fine.map(({ labels }) => labels)).toEqual(fine.map(() => level))
  },
)

describe('an expression is wrong', () => {
  test.each([
    ['sum(tocsin_no_such_total)', ['no metric tocsin_no_such_total']],
    ['tocsin_dead_letters{feed="x"}', ['tocsin_dead_letters has no label feed']],
    ['max by (job, sink) (tocsin_feed_paused)', ['tocsin_feed_paused has no label sink']],
    ['tocsin_dead_letters_bucket', ['no metric tocsin_dead_letters_bucket']],
    ['vector(1)', ['no metric at all']],
  ])('where it says %s', (expr, mistakes) => {
    expect(mistakesIn(expr)).toEqual(mistakes)
  })

  test('and right where names and labels are those of the table', () => {
    const quantile =
      'histogram_quantile(0.9, sum by (le) (rate(tocsin_event_match_to_fetch_seconds_bucket{job=~"a|b"}[5m])))'
    expect(mistakesIn(quantile)).toEqual([])
  })
})
