import { execFileSync, spawnSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { parse, parseAllDocuments } from 'yaml'
import { z } from 'zod'
import { root } from '../../support/dockerfile.ts'

const chart = join(root, 'deploy/helm/tocsin')
const read = (file: string): string => readFileSync(join(chart, file), 'utf8')
const values = parse(read('values.yaml')) as Record<string, unknown>
const schema = z.fromJSONSchema(
  JSON.parse(read('values.schema.json')) as Parameters<typeof z.fromJSONSchema>[0],
)
const templates = readdirSync(join(chart, 'templates')).map((file) => read(`templates/${file}`))
const used = new Set(
  templates.flatMap((text) =>
    [...text.matchAll(/\.Values\.([\w.]+)/g)].map(([, path = '']) => path),
  ),
)

/** Paths of values, down to what is no section of the chart's own. */
function pathsIn(section: Record<string, unknown>, under = ''): string[] {
  return Object.entries(section).flatMap(([key, value]) => {
    const path = `${under}${key}`
    const isSection = typeof value === 'object' && value !== null && !Array.isArray(value)
    if (used.has(path) || !isSection) return [path]
    return pathsIn(value as Record<string, unknown>, `${path}.`)
  })
}

test('the chart and the image it starts are those of this version', () => {
  const { version, appVersion } = parse(read('Chart.yaml')) as Record<string, string>
  const { version: own } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
    version: string
  }
  expect([version, appVersion]).toEqual([own, own])
})

test('every value is used by a template, and no template uses another', () => {
  expect(pathsIn(values).toSorted()).toEqual([...used].toSorted())
  expect(used.size).toBeGreaterThan(20)
})

test('the schema takes the values as they are', () => {
  expect(schema.safeParse(values).error).toBeUndefined()
})

test.each([
  ['a key that is none', { replica: 3 }],
  ['a key that is none below another', { image: { name: 'tocsin' } }],
  ['a configuration that is no text', { config: { accounts: {} } }],
  ['a digest without its kind', { image: { digest: 'ab12' } }],
  ['a port that is none', { port: 70_000 }],
])('the schema refuses %s', (_what, wrong) => {
  expect(schema.safeParse({ ...values, ...wrong }).success).toBe(false)
})

test('every value has a place in the schema', () => {
  const { properties } = JSON.parse(read('values.schema.json')) as { properties: object }
  const { global: _helmsOwn, ...known } = properties as Record<string, unknown>
  expect(Object.keys(values).toSorted()).toEqual(Object.keys(known).toSorted())
})

/** Without helm: what must stand in the template literally. */
test.each([
  'runAsNonRoot: true',
  'type: RuntimeDefault',
  'readOnlyRootFilesystem: true',
  'allowPrivilegeEscalation: false',
  'drop: [ALL]',
  'automountServiceAccountToken: false',
  'mountPath: /tmp', // where the daemon leaves what `kubectl exec … reload` needs
  'httpGet: { path: /healthz, port: http }',
  'httpGet: { path: /readyz, port: http }',
  'checksum/config: {{ .Values.config | sha256sum }}',
])('the pods have %s', (line) => {
  const deployment = read('templates/deployment.yaml').split('\n')
  expect(deployment.map((text) => text.trim())).toContain(line)
})

test('a pod has longer to end than the daemon takes', () => {
  const [, seconds] = /terminationGracePeriodSeconds: (\d+)/.exec(
    read('templates/deployment.yaml'),
  )!
  expect(Number(seconds)).toBeGreaterThan(10)
})

const helm = 'helm'

describe.runIf(spawnSync(helm, ['version']).status === 0)('helm', () => {
  const given = {
    image: { repository: 'registry.example.com/tocsin' },
    config: 'http: {host: 0.0.0.0}\n',
    networkPolicy: { enabled: true },
    serviceMonitor: { enabled: true },
    prometheusRule: { enabled: true },
  }
  const run = (...args: string[]): string =>
    execFileSync(helm, [...args, '--values', '-'], {
      encoding: 'utf8',
      input: JSON.stringify(given),
    })

  test('finds nothing wrong', () => {
    expect(run('lint', '--strict', chart)).toContain('0 chart(s) failed')
  })

  test('renders every part', () => {
    const parts = parseAllDocuments(run('template', 'watch', chart)).map(
      (part) => part.toJS() as { kind: string; spec?: unknown },
    )
    const kinds = ['ConfigMap', 'Deployment', 'NetworkPolicy', 'PodDisruptionBudget']
    const others = ['PrometheusRule', 'Service', 'ServiceMonitor']
    expect(new Set(parts.map(({ kind }) => kind))).toEqual(new Set([...kinds, ...others]))
    const rules = parse(readFileSync(join(root, 'deploy/prometheus/rules.yaml'), 'utf8')) as object
    expect(parts.find(({ kind }) => kind === 'PrometheusRule')?.spec).toEqual(rules)
  })
})
