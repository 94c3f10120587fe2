import { afterAll, expect, test } from 'vitest'
import { startSandbox, type Sandbox } from '../../src/sandbox/sandbox.ts'
import type { SandboxRequest } from '../../src/sandbox/server.ts'
import { createApp } from '../../src/daemon/daemon.ts'
import { redisForTests, silent } from '../support/ledger.ts'
import { aReplica, hurriedConfig, shortTimings, until } from '../support/rehearsal.ts'

const tests = redisForTests()
const places = [0, 1, 2, 3]
let sandbox: Sandbox | undefined

afterAll(() => sandbox?.close())

/** An account and a feed for each organization; the configuration names none of their ids. */
function configOf({ url, webhookUrl, webhookSecret }: Sandbox, perSecond: number): string {
  const limits = `{search: ${perSecond}, basic: 20}`
  const account = (i: number): string =>
    `a${i}: {base_url: '${url}', link_hosts: [app.example.com], api_key: fw_${i}, limits: ${limits}}`
  const feed = (i: number): string =>
    `f${i}: {type: events, account: a${i}, identifier_group: 1042, detail: [], start: 24h}`
  return `
redis: {url: '${tests.server.url}'}
http: {port: 0}
accounts: {${places.map(account).join(', ')}}
feeds: {${places.map(feed).join(', ')}}
sinks: {siem: {type: webhook, url: '${webhookUrl}', secret: '${webhookSecret}', allow_private: true}}
route: {sinks: [siem]}
`
}

async function polledFeeds(url: string): Promise<number> {
  const text = await (await fetch(`${url}/metrics`)).text()
  const polls = [...text.matchAll(/^tocsin_feed_polls_total\{feed="f\d"\} (\d+)$/gm)]
  return polls.filter(([, count]) => Number(count) > 0).length
}

/** Of all feeds, s. */
async function longestObjective(url: string): Promise<number> {
  const text = await (await fetch(`${url}/metrics`)).text()
  const found = text.matchAll(/^tocsin_feed_lag_objective_seconds\{feed="f\d"\} (\S+)$/gm)
  return Math.max(...[...found].map(([, seconds]) => Number(seconds)))
}

test('organizations that were found out before are read each at its own pace after a restart', async () => {
  const limits = { search: 20, basic: 20 }
  sandbox = await startSandbox({
    organizations: places.map((i) => ({
      id: 70 + i,
      limits,
      keys: [{ key: `fw_${i}`, tenants: [420 + i] }],
    })),
  })
  const first = aReplica(configOf(sandbox, 20))
  const { url } = await first.start()
  await until('all feeds polled', async () => (await polledFeeds(url)) === 4)
  await first.stop()

  // one request in 14 s: one lane for all of them would have the fourth after 42 s
  const seen = sandbox.requests.length
  const again = aReplica(configOf(sandbox, 0.1))
  await again.start()
  const searches = (): SandboxRequest[] =>
    sandbox!.requests.slice(seen).filter(({ path }) => path.endsWith('/_search'))
  await until('four searches', () => searches().length >= 4)
  await again.stop()
  expect(searches()[3]!.atMs - searches()[0]!.atMs).toBeLessThan(20_000)

  // three rounds of one feed, not of all that share a lane; no later pass mends what the first one shows
  const slow = configOf(sandbox, 0.01)
  const timings = { ...shortTimings, stateMs: 600_000 }
  const third = createApp({ ...hurriedConfig(slow), version: 'test', logger: silent, timings })
  const { url: shown } = await third.start()
  await until('objectives of one feed', async () => (await longestObjective(shown)) === 428.572)
  expect(await third.reload(async () => hurriedConfig(slow))).toMatchObject({ status: 'unchanged' })
  expect(await longestObjective(shown)).toBe(428.572)
  await third.stop()
  expect(sandbox.requests.filter(({ path }) => path === '/tokens/test')).toHaveLength(4)
})
