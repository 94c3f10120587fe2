/** The parts of `doctor` that judge, and what becomes of a check that fails itself. */
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test, vi } from 'vitest'
import { checkAccount } from '../../../src/cli/set-up/doctor-accounts.ts'
import { about, makeCheck } from '../../../src/cli/set-up/doctor-finding.ts'
import {
  checkDisk,
  checkHost,
  judgeDisk,
  judgeMemory,
  judgeTimeZones,
} from '../../../src/cli/set-up/doctor-host.ts'
import { checkServices } from '../../../src/cli/set-up/doctor-service.ts'
import { checkRedis } from '../../../src/cli/set-up/doctor-redis.ts'
import { parseConfig } from '../../../src/config/load.ts'
import type { Config } from '../../../src/config/config.ts'
import { Interruption } from '../../../src/cli/terminal.ts'
import type { Redis } from '../../../src/redis/connection.ts'
import { createKeys } from '../../../src/redis/keys.ts'
import type { UpstreamClient } from '../../../src/upstream/client.ts'
import { UpstreamError } from '../../../src/upstream/error.ts'

const mebibyte = 2 ** 20
const never = new AbortController().signal

test('a check that takes too long is a problem, and says how long it was waited for', async () => {
  const limits = { timeoutMs: 20, stop: never }
  const found = await makeCheck(about('sink', 'soc'), limits, () => new Promise(() => {}))
  expect(found).toEqual([
    expect.objectContaining({
      check: 'sink',
      subject: 'soc',
      status: 'problem',
      detail: expect.stringMatching(/^no answer within /),
    }),
  ])
})

test('a check that may take too long is a warning, and nothing of the network', async () => {
  const limits = { timeoutMs: 20, stop: never, ifLate: 'warning' } as const
  const found = await makeCheck(about('told twice', 'main'), limits, () => new Promise(() => {}))
  expect(found).toMatchObject([{ status: 'warning', remedy: 'run doctor again' }])
})

test('a service that could not be asked in time under the rate limit is a warning', async () => {
  const account = { baseUrl: 'http://127.0.0.1:9', name: 'main' }
  const late = new UpstreamError('timeout', 'no API slot came in time under the rate limit')
  const client = { checkHealth: () => Promise.reject(late) } as unknown as UpstreamClient
  const config = { accounts: [account] } as unknown as Config
  expect(await checkServices(config, () => client, never)).toMatchObject([
    { check: 'service', status: 'warning', detail: `not known: ${late.message}` },
  ])
})

test('words of filters that do not come in time are a warning beside a key that works', async () => {
  vi.useFakeTimers()
  onTestFinished(() => void vi.useRealTimers())
  const limits = { search: 10, basic: 4 }
  const account = { name: 'main', limits }
  const client = {
    account,
    testToken: () => Promise.resolve({ scopes: [] }),
    clockSkewMs: () => 0,
    budget: () => ({ waitedSeconds: 29 }),
    call: () => new Promise(() => {}),
  } as unknown as UpstreamClient
  const redis = { hmget: () => Promise.resolve([]) } as unknown as Redis
  const feeds = [{ name: 'brand', account: 'main', type: 'legacy', filters: { type: ['leaks'] } }]
  const config = { accounts: [account], feeds } as unknown as Config
  const store = { redis, keys: createKeys('p'), ledgers: [] }
  const checked = checkAccount({ config, store, client }, never)
  await vi.advanceTimersByTimeAsync(30_000)
  const found = await checked
  expect(found.filter(({ check }) => check === 'key')).toMatchObject([{ status: 'ok' }])
  expect(found.filter(({ check }) => check === 'filters')).toMatchObject([
    { status: 'warning', detail: 'no answer within 30 s', remedy: 'run doctor again' },
  ])
})

test('a check that cannot be made is a problem that says why', async () => {
  const limits = { timeoutMs: 1_000, stop: never }
  const found = await makeCheck(about('sink', 'soc'), limits, () =>
    Promise.reject(new Error('the file is gone')),
  )
  expect(found).toMatchObject([
    { status: 'problem', detail: 'could not be checked: the file is gone' },
  ])
  expect(found[0]?.remedy).not.toBeNull()
})

test.each([
  ['hangs', () => new Promise<never>(() => {})],
  ['had found something', () => Promise.resolve([about('sink', 'soc').good('answers')])],
  ['had failed', () => Promise.reject(new Error('reset'))],
])('Ctrl-C ends a check that %s, and says nothing of what was looked at', async (_how, work) => {
  const stop = new AbortController()
  const limits = { timeoutMs: 60_000, stop: stop.signal }
  const made = makeCheck(about('sink', 'soc'), limits, work)
  stop.abort()
  await expect(made).rejects.toThrow(Interruption)
})

test('a disk that does not answer is a problem, and so is one that cannot be asked', async () => {
  const limits = { timeoutMs: 20, stop: never }
  const asked: string[] = []
  const hanging = (folder: string): Promise<number> => {
    asked.push(folder)
    return new Promise(() => {})
  }
  const late = await checkDisk({ folder: '/data', maxBytes: 1 }, limits, hanging)
  expect(asked).toEqual(['/data'])
  expect(late).toMatchObject([{ check: 'disk', subject: '/data', status: 'problem' }])
  expect(late[0]?.detail).toMatch(/^no answer within /)
  const longer = { ...limits, timeoutMs: 5_000 }
  const closed = checkDisk({ folder: '/dev/null/data', maxBytes: 1 }, longer)
  expect(await closed).toMatchObject([
    { status: 'problem', detail: expect.stringContaining('ENOTDIR') },
  ])
})

