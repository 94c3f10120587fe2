/** The probes that judge, and what becomes of one that fails itself. */
import { expect, test, vi } from 'vitest'
import { serviceProbe } from '../../../src/cli/set-up/account-probes.ts'
import { about, type Finding, type Probe, runProbes } from '../../../src/operator/probes/probe.ts'
import { redisMemoryProbe } from '../../../src/operator/probes/redis-probes.ts'
import { parseConfig } from '../../../src/config/load.ts'
import type { Config } from '../../../src/config/config.ts'
import { Interruption } from '../../../src/cli/terminal.ts'
import type { Redis } from '../../../src/redis/client.ts'
import type { UpstreamClient } from '../../../src/upstream/client.ts'
import { UpstreamError } from '../../../src/upstream/error.ts'

const mebibyte = 2 ** 20
const never = new AbortController().signal

function aProbe(find: () => Promise<Finding[]>, more: Partial<Probe<null>> = {}): Probe<null> {
  return { name: 'sink', timeoutMs: 60_000, subject: () => 'soc', find, ...more }
}

const run = (...list: Probe<null>[]): Promise<Finding[]> => runProbes(list, null, never)
const hangs = (): Promise<never> => new Promise(() => {})

test('a probe that takes too long is a problem, and says how long it was waited for', async () => {
  expect(await run(aProbe(hangs, { timeoutMs: 20 }))).toEqual([
    {
      check: 'sink',
      subject: 'soc',
      status: 'problem',
      detail: expect.stringMatching(/^no answer within /),
      remedy: 'look at the network between here and there',
    },
  ])
})

test('a probe that may take too long is a warning, and nothing of the network', async () => {
  const found = await run(aProbe(hangs, { timeoutMs: 20, ifLate: 'warning' }))
  expect(found).toMatchObject([{ status: 'warning', remedy: 'run doctor again' }])
})

test('a probe that fails is a problem that says why, and stops no other', async () => {
  const broken = aProbe(() => Promise.reject(new Error('the file is gone')))
  const well = aProbe(async () => [about('sink', 'soc').good('answers')])
  expect(await run(broken, well)).toMatchObject([
    { status: 'problem', detail: 'could not be checked: the file is gone' },
    { status: 'ok' },
  ])
})

test('what depends on a probe is asked only where that finds no problem', async () => {
  const subject = about('sink', 'soc')
  const basis = (finding: Finding): Probe<null> => aProbe(async () => [finding], { isBasis: true })
  const next = vi.fn<() => Promise<Finding[]>>(async () => [subject.good('took it')])
  expect(await run(basis(subject.bad('problem', 'gone', 'mend it')), aProbe(next))).toHaveLength(1)
  expect(next).not.toHaveBeenCalled()
  expect(await run(basis(subject.bad('warning', 'slow', 'wait')), aProbe(next))).toHaveLength(2)
})

test.each([
  ['hangs', hangs],
  ['had found something', async () => [about('sink', 'soc').good('answers')]],
  ['had failed', () => Promise.reject(new Error('reset'))],
])('Ctrl-C ends a probe that %s, and says nothing of what was looked at', async (_how, find) => {
  const stop = new AbortController()
  const made = runProbes([aProbe(find)], null, stop.signal)
  stop.abort()
  await expect(made).rejects.toThrow(Interruption)
})

test('a service that could not be asked in time under the rate limit is a warning', async () => {
  const account = { baseUrl: 'http://127.0.0.1:9', name: 'main' }
  const late = new UpstreamError('timeout', 'no API slot came in time under the rate limit')
  const client = {
    account,
    checkHealth: () => Promise.reject(late),
  } as unknown as UpstreamClient
  expect(await runProbes([serviceProbe], { client }, never)).toMatchObject([
    { check: 'service', status: 'warning', detail: `not known: ${late.message}` },
  ])
})

function minimalConfig(): Config {
  const text = `
redis: { embedded: ./nowhere }
accounts: { main: { base_url: 'https://api.example.com', api_key: key } }
feeds: { brand: { type: events } }
sinks: { soc: { type: slack, url: 'https://hooks.example.com/x' } }
route: { sinks: [soc] }
`
  return parseConfig(text, { file: '/tmp/tocsin.yaml', env: {} }).config
}

test.each([
  [69, 'ok', 'used, of'],
  [70, 'problem', ': no more events are taken in'],
])('a Redis of which %i %% are used: %s', async (used, status, detail) => {
  const info = `redis_version:7.2.0\r\naof_enabled:1\r\nused_memory:${used * mebibyte}\r\nmaxmemory:${100 * mebibyte}\r\n`
  const node = { options: { host: 'redis', port: 6379 }, info: async () => info }
  const nodes = (role: string): unknown[] => (role === 'master' ? [node] : [])
  const answers = { ping: async () => 'PONG', get: async () => null }
  const redis = { isCluster: true, ...answers, nodes } as unknown as Redis
  const given = minimalConfig()
  const config = { ...given, ledger: { ...given.ledger, maxBytes: mebibyte } }
  expect(await runProbes([redisMemoryProbe], { redis, config }, never)).toMatchObject([
    { status, detail: expect.stringContaining(detail) },
  ])
})
