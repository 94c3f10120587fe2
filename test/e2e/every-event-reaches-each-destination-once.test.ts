import { afterAll, beforeAll, expect, test } from 'vitest'
import type { App } from '../../src/daemon/daemon.ts'
import { readAccounting } from '../../src/store/accounts.ts'
import type { EndMode } from '../../src/sandbox/options.ts'
import { startSandbox, type Sandbox } from '../../src/sandbox/sandbox.ts'
import { expectConservation } from '../support/ledger.ts'
import { startRedis, type TestRedis } from '../support/redis.ts'
import { aReplica, nothingPending, until } from '../support/rehearsal.ts'

/*
 * Organization 7 has the tenants 42 and 43 under one limit, with one account each. Account brand has two
 * feeds with different labels on groups that share events; account twin sees the same events again.
 */
const organizations = [
  {
    id: 7,
    limits: { search: 20, basic: 40 },
    keys: [
      { key: 'fw_one', tenants: [42] },
      { key: 'fw_two', tenants: [43] },
    ],
  },
]
const groups = [
  { id: 1042, name: 'Brand', tenantId: 42, identifiers: [{ id: 77, name: 'example.com' }] },
  { id: 1043, name: 'Executives', tenantId: 42, identifiers: [{ id: 78, name: 'alice' }] },
  { id: 2042, name: 'Twin', tenantId: 43, identifiers: [{ id: 79, name: 'example.org' }] },
]

function configOf(sandbox: Sandbox, redis: TestRedis): string {
  const account = (key: string): string =>
    `{base_url: '${sandbox.url}', link_hosts: [app.example.com], api_key: ${key}, limits: {search: 20, basic: 40}}`
  return `
redis: {url: '${redis.url}'}
http: {port: 0}
accounts:
  one: ${account('fw_one')}
  two: ${account('fw_two')}
feeds:
  brand: {type: events, account: one, identifier_group: 1042, detail: [], every: 5s, initial_poll: send, labels: {team: brand}}
  people: {type: events, account: one, identifier_group: 1043, detail: [], every: 5s, initial_poll: send, labels: {team: people}}
  twin: {type: events, account: two, identifier_group: 2042, detail: [], every: 5s, initial_poll: send, labels: {team: twin}}
sinks:
  siem: {type: webhook, url: '${sandbox.url}/hooks/siem', secret: '${sandbox.webhookSecret}', allow_private: true}
  people: {type: webhook, url: '${sandbox.url}/hooks/people', secret: '${sandbox.webhookSecret}', allow_private: true, batch: {max: 7, wait: 250ms}}
  soc: {type: slack, url: '${sandbox.slackUrl}', allow_private: true, limit: 50/s}
  oncall: {type: email, smtp: '${sandbox.smtpUrl}', from: tocsin@example.com, to: [a@example.com, b@example.com], tls: off}
route:
  sinks: [siem]
  group_wait: 0s
  routes:
    - {name: urgent, matchers: ['severity>=high'], sinks: [soc, oncall, siem], continue: true}
    - {name: people, matchers: ['team="people"'], sinks: [people]}
`
}

/** How often each uid reached a place; accounts are told apart by what the message says of its feed. */
function arrivals(sandbox: Sandbox, path: string): string[] {
  const inWebhook = sandbox.received.webhook.filter(({ to }) => to === path)
  return inWebhook.flatMap(({ json }) =>
    elementsOf(json).map(({ account, uid }) => `${account} ${uid}`),
  )
}

function elementsOf(json: unknown): { account: string; uid: string }[] {
  const { data } = json as { data: { items?: { account: string; uid: string }[] } }
  return data.items ?? [data as unknown as { account: string; uid: string }]
}

function sorted(texts: string[]): string[] {
  return texts.toSorted()
}

let redis: TestRedis

beforeAll(async () => {
  redis = await startRedis()
})

afterAll(() => redis.stop())

