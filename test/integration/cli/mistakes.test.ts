/** What an operator gets wrong is named with its place, and nothing is half-started meanwhile. */
import { once } from 'node:events'
import { createServer, type Server } from 'node:net'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { createKeys } from '../../../src/redis/keys.ts'
import { freePort } from '../../support/free-port.ts'
import { connectTo, redisForTests } from '../../support/ledger.ts'
import { startRedis } from '../../support/redis.ts'
import { aFile, tocsin, tocsinProcess } from './tocsin.ts'

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

test.each([
  ['is away', () => freePort(), 'ECONNREFUSED'],
  ['gets no password', () => portOfLocked(), 'NOAUTH', ''],
  ['gets a wrong password', () => portOfLocked(), 'WRONGPASS'],
])('a command names the place of a Redis that %s, and no password', async (...row) => {
  const [, place, said, login = 'user:guess-work@'] = row
  const port = await place()
  const path = aConfig((good) => good, `redis://${login}127.0.0.1:${port}`)
  const { code, err } = await tocsin('feeds', 'list', '--config', path)
  expect(err).toContain(`Redis at 127.0.0.1:${port} `)
  expect(err).toContain(said)
  expect(err).not.toMatch(/pass-word|guess-work/)
  expect(code).toBe(1)
})

async function portOfLocked(): Promise<number> {
  const redis = await startRedis({ settings: ['requirepass pass-word'] })
  onTestFinished(() => redis.stop())
  return redis.port
}

test('a command refuses a ledger of a newer version', async () => {
  const prefix = 'of-a-newer-one'
  await tests.redis.set(createKeys(prefix).shared('schema'), 99)
  const path = aConfig((good) => good.replace('redis:', `redis:\n  prefix: ${prefix}`))
  const { code, err } = await tocsin('feeds', 'list', '--config', path)
  expect(err).toContain('Redis holds a ledger of layout 99')
  expect(code).toBe(1)
})

test('a command says that Redis has no memory left', async () => {
  onTestFinished(async () => void (await tests.redis.config('SET', 'maxmemory', '0')))
  await tests.redis.config('SET', 'maxmemory', '1')
  const path = aConfig((good) => good)
  const { code, err } = await tocsin('feeds', 'pause', 'brand', '--reason=x', '--config', path)
  expect({ code, err }).toEqual({ code: 1, err: expect.stringContaining('has no memory left') })
})
