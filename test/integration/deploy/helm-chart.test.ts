import { execFileSync, spawnSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { parse, parseAllDocuments } from 'yaml'
import { z } from 'zod'
import { root } from '../../support/dockerfile.ts'
import { isInstalled } from '../../support/tools.ts'

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
  ['a tag in the repository', { image: { repository: 'a/b:1' } }],
  ['a variable that is a number', { env: [{ name: 'A', value: 1 }] }],
  ['a label that is a number', { podLabels: { a: 1 } }],
  ['a budget that lets no node be drained', { podDisruptionBudget: { maxUnavailable: 0 } }],
  ['a peer that would be everybody', { networkPolicy: { from: [{}] } }],
])('the schema refuses %s', (_what, wrong) => {
  expect(schema.safeParse({ ...values, ...wrong }).success).toBe(false)
})

test('every value has a place in the schema', () => {
  const { properties } = JSON.parse(read('values.schema.json')) as { properties: object }
  const { global: _helmsOwn, ...known } = properties as Record<string, unknown>
  expect(Object.keys(values).toSorted()).toEqual(Object.keys(known).toSorted())
})

const program = 'helm'
const helmRemedy = '.ci/run says where it is to be had'

const config = `  # by hand
http: {host: 0.0.0.0}
redis: {url: 'redis://redis.example.com:6379'}
`
const least = { image: { repository: 'registry.example.com/tocsin' }, config }

// oxlint-disable-next-line typescript/no-explicit-any -- each test knows the part that it reads
type Part = any

function helm(command: string[], given: object): string {
  return execFileSync(program, [...command, chart, '--values', '-'], {
    encoding: 'utf8',
    input: JSON.stringify(given),
    stdio: 'pipe',
  })
}

/** What is made of the values by kind; there is one of each. */
function render(given: object): Map<string, Part> {
  const parts = parseAllDocuments(helm(['template', 'watch'], given), { version: '1.1' })
  return new Map(parts.map((part): Part => part.toJS()).map((part) => [part.kind, part]))
}

function podIn(parts: Map<string, Part>): Part {
  return parts.get('Deployment').spec.template
}

