/** A service that answers without measure: the daemon stays well, and so does everybody else in it. */
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import { startSandbox } from '../../src/sandbox/sandbox.ts'
import { startDaemon } from '../integration/cli/daemon.ts'
import { startHttpServer, type ReceivedRequest } from '../support/http-server.ts'
import { startRedis } from '../support/redis.ts'
import { until } from '../support/until.ts'

const megabyte = 2 ** 20

/** What the hostile service answers to a search, by the identifier group. */
const answers: Record<string, string> = {
  '1': `{"items":[${'{},'.repeat((64 * megabyte) / 3 - 10)}{}],"next":null}`,
  '2': `{"items":[${Array.from({ length: 55_000 }, (_none, at) => `{"metadata":{"uid":"a/b/${at}"}}`).join(',')}]}`,
  '3': `{"items":[{"metadata":{"uid":"paste/x/huge","severity":"critical"},"highlights":{"text":["${'password: hunter2 '.repeat((3 * megabyte) / 18)}"]}}]}`,
}

test('64 MiB of {}, 55,000 tiny events and an event of 3 MiB harm neither the daemon nor its other feeds', async () => {
  const [redis, sandbox, hostile] = await Promise.all([
    startRedis(),
    startSandbox({ enforceLimits: false }),
    startHttpServer(),
  ])
  onTestFinished(async () => {
    await Promise.all([sandbox.close(), redis.stop(), hostile.stop()])
  })
  hostile.script(async (request) => {
    const [, group = ''] = /identifier_groups\/(\d+)\/_search/.exec(request.path) ?? []
    if (answers[group] !== undefined) return { status: 200, body: answers[group] }
    return forward(sandbox.url, request)
  })
  const key = sandbox.apiKeys[0]!
  const limits = '{search: 50, basic: 50}'
  const daemon = await startDaemon(`
redis: {url: '${redis.url}'}
http: {port: 0}
accounts:
  good: {base_url: '${sandbox.url}', api_key: '${key}', limits: ${limits}}
  hostile: {base_url: '${hostile.url}', api_key: '${key}', organization_id: 8, limits: ${limits}}
feeds:
  brand: {type: events, account: good, identifier_group: 1042, every: 5s}
  empty: {type: events, account: hostile, identifier_group: 1, every: 5s, detail: []}
  tiny: {type: events, account: hostile, identifier_group: 2, every: 5s, detail: []}
  huge: {type: events, account: hostile, identifier_group: 3, every: 5s, detail: []}
sinks:
  siem: {type: webhook, url: '${sandbox.url}/hooks/siem', secret: '${sandbox.webhookSecret}', allow_private: true}
route: {sinks: [siem]}
`)
  const delivered = (): Set<string> => new Set(sandbox.received.webhook.flatMap(({ uids }) => uids))
  const port = daemon.lines('http server listens')[0]!['port'] as number
  let unanswered = 0
  const stopLooking = new AbortController()
  onTestFinished(() => stopLooking.abort())
  const looking = (async () => {
    while (!stopLooking.signal.aborted) {
      const answer = await fetch(`http://127.0.0.1:${port}/healthz`).catch(() => undefined)
      await answer?.text()
      if (!answer) unanswered += 1
      await sleep(50)
    }
  })()

  const bodies = (): string => sandbox.received.webhook.map(({ body }) => body).join(' ')
  await until('the huge event is told', () => bodies().includes('paste/x/huge'))
  for (let round = 0; round < 3; round += 1) {
    const uids = sandbox.addEvents(5).map(({ uid }) => uid)
    await until('the good feed goes on', () => uids.every((uid) => delivered().has(uid)))
  }
  for (const feed of ['empty', 'tiny']) {
    const failed = `tocsin_feed_polls_failed_total{feed="${feed}",reason="contract"}`
    await until(`${feed} fails`, async () => metric(await daemon.metrics(), failed) > 0)
  }
  const metrics = await daemon.metrics()
  const said = daemon.lines('poll failed').map((line) => JSON.stringify(line))
  expect(said.some((line) => line.includes('too large to be read'))).toBe(true)
  expect(metric(metrics, 'process_resident_memory_bytes')).toBeLessThan(600 * megabyte)
  expect(bodies()).not.toContain('hunter2')
  stopLooking.abort()
  await looking

  // Each of these answers blocked 0.4.0 for minutes of the processor, in which it answered nobody. Time of
  // the processor is the same however many others have it, too.
  expect(unanswered).toBe(0)
  const cpuSeconds = metric(metrics, 'process_cpu_seconds_total')
  const answered = hostile.requests.filter(({ path }) => path.endsWith('/_search')).length
  expect(cpuSeconds / answered).toBeLessThan(20)

  daemon.child.kill('SIGTERM')
  expect((await daemon.ended).code).toBe(0)
  expect(daemon.lines('stopped')).toHaveLength(1)
}, 300_000)

function metric(metrics: string, name: string): number {
  const line = metrics.split('\n').find((text) => text.startsWith(`${name} `))
  return Number(line?.split(' ').at(-1) ?? Number.NaN)
}

async function forward(url: string, { method, path, headers, body }: ReceivedRequest) {
  const { authorization = '' } = headers
  const asked = { method, headers: { authorization, 'content-type': 'application/json' } }
  const answer = await fetch(url + path, body === '' ? asked : { ...asked, body })
  return { status: answer.status, body: await answer.text() }
}
