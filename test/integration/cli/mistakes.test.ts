/** What an operator gets wrong is named with its place, and nothing is half-started meanwhile. */
import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { createServer, type Server } from 'node:net'
import { dirname } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { connectTo, redisForTests } from '../../support/ledger.ts'
import { startRedis } from '../../support/redis.ts'
import { aFile, environment, main, tocsinProcess } from './tocsin.ts'

const tests = redisForTests()
let server: Server | undefined
let takenPort = 0

// Held by the test: a daemon that tried to listen before it looked would fail for that, with 1.
beforeAll(async () => {
  server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  takenPort = (server.address() as { port: number }).port
})
afterAll(() => void server?.close())

function aConfig(change: (lines: string) => string, redisUrl = tests.server.url): string {
  const good = `redis:
  url: ${redisUrl}
http:
  port: ${takenPort}
accounts:
  main:
    base_url: http://127.0.0.1:9
    api_key: fw_not_to_be_seen
feeds:
  brand:
    type: events
    identifier_group: 1042
sinks:
  soc:
    type: slack
    url: https://hooks.slack.com/services/T0/B0/not-to-be-seen
route:
  sinks: [soc]
`
  return aFile('tocsin.yaml', change(good))
}

test('a mistake is named with its place, and nothing is begun', async () => {
  const path = aConfig((good) => good.replace('type: events', 'type: events\n    evry: 60s'))
  const { code, out, err } = await tocsinProcess('run', '--config', path)
  expect(err).toBe(
    `the configuration has 1 mistake:\n  ${path}:12:5 feeds.brand.evry: unknown key; did you mean "every"?\n`,
  )
  expect(out).toBe('')
  expect(code).toBe(2)
  expect(await tests.redis.dbsize()).toBe(0)
})

test('where there is no configuration at all, init is named', () => {
  const cwd = dirname(aFile('other.yaml', ''))
  const options = { cwd, env: environment, encoding: 'utf8' } as const
  const { stderr, status } = spawnSync(process.execPath, [main, 'doctor'], options)
  expect(stderr).toBe(
    'there is no tocsin.yaml or config/tocsin.yaml here; make one with "tocsin init", or name yours with --config\n',
  )
  expect(status).toBe(2)
})

test('a file that cannot be read is named', async () => {
  const folder = aFile('tocsin.yaml', '').replace('/tocsin.yaml', '')
  const [missing, directory] = await Promise.all([
    tocsinProcess('run', '--config', `${folder}/nowhere.yaml`),
    tocsinProcess('run', '--config', folder),
  ])
  expect(missing.err).toContain('nowhere.yaml: there is no such file; name the configuration')
  expect(directory.err).toContain(`${folder}: cannot be read (EISDIR)`)
  expect([missing.code, directory.code]).toEqual([2, 2])
})

test.each([
  ['without persistence', 'appendonly no', 'set "appendonly yes"'],
  ['that may evict', 'maxmemory-policy allkeys-lru', 'set "maxmemory-policy noeviction"'],
])('a Redis %s is refused before a key is written', async (_name, setting, said) => {
  const redis = await startRedis({ settings: [setting] })
  try {
    const path = aConfig((good) => good, redis.url)
    const { code, err } = await tocsinProcess('run', '--config', path)
    expect(err).toContain('redis.url: this Redis may lose events')
    expect(err).toContain(said)
    expect(err.trim().split('\n')).toHaveLength(1)
    expect(code).toBe(2)
    expect(await keysOf(redis.url)).toEqual([])
  } finally {
    await redis.stop()
  }
})

async function keysOf(url: string): Promise<string[]> {
  const redis = connectTo(url)
  const found = await redis.keys('*')
  redis.disconnect()
  return found
}

test('a port that another process uses is the world, not a mistake: 1', async () => {
  const path = aConfig((good) => good)
  const { code, err } = await tocsinProcess('run', '--config', path)
  expect(err).toContain(`http: cannot listen on 127.0.0.1 port ${takenPort}`)
  expect(code).toBe(1)
})
