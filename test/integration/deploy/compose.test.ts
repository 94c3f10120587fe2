import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { parse } from 'yaml'
import { z } from 'zod'
import { loadConfig } from '../../../src/config/load.ts'

const root = join(import.meta.dirname, '../../..')
const text = readFileSync(join(root, 'docker-compose.yml'), 'utf8')

/** As much of the Compose specification as the file uses; a key of another name is a mistake. */
const service = z.strictObject({
  profiles: z.array(z.string()).optional(),
  image: z.string().regex(/^[\w./-]+(:[\w.-]+)?$/),
  build: z.strictObject({ context: z.string(), dockerfile: z.string() }).optional(),
  command: z.union([z.string(), z.array(z.string())]).optional(),
  env_file: z.array(z.strictObject({ path: z.string(), required: z.boolean() })).optional(),
  environment: z.record(z.string().regex(/^[A-Z_]+$/), z.string()).default({}),
  volumes: z.array(z.string().regex(/^.+:\/[^:]+(:ro)?$/)).default([]),
  ports: z.array(z.string().regex(/^127\.0\.0\.1:\d+:\d+$/, 'on loopback only')).default([]),
  depends_on: z
    .union([
      z.array(z.string()),
      z.record(z.string(), z.strictObject({ condition: z.literal('service_healthy') })),
    ])
    .optional(),
  healthcheck: z
    .strictObject({
      test: z.tuple([z.literal('CMD')], z.string()),
      interval: z.string(),
      timeout: z.string(),
      retries: z.number(),
    })
    .optional(),
  networks: z.array(z.string()).optional(),
  network_mode: z.templateLiteral(['service:', z.string()]).optional(),
  read_only: z.boolean().optional(),
  tmpfs: z.array(z.string()).optional(),
  cap_drop: z.tuple([z.literal('ALL')]).optional(),
  security_opt: z.tuple([z.literal('no-new-privileges:true')]).optional(),
  stop_grace_period: z.string().optional(),
  restart: z.literal('unless-stopped').optional(),
})

const compose = z
  .strictObject({
    name: z.literal('tocsin'),
    services: z.record(z.string(), service),
    volumes: z.record(z.string(), z.null()),
    networks: z.record(z.string(), z.null()),
  })
  .parse(parse(text))
const { services, volumes, networks } = compose
const all = Object.values(services)

test('the services are those that a machine of its own needs, and the sandbox is a profile', () => {
  const always = Object.entries(services).filter(([, { profiles }]) => profiles === undefined)
  expect(always.map(([name]) => name)).toEqual([
    'redis',
    'tocsin',
    'prometheus',
    'grafana',
    'mailpit',
  ])
  expect(services['sandbox']?.profiles).toEqual(['sandbox'])
})

test('what depends on a service depends on one that exists and can be healthy', () => {
  for (const { depends_on: needed = [] } of all) {
    const names = Array.isArray(needed) ? needed : Object.keys(needed)
    expect(Object.keys(services)).toEqual(expect.arrayContaining(names))
    const healthy = Array.isArray(needed) ? [] : names
    expect(healthy.filter((name) => !services[name]?.healthcheck)).toEqual([])
  }
})

test('every mounted file exists, and every named volume is declared and used', () => {
  const sources = all.flatMap((one) => one.volumes.map(sourceOf))
  const files = sources.filter((source) => source.startsWith('.'))
  expect(files.filter((file) => !existsSync(join(root, file)))).toEqual([])
  const named = sources.filter((source) => !source.startsWith('.'))
  expect(named.toSorted()).toEqual(Object.keys(volumes).toSorted())
})

/** What stands before the mount point, as it is where no variable is set. */
function sourceOf(volume: string): string {
  const chosen = volume.replace(/\$\{\w+:-([^}]*)\}/, '$1')
  return chosen.split(':')[0] ?? ''
}

test('Redis is what Tocsin accepts: durable and without eviction', () => {
  const { command, volumes: kept } = services['redis']!
  for (const setting of [
    '--appendonly yes',
    '--appendfsync everysec',
    '--maxmemory-policy noeviction',
  ]) {
    expect(command).toContain(setting)
  }
  expect(command).toMatch(/--maxmemory \d/)
  expect(kept).toEqual(['redis:/data'])
})

test('what runs the image of Tocsin has a read-only root, no capability and no new privilege', () => {
  const own = all.filter(({ image }) => image === 'tocsin')
  expect(own).toHaveLength(2)
  for (const one of own) {
    expect(one.build).toEqual({ context: '.', dockerfile: 'deploy/Dockerfile' })
    expect(one).toMatchObject({ read_only: true, cap_drop: ['ALL'] })
    expect(one.security_opt).toEqual(['no-new-privileges:true'])
  }
})

test('nobody but Tocsin reaches Redis, and every network is declared and used', () => {
  const near = Object.entries(services).filter(([, one]) => one.networks?.includes('ledger'))
  expect(near.map(([name]) => name)).toEqual(['redis', 'tocsin'])
  const used = new Set(all.flatMap((one) => one.networks ?? []))
  expect([...used].toSorted()).toEqual(Object.keys(networks).toSorted())
  const apart = all.filter((one) => !one.networks && !one.network_mode)
  expect(apart).toEqual([])
})

test('it does not start without the password, and holds none', () => {
  const { GF_SECURITY_ADMIN_PASSWORD: grafana } = services['grafana']!.environment
  expect(grafana).toMatch(/^\$\{GRAFANA_PASSWORD:\?/)
})

test('Prometheus scrapes the port that Tocsin serves', () => {
  const config = readFileSync(join(root, 'deploy/prometheus/prometheus.yml'), 'utf8')
  const port = services['tocsin']!.environment['TOCSIN_HTTP_PORT']
  expect(config).toContain(`tocsin:${port}`)
  expect(services['prometheus']!.volumes).toContain('./deploy/prometheus:/etc/prometheus:ro')
})

test('Grafana is given the dashboard where its provider looks for it', () => {
  const folder = join(root, 'deploy/grafana/provisioning')
  const read = (file: string): unknown => parse(readFileSync(join(folder, file), 'utf8'))
  const { providers } = read('dashboards/tocsin.yaml') as {
    providers: { options: { path: string } }[]
  }
  const { datasources } = read('datasources/prometheus.yaml') as { datasources: { url: string }[] }
  expect(services['grafana']!.volumes).toContain(
    `./deploy/grafana/tocsin.json:${providers[0]?.options.path}/tocsin.json:ro`,
  )
  expect(datasources.map(({ url }) => url)).toEqual(['http://prometheus:9090'])
})

test('the rehearsal needs no variable, and speaks of the sandbox as it is started', () => {
  const path = join(root, 'config/compose-sandbox.yaml')
  const { config } = loadConfig({ path, env: {} })
  expect(config.http).toMatchObject({ host: '0.0.0.0', port: 9464 })
  expect(config.accounts.map(({ baseUrl }) => baseUrl)).toEqual(['http://127.0.0.1:8080'])
  expect(services['sandbox']!.network_mode).toBe('service:tocsin')
  const rehearsal = readFileSync(path, 'utf8')
  const command = services['sandbox']!.command as string[]
  const secret = command.find((word) => word.startsWith('--webhook-secret='))?.split('=')[1]
  expect(command).toContain('--port=8080')
  expect(rehearsal).toContain(`secret: ${secret}`)
  expect(rehearsal).toContain('smtp://mailpit:1025')
})