test('the disk of a folder that is not there yet is that of the folder around it', async () => {
  const outer = mkdtempSync(join(tmpdir(), 'tocsin-disk-'))
  onTestFinished(() => rmSync(outer, { recursive: true }))
  const limits = { timeoutMs: 5_000, stop: never }
  const found = await checkDisk({ folder: join(outer, 'not/yet'), maxBytes: 1 }, limits)
  expect(found).toMatchObject([{ detail: expect.stringMatching(/^\d+ MiB free$/) }])
})

test.each([
  [100, 'problem'],
  [300, 'warning'],
  [2_048, 'ok'],
])('%i MiB of disk for a ledger of 1 GiB are %s', (free, status) => {
  const found = judgeDisk('/data', free * mebibyte, 1024 * mebibyte)
  expect(found).toMatchObject({ check: 'disk', status, detail: `${free} MiB free` })
  expect(found.remedy === null).toBe(status === 'ok')
})

test.each([
  [100, false, 'problem'],
  [300, false, 'warning'],
  [600, false, 'ok'],
  [600, true, 'warning'],
  [1_600, true, 'ok'],
])('%i MiB of memory, embedded Redis %s, are %s', (available, hasRedis, status) => {
  const needs = { hasRedis, maxBytes: 1024 * mebibyte }
  expect(judgeMemory({ availableBytes: available * mebibyte, takenBytes: 0 }, needs)).toMatchObject(
    { status },
  )
})

test('what the running daemon takes already is not asked for once more', () => {
  const memory = { availableBytes: 300 * mebibyte, takenBytes: 250 * mebibyte }
  expect(judgeMemory(memory, { hasRedis: false, maxBytes: 0 })).toMatchObject({
    status: 'ok',
    detail: '300 MiB available, and 250 MiB that the daemon takes already',
  })
})

test('what answers without end in the place of the daemon is not read to its end', async () => {
  let sent = 0
  const config = await serve((_request, response) => {
    const piece = `# ${'x'.repeat(64 * 1024)}\n`
    const more = (): void => {
      if (response.destroyed || sent > 100 * mebibyte) return void response.end()
      sent += piece.length
      response.write(piece, more)
    }
    more()
  })
  const found = await checkHost(config, never)
  expect(found.find(({ check }) => check === 'memory')?.detail).toMatch(/^\d+ MiB available$/)
  expect(sent).toBeLessThan(30 * mebibyte)
})

function serveMetrics(text: string): Promise<Config> {
  return serve((_request, response) => void response.end(text))
}

async function serve(answer: RequestListener): Promise<Config> {
  const server = createServer(answer)
  await once(server.listen(0, '127.0.0.1'), 'listening')
  onTestFinished(() => void server.close())
  const { port } = server.address() as AddressInfo
  return minimalConfig(`http: { port: ${port} }`)
}

function minimalConfig(more: string): Config {
  const text = `
redis: { embedded: ./nowhere }
accounts: { main: { base_url: 'https://api.example.com', api_key: key } }
feeds: { brand: { type: tenant_events } }
sinks: { soc: { type: slack, url: 'https://hooks.example.com/x' } }
route: { sinks: [soc] }
${more}
`
  return parseConfig(text, { file: '/tmp/tocsin.yaml', env: {} }).config
}

test('the daemon that answers at the port of the configuration says what it and its Redis take', async () => {
  const config = await serveMetrics(
    `process_resident_memory_bytes ${4 * mebibyte}\ntocsin_redis_memory_used_bytes ${mebibyte}\n`,
  )
  const found = await checkHost(config, never)
  const { detail } = found.find(({ check }) => check === 'memory') ?? {}
  expect(detail).toMatch(/ available, and 5 MiB that the daemon takes already$/)
})

test.each(['', 'many', 'Infinity', '1e300', '-4e9'])(
  'an answer without a figure that a daemon can have (%j) changes nothing',
  async (figure) => {
    const metrics = `process_resident_memory_bytes ${figure}\n`
    const found = await checkHost(await serveMetrics(metrics), never)
    expect(found.find(({ check }) => check === 'memory')?.detail).toMatch(/^\d+ MiB available$/)
  },
)

test.each([
  ['2026a', 'ok'],
  ['2025b', 'ok'],
  ['2024a', 'warning'],
  [undefined, 'problem'],
])('time zone data of %s in 2026 are %s', (release, status) => {
  expect(judgeTimeZones({ release, nowMs: Date.UTC(2026, 5, 1) })).toMatchObject({ status })
})

test.each([
  [69, 'ok', 'used, of'],
  [70, 'problem', ': no more events are taken in'],
])('a Redis of which %i %% are used: %s', async (used, status, detail) => {
  const info = `redis_version:7.2.0\r\naof_enabled:1\r\nused_memory:${used * mebibyte}\r\nmaxmemory:${100 * mebibyte}\r\n`
  const node = { options: { host: 'redis', port: 6379 }, info: async () => info }
  const nodes = (role: string): unknown[] => (role === 'master' ? [node] : [])
  const answers = { ping: async () => 'PONG', get: async () => null }
  const redis = { isCluster: true, ...answers, nodes } as unknown as Redis
  const { redis: place, ledger } = minimalConfig('')
  const config = { redis: place, ledger: { ...ledger, maxBytes: mebibyte } }
  const found = await checkRedis(redis, config)
  expect(found.find(({ check }) => check === 'redis memory')).toMatchObject({
    status,
    detail: expect.stringContaining(detail),
  })
})
