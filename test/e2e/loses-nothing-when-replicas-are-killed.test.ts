import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { pendingOf, readAccounting } from '../../src/ledger/accounting.ts'
import type { Book } from '../../src/ledger/book.ts'
import { createRandom } from '../../src/sandbox/random.ts'
import { startSandbox, type Sandbox } from '../../src/sandbox/sandbox.ts'
import {
  giveVerdict,
  openBookOf,
  pourEvents,
  startFleet,
  type Inbox,
} from '../support/crash-rig.ts'
import { connectTo } from '../support/ledger.ts'
import { startRedis } from '../support/redis.ts'
import { until } from '../support/rehearsal.ts'

const kills = 12

function configOf(sandbox: Sandbox, redisUrl: string): string {
  return `
redis: {url: '${redisUrl}'}
http: {port: 0}
accounts: {main: {base_url: '${sandbox.url}', api_key: '${sandbox.apiKeys[0]}', limits: {search: 50, basic: 50}}}
feeds: {brand: {type: events, identifier_group: 1042, every: 5s, backlog: send}}
sinks:
  single: {type: webhook, url: '${sandbox.url}/hooks/single', secret: '${sandbox.webhookSecret}', allow_private: true}
  batch: {type: webhook, url: '${sandbox.url}/hooks/batch', secret: '${sandbox.webhookSecret}', allow_private: true, batch: {max: 8, wait: 300ms}}
  soc: {type: slack, url: '${sandbox.slackUrl}', allow_private: true, limit: 100/s}
  oncall: {type: email, smtp: '${sandbox.smtpUrl}', from: tocsin@example.com, to: [a@example.com], tls: off}
route: {sinks: [single, batch, soc, oncall], group_wait: 0s}
`
}

function inboxesOf(sandbox: Sandbox, emailDestination: string): Inbox[] {
  const { webhook, slack, email } = sandbox.received
  const toPath = (path: string) => webhook.filter(({ to }) => to === path)
  return [
    { destination: 'single', received: toPath('/hooks/single'), saysRepeat: byHeader },
    { destination: 'batch', received: toPath('/hooks/batch'), saysRepeat: byHeader },
    {
      destination: 'soc',
      received: slack,
      saysRepeat: ({ body }) => /may be a repeat/i.test(body),
    },
    { destination: emailDestination, received: email, saysRepeat: byHeader },
  ]
}

function byHeader({ headers }: { headers: Record<string, string> }): boolean {
  return headers['tocsin-possible-repeat'] === 'true'
}

test('replicas killed at random under load, with sinks that lose answers, lose nothing and explain every repeat', async () => {
  const random = createRandom(7)
  const redis = await startRedis()
  const client = connectTo(redis.url)
  const sandbox = await startSandbox({
    organizations: [
      { id: 7, limits: { search: 50, basic: 50 }, keys: [{ key: 'fw_sandbox', tenants: [42] }] },
    ],
    slackLimit: { perSecond: 1_000, burst: 1_000 },
  })
  for (const on of ['/hooks/*', '/slack/*', 'smtp:data']) {
    sandbox.faults.add({ on, effect: 'lose-answer', probability: 0.01 })
  }
  const fleet = startFleet(configOf(sandbox, redis.url), 2)
  try {
    const book = await openBookOf(client, 'tocsin')
    const pouring = pourEvents(sandbox, 25)
    await until('the load flows', () => sandbox.received.webhook.length > 20, 30_000)
    for (let kill = 0; kill < kills; kill += 1) {
      await sleep(300 + 900 * random.next())
      await fleet.replace(random.int(0, fleet.replicas.length - 1))
    }
    await pouring.stop()
    const uids = sandbox.events().map(({ uid }) => uid)
    await until('everything is taken in and settled', () => isSettled(book, uids.length), 90_000)
    const [destination] = await emailDestinations(book)
    const verdict = await giveVerdict(book, uids, inboxesOf(sandbox, destination!))
    process.stdout.write(
      `kills ${kills}: ${JSON.stringify({ ...verdict, lost: verdict.lost.length })}\n`,
    )
    expect(verdict).toMatchObject({ lost: [], unexplained: [], unmarked: [] })
    expect(verdict.events).toBeGreaterThan(100)
  } finally {
    await fleet.stop()
    await sandbox.close()
    client.disconnect()
    await redis.stop()
  }
}, 180_000)

async function isSettled(book: Book, events: number): Promise<boolean> {
  const { feeds, sinks } = await readAccounting(book)
  const pending = Object.values(sinks).reduce((sum, sink) => sum + pendingOf(sink), 0)
  return feeds['brand']?.new === events && pending === 0
}

async function emailDestinations(book: Book): Promise<string[]> {
  const { scanRecords } = await import('../../src/ledger/records.ts')
  for await (const { items } of scanRecords(book)) {
    return items.filter(({ sink }) => sink === 'oncall').map(({ destination }) => destination)
  }
  return []
}