describe.skipIf(!isInstalled(program, helmRemedy))('helm', () => {
  test.each([
    ['what an operator gives', least],
    ['nothing but the defaults', {}],
  ])('lints %s without a finding', (_what, given) => {
    expect(helm(['lint', '--strict'], given)).toContain('0 chart(s) failed')
  })

  test('makes of the least that is given what pods need, and no more', () => {
    const parts = render(least)
    const kinds = ['ConfigMap', 'Deployment', 'PodDisruptionBudget', 'Service']
    expect([...parts.keys()].toSorted()).toEqual(kinds)
    expect(parts.get('ConfigMap').data).toEqual({ 'tocsin.yaml': config })
  })

  const udp = (port: number) => ({ port, protocol: 'UDP' })
  const tcp = (port: number) => ({ port, protocol: 'TCP' })

  test('makes the optional parts as their values say', () => {
    const peer = { namespaceSelector: { matchLabels: { name: 'monitoring' } } }
    const parts = render({
      ...least,
      podDisruptionBudget: { enabled: false },
      networkPolicy: { enabled: true, from: [peer], egressPorts: [443] },
      serviceMonitor: { enabled: true, interval: '30s' },
      prometheusRule: { enabled: true },
    })
    expect(parts.has('PodDisruptionBudget')).toBe(false)
    expect(parts.get('NetworkPolicy').spec).toMatchObject({
      policyTypes: ['Ingress', 'Egress'],
      ingress: [{ from: [peer], ports: [{ port: 'http' }] }],
      egress: [{ ports: [udp(53), tcp(53), tcp(443)] }],
    })
    expect(parts.get('ServiceMonitor').spec.endpoints).toEqual([
      { port: 'http', path: '/metrics', interval: '30s' },
    ])
    const rules = readFileSync(join(root, 'deploy/prometheus/rules.yaml'), 'utf8')
    const ofRelease = rules.replaceAll('job="tocsin"', 'job="watch"')
    expect(parts.get('PrometheusRule').spec).toEqual(parse(ofRelease))
  })

  test('closes a network policy that names nobody to everybody', () => {
    const parts = render({ ...least, networkPolicy: { enabled: true } })
    expect(parts.get('NetworkPolicy').spec).toMatchObject({ ingress: [] })
  })

  test('closes the pods, and gives them longer to end than the daemon takes', () => {
    const { spec } = podIn(render(least))
    expect(spec.securityContext).toMatchObject({
      runAsNonRoot: true,
      seccompProfile: { type: 'RuntimeDefault' },
    })
    expect(spec.containers[0].securityContext).toEqual({
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ['ALL'] },
    })
    expect(spec).toMatchObject({ automountServiceAccountToken: false })
    expect(spec.terminationGracePeriodSeconds).toBeGreaterThan(10)
  })

  test('hands a Secret over as files of the group alone', () => {
    const { spec } = podIn(render({ ...least, existingSecret: 'tocsin' }))
    const { secret } = spec.volumes.find(({ name }: Part) => name === 'secrets')
    expect(secret).toEqual({ secretName: 'tocsin', defaultMode: 0o440 })
  })

  test('lets a node be drained that has the only replica, ready or not', () => {
    expect(render({ ...least, replicas: 1 }).get('PodDisruptionBudget').spec).toMatchObject({
      maxUnavailable: 1,
      unhealthyPodEvictionPolicy: 'AlwaysAllow',
    })
  })

  test('replaces the pods when the configuration changes, and only then', () => {
    const sum = (given: object): string =>
      podIn(render(given)).metadata.annotations['checksum/config']
    expect(sum({ ...least, replicas: 3 })).toBe(sum(least))
    expect(sum({ ...least, config: `${config}messages: {}` })).not.toBe(sum(least))
  })

  test('lets Service and probes ask where the configuration listens', () => {
    const http = "http: {host: '${TOCSIN_HTTP_HOST}', port: '${TOCSIN_HTTP_PORT:-9464}'}"
    const parts = render({
      ...least,
      config: config.replace(/^http.*$/m, () => http),
      port: 9000,
      env: [{ name: 'LOG_LEVEL', value: 'debug' }],
    })
    const [container] = podIn(parts).spec.containers
    expect(container.env).toEqual([
      { name: 'TOCSIN_HTTP_HOST', value: '0.0.0.0' },
      { name: 'TOCSIN_HTTP_PORT', value: '9000' },
      { name: 'LOG_LEVEL', value: 'debug' },
    ])
    expect(container.ports).toEqual([{ name: 'http', containerPort: 9000 }])
    expect(container.livenessProbe.httpGet).toEqual({ path: '/healthz', port: 'http' })
    expect(container.readinessProbe.httpGet).toEqual({ path: '/readyz', port: 'http' })
    expect(parts.get('Service').spec.ports).toEqual([
      { name: 'http', port: 9000, targetPort: 'http' },
    ])
  })

  test('takes config/tocsin.yaml as it is, with a Redis', () => {
    const example = readFileSync(join(root, 'config/tocsin.yaml'), 'utf8')
    const env = [{ name: 'REDIS_URL', value: 'rediss://redis.example.com' }]
    expect(render({ ...least, config: example, env }).has('Deployment')).toBe(true)
  })

  const redis = "redis: {url: 'redis://redis.example.com'}"
  const http = 'http: {host: 0.0.0.0}'
  test.each([
    ['no configuration', { config: '' }, 'config: give the text of tocsin.yaml'],
    ['two configurations', { existingConfigMap: 'mine' }, 'write one of them'],
    ['no image', { image: {} }, 'image.repository: say where the image is'],
    ['a section that is empty', { config: `http:\n${redis}` }, 'write http: {host: 0.0.0.0}'],
    ['a section that is a word', { config: `http: on a\n${redis}` }, 'http is not a section'],
    ['text that is no YAML', { config: 'a: : b' }, 'config: not the YAML of a configuration'],
    [
      'a loopback host',
      { config: `http: {host: localhost}\n${redis}` },
      'http.host is localhost, where no probe and no Prometheus reaches a pod',
    ],
    [
      'a loopback host in a variable',
      {
        config: `http: {host: '\${HOST}'}\n${redis}`,
        env: [{ name: 'HOST', value: '127.0.0.1' }],
      },
      'http.host is 127.0.0.1',
    ],
    [
      'another port than the Service has',
      { config: `http: {host: 0.0.0.0, port: 9000}\n${redis}` },
      'make them the same, as by --set port=9000',
    ],
    ['no Redis', { config: http }, 'redis.url leads into the pod itself'],
    [
      'a Redis in the pod',
      { config: `${http}\nredis: {url: 'redis://u:hidden@localhost/1'}` },
      'redis.url leads into the pod itself',
    ],
    [
      'an embedded Redis',
      { config: `${http}\nredis: {embedded: ./data}` },
      'the image has no redis-server',
    ],
    [
      'a Prometheus that the network policy keeps out',
      { networkPolicy: { enabled: true }, serviceMonitor: { enabled: true } },
      'networkPolicy.from: say where Prometheus is',
    ],
    ['what its schema does not know', { replica: 3 }, /\breplica\b.* not allowed/],
  ])('refuses %s, and says what to write', (_what, given, message) => {
    const refused = spawnSync(program, ['template', 'watch', chart, '--values', '-'], {
      encoding: 'utf8',
      input: JSON.stringify({ ...least, ...given }),
    })
    expect(refused.status).toBe(1)
    expect(refused.stderr).toMatch(message)
    expect(refused.stderr).not.toContain('hidden')
  })
})