async function rehearse(
  endMode: EndMode,
  prefix: string,
  scenario: (sandbox: Sandbox, replicas: App[]) => Promise<void>,
): Promise<void> {
  const sandbox = await startSandbox({
    organizations,
    groups,
    endMode,
    emptyPages: 0.2,
    shortPages: 0.2,
    slackLimit: { perSecond: 1_000, burst: 1_000 },
  })
  const yaml = configOf(sandbox, redis).replace('redis: {', `redis: {prefix: ${prefix}, `)
  const replicas = [aReplica(yaml), aReplica(yaml)]
  try {
    await scenario(sandbox, replicas)
  } finally {
    await Promise.all(replicas.map((replica) => replica.stop()))
    await sandbox.close()
  }
}

test.concurrent.each<EndMode>(['full', 'empty', 'absent', 'echo'])(
  'two replicas deliver each event once to each destination, with the end of a feed as "%s"',
  async (endMode) => {
    await rehearse(endMode, `end-${endMode}`, async (sandbox, replicas) => {
      const high = { severity: 'high' }
      const both = sandbox.addEvents(12, { ...high, groupIds: [1042, 1043, 2042] })
      const brand = sandbox.addEvents(15, { severity: 'low', groupIds: [1042] })
      const twin = sandbox.addEvents(9, { severity: 'medium', groupIds: [2042] })
      sandbox.addRawItem(1042, { metadata: { severity: 'high' }, note: 'no uid' })
      await Promise.all(replicas.map((replica) => replica.start()))
      await until('all taken in and delivered', () => allIn(replicas, [12 + 15, 12, 12 + 9]))

      sandbox.tokens.revokeAll()
      sandbox.faults.add({
        on: '/firework/v4/events/identifier_groups/*',
        effect: 'status',
        status: 429,
        times: 2,
        headers: { 'retry-after': '1' },
      })
      const later = sandbox.addEvents(11, { ...high, groupIds: [1042, 1043] })
      await until('late events delivered', () => allIn(replicas, [27 + 11, 12 + 11, 21]))

      const uids = (events: { uid: string }[], account: string): string[] =>
        events.map(({ uid }) => `${account} ${uid}`)
      const one = uids([...both, ...brand, ...later], 'one')
      const two = uids([...both, ...twin], 'two')
      expect(sorted(arrivals(sandbox, '/hooks/siem'))).toEqual(sorted([...one, ...two]))
      expect(sorted(arrivals(sandbox, '/hooks/people'))).toEqual(
        sorted(uids([...both, ...later], 'one')),
      )
      const urgent = [...both, ...later].map(({ uid }) => uid)
      const toPeople = sorted([...urgent, ...both.map(({ uid }) => uid)])
      expect(sorted(sandbox.received.slack.flatMap((message) => message.uids))).toEqual(toPeople)
      for (const recipient of ['a@example.com', 'b@example.com']) {
        const mails = sandbox.received.email.filter(({ mail }) =>
          mail?.recipients.includes(recipient),
        )
        expect(sorted(mails.flatMap((message) => message.uids))).toEqual(toPeople)
      }
      for (const ledger of replicas[0]!.ledgers) await expectConservation(ledger)
      const [first] = replicas[0]!.ledgers
      expect((await readAccounting(first!)).feeds['brand']).toMatchObject({ quarantined: 1 })
      expect(sandbox.violations()).toEqual({ rate: 0, changedScans: 0 })
    })
  },
)

/** New events of the feeds brand, people and twin. */
async function allIn(replicas: App[], expected: number[]): Promise<boolean> {
  const counted = await Promise.all(replicas[0]!.ledgers.map(readAccounting))
  const feeds = Object.assign({}, ...counted.map(({ feeds }) => feeds)) as Record<
    string,
    { new: number }
  >
  const found = ['brand', 'people', 'twin'].map((feed) => feeds[feed]?.new ?? 0)
  return found.join() === expected.join() && (await nothingPending(replicas[0]!))
}
