import { spawn, type ChildProcess } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { parse } from 'yaml'
import { z } from 'zod'
import { endServer, redisServerPath } from '../../support/redis.ts'

const root = join(import.meta.dirname, '../../..')
const text = readFileSync(join(root, 'docker-compose.yml'), 'utf8')

const dockerfile = readFileSync(join(root, 'deploy/Dockerfile'), 'utf8')

/** As much of the Compose specification as the file uses; a key of another name is a mistake. */
const service = z.strictObject({
  profiles: z.array(z.string()).optional(),
  image: z.string().regex(/^(tocsin|[\w./-]+:v?\d[\w.-]*(@sha256:[0-9a-f]{64})?)$/, 'by version'),
  user: z.string().optional(),
  secrets: z.array(z.string()).default([]),
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
      test: z.tuple([z.enum(['CMD', 'CMD-SHELL'])], z.string()),
      interval: z.string(),
      timeout: z.string(),
      retries: z.number(),
    })
    .optional(),
  networks: z.array(z.string()).optional(),
  network_mode: z.templateLiteral(['service:', z.string()]).optional(),
  read_only: z.literal(true),
  tmpfs: z.tuple([z.literal('/tmp')]),
  cap_drop: z.tuple([z.literal('ALL')]),
  security_opt: z.tuple([z.literal('no-new-privileges:true')]),
  ulimits: z.strictObject({ core: z.literal(0) }),
  mem_limit: z.string().regex(/^\d+[mg]$/),
  memswap_limit: z.string(),
  pids_limit: z.number().min(32).max(512),
  stop_grace_period: z.string().optional(),
  restart: z.literal('unless-stopped').optional(),
})

const compose = z
  .strictObject({
    name: z.literal('tocsin'),
    services: z.record(z.string(), service),
    volumes: z.record(z.string(), z.null()),
    networks: z.record(z.string(), z.strictObject({ internal: z.literal(true) }).nullable()),
    secrets: z.record(z.string(), z.strictObject({ file: z.string() })),
    'x-closed': z.unknown(),
  })
  .parse(parse(text, { merge: true }))
const { services, volumes, networks, secrets } = compose
const all = Object.values(services)

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

describe('Redis, as its container starts it', () => {
  const password = 'Pq7Zr2Lx9Vt4Kw8N'
  const [shell, flag, script] = services['redis']!.command as string[]
  const folder = mkdtempSync(join(tmpdir(), 'tocsin-compose-'))
  let socket: string
  let server: ChildProcess

  /** The words of a container on this machine: its file of the secret, its folder, a socket and no port. */
  function here(words: string): string {
    const settings = `port 0\nunixsocket ${socket}\ndir ${folder}\nappendonly yes`
    return words
      .replaceAll('$$', '$')
      .replaceAll('/run/secrets/redis_password', join(folder, 'password'))
      .replace('appendonly yes', settings)
      .replace('redis-cli', `redis-cli -s ${socket}`)
  }

  beforeAll(async () => {
    socket = join(folder, 'redis.sock')
    writeFileSync(join(folder, 'password'), `${password}\n`)
    symlinkSync(redisServerPath(), join(folder, 'redis-server'))
    const env = { PATH: `${folder}:${process.env['PATH']}` }
    server = spawn(shell!, [flag!, here(script!)], { stdio: ['ignore', 'pipe', 'inherit'], env })
    for await (const chunk of server.stdout!) if (/ready to accept/i.test(String(chunk))) break
  })
  afterAll(async () => {
    await endServer(server)
    rmSync(folder, { recursive: true })
  })

  test('is what Tocsin accepts: durable and without eviction', async () => {
    const redis = new Redis({ path: socket, password })
    onTestFinished(() => redis.disconnect())
    for (const [setting, value] of [
      ['appendonly', 'yes'],
      ['appendfsync', 'everysec'],
      ['maxmemory-policy', 'noeviction'],
      ['maxmemory', String(2 ** 30)],
    ]) {
      expect(await redis.config('GET', setting!)).toEqual([setting, value])
    }
    expect(services['redis']!.volumes).toEqual(['redis:/data'])
  })

  test('answers nobody without the password, which no command line and no environment shows', async () => {
    const redis = new Redis({ path: socket, retryStrategy: () => null })
    redis.on('error', () => undefined)
    onTestFinished(() => redis.disconnect())
    await expect(redis.ping()).rejects.toThrow('NOAUTH')
    expect(JSON.stringify(services)).not.toMatch(/requirepass [^"\\]|--requirepass|REDIS_PASSWORD"/)
    if (process.platform !== 'linux') return
    for (const file of ['cmdline', 'environ']) {
      const seen = readFileSync(`/proc/${server.pid}/${file}`, 'utf8')
      expect(seen).not.toContain(password)
      expect(seen).not.toBe('')
    }
  })
})

test('memory suffices: twice for Redis, which copies while it writes anew, and no heap fills a container', () => {
  const bytes = (size: string): number =>
    Number.parseInt(size, 10) * (size.endsWith('g') ? 2 ** 30 : 2 ** 20)
  expect(bytes(services['redis']!.mem_limit)).toBeGreaterThan(2 * 2 ** 30)
  const [, percent] = /--max-old-space-size-percentage=(\d+)/.exec(dockerfile) ?? []
  // 547 MiB of resident memory was held at 845 events/s
  expect((bytes(services['tocsin']!.mem_limit) * Number(percent)) / 100).toBeGreaterThan(2 ** 30)
  expect(Number(percent)).toBeLessThanOrEqual(75)
})

test('no container may swap: what memory holds of secrets stays off the disk, and its limit is its limit', () => {
  for (const { mem_limit, memswap_limit } of all) expect(memswap_limit).toBe(mem_limit)
})

test('nobody but Tocsin reaches Redis, and every network is declared and used', () => {
  expect(networks['ledger']).toEqual({ internal: true })
  const near = Object.entries(services).filter(([, one]) => one.networks?.includes('ledger'))
  expect(near.map(([name]) => name)).toEqual(['redis', 'tocsin'])
  const used = new Set(all.flatMap((one) => one.networks ?? []))
  expect([...used].toSorted()).toEqual(Object.keys(networks).toSorted())
  const apart = all.filter((one) => !one.networks && !one.network_mode)
  expect(apart).toEqual([])
})

test('passwords are files, each given to those alone who need it, and Grafana’s is not one of Tocsin', () => {
  const holders = (secret: string): string[] =>
    Object.entries(services).flatMap(([name, one]) => (one.secrets.includes(secret) ? [name] : []))
  expect(Object.keys(secrets)).toEqual(['redis_password', 'grafana_password'])
  expect(holders('redis_password')).toEqual(['redis', 'tocsin'])
  expect(holders('grafana_password')).toEqual(['grafana'])
  expect(services['grafana']!.environment['GF_SECURITY_ADMIN_PASSWORD__FILE']).toBe(
    '/run/secrets/grafana_password',
  )
  expect(text).not.toContain('GRAFANA_PASSWORD')
  const tracked = readFileSync(join(root, '.gitignore'), 'utf8').split('\n')
  expect(tracked).toContain('/secrets/')
  for (const { file } of Object.values(secrets)) expect(file).toMatch(/^\.\/secrets\//)
})
