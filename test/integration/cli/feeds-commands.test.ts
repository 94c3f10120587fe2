/** `feeds list`, `pause` and `resume` over feeds of every type, in two accounts. */
import { expect, test } from 'vitest'
import type { AccountLedger } from '../../../src/store/account-ledger.ts'
import { peekFeed } from '../../../src/store/feed-state.ts'
import { createKeys } from '../../../src/redis/keys.ts'
import { pastThisMillisecond, redisForTests, routed, takeIn } from '../../support/ledger.ts'
import { aFile, tocsin } from './tocsin.ts'

const tests = redisForTests()
let prefixes = 0

interface Scene {
  ledger: AccountLedger
  config: [string, string]
}

async function aScene(): Promise<Scene> {
  const prefix = `feeds${(prefixes += 1)}`
  const keys = createKeys(prefix)
  const text = `redis: { url: "${tests.server.url}", prefix: ${prefix} }
accounts:
  main: { base_url: "http://127.0.0.1:9", api_key: fw_key }
  second: { base_url: "http://127.0.0.1:9", api_key: fw_key }
feeds:
  brand: { type: events, account: main, identifier_group: 1042 }
  staff: { type: credentials, account: second, identifier: 77, severity: high }
  leaks:
    type: credential_search
    account: main
    severity: low
    rescan: false
    query: { type: auth_domain, fqdn: sso.example.com }
sinks:
  soc: { type: slack, url: "https://hooks.slack.com/services/T0/B0/hush-hush" }
route: { sinks: [soc] }
`
  return {
    ledger: await tests.ledger({ keys }),
    config: ['--config', aFile('tocsin.yaml', text)],
  }
}

async function listed(config: string[]): Promise<Record<string, unknown>[]> {
  const { out } = await tocsin('feeds', 'list', '--output=json', ...config)
  return JSON.parse(out) as Record<string, unknown>[]
}

/** A page of the feed's rescan, which began when the tail stood at `lateBeforeMs`. */
function rescanPage(startedAtMs: number): Parameters<typeof takeIn>[2] {
  return {
    sequence: 0,
    rescan: {
      place: 'whole',
      lateBeforeMs: Date.UTC(2026, 0, 2),
      isSnapshot: false,
      fieldsAtEnd: [],
    },
    scan: { fingerprint: 's', body: {}, cursor: 'c', reason: 'again', startedAtMs },
  }
}

test('feeds list tells how the rescan is, and what came late or was raised', async () => {
  const { ledger, config } = await aScene()
  const startedAtMs = Date.UTC(2026, 0, 3)
  await takeIn(ledger, [routed({ uid: 'leak/x/1', createdAtMs: Date.UTC(2026, 0, 2) })])
  const late = routed({ uid: 'leak/x/2', createdAtMs: Date.UTC(2026, 0, 1) })
  const raised = routed({ uid: 'leak/x/1', severity: 'critical' })
  await takeIn(ledger, [late, raised], { ...rescanPage(startedAtMs), isCaughtUp: false })
  expect(await listed(config)).toMatchObject([
    {
      rescan: { last_completed: null, running_since: '2026-01-03T00:00:00.000Z' },
      counts: { fetched: 3, new: 2, late: 1, raised: 1 },
    },
    {},
    { rescan: null },
  ])

  await takeIn(ledger, [], { ...rescanPage(startedAtMs), sequence: 1 })
  expect((await listed(config))[0]).toMatchObject({
    rescan: { last_completed: expect.any(String), running_since: null },
  })
})

test('a feed stays paused since the first time, with the newest reason, and goes on where it was', async () => {
  const { ledger, config } = await aScene()
  await takeIn(ledger, [routed({ uid: 'leak/x/1' })])
  const before = await peekFeed(ledger, 'brand', 0)
  const pause = async (reason: string): Promise<unknown> => {
    const { code } = await tocsin('feeds', 'pause', 'brand', `--reason=${reason}`, ...config)
    expect(code).toBe(0)
    return (await peekFeed(ledger, 'brand', 0))?.paused
  }
  const first = (await pause('a noisy source')) as { sinceMs: number }
  expect(first).toEqual({ reason: 'a noisy source', sinceMs: expect.any(Number) })
  await pastThisMillisecond(tests.redis)
  expect(await pause(' second ')).toEqual({ reason: 'second', sinceMs: first.sinceMs })
  expect((await listed(config))[0]).toMatchObject({
    paused: { reason: 'second', since: new Date(first.sinceMs).toISOString() },
  })
  await tocsin('feeds', 'resume', 'brand', ...config)
  expect(await peekFeed(ledger, 'brand', 0)).toEqual(before)
})
