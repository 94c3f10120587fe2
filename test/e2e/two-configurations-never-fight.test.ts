import { afterAll, beforeAll, expect, test } from 'vitest'
import type { App } from '../../src/daemon/daemon.ts'
import type { AccountLedger } from '../../src/store/account-ledger.ts'
import { sumPending, readAccounting, type SinkCounts } from '../../src/store/accounts.ts'
import { peekFeed } from '../../src/store/feed-state.ts'
import { createLogger } from '../../src/lib/logger.ts'
import { startSandbox, type Sandbox } from '../../src/sandbox/sandbox.ts'
import { expectConservation } from '../support/ledger.ts'
import { startRedis, type TestRedis } from '../support/redis.ts'
import { aReplica, nothingPending, until } from '../support/rehearsal.ts'

let redis: TestRedis

beforeAll(async () => {
  redis = await startRedis()
})

afterAll(() => redis.stop())

interface Observed {
  app: App
  /** Lines of the log with this message, as `feed` or `feed reason`. */
  said: (message: string) => string[]
}

const standsBack = 'a newer configuration polls this feed; this replica does not'
const newWalk = 'a new scan begins; what lies behind it is read again'

function observed(yaml: string): Observed {
  const lines: { msg: string; feed?: string; reason?: string }[] = []
  const write = (line: string): void => void lines.push(JSON.parse(line))
  return {
    app: aReplica(yaml, createLogger({ destination: { write } })),
    said: (message) =>
      lines
        .filter(({ msg }) => msg === message)
        .map(({ feed, reason }) => [feed, reason].filter(Boolean).join(' ')),
  }
}

interface Parts {
  prefix: string
  account?: string
  feeds: string
  sinks: string[]
}

function configOf(sandbox: Sandbox, { prefix, account = '', feeds, sinks }: Parts): string {
  const sink = (name: string): string =>
    `${name}: {type: webhook, url: '${sandbox.url}/hooks/${name}', secret: '${sandbox.webhookSecret}', allow_private: true}`
  return `
redis: {url: '${redis.url}', prefix: ${prefix}}
http: {port: 0}
accounts: {main: {base_url: '${sandbox.url}', link_hosts: [app.example.com], api_key: fw_sandbox, limits: {search: 20, basic: 20}${account}}}
feeds: {${feeds}}
sinks: {${sinks.map(sink).join(', ')}}
route: {sinks: [${sinks.join(', ')}]}
`
}

function startTheSandbox(): Promise<Sandbox> {
  return startSandbox({
    organizations: [
      { id: 7, limits: { search: 20, basic: 20 }, keys: [{ key: 'fw_sandbox', tenants: [42] }] },
    ],
  })
}

/** The uids that a webhook got, in order of arrival. */
function arrived(sandbox: Sandbox, sink: string): string[] {
  return sandbox.received.webhook
    .filter(({ to }) => to === `/hooks/${sink}`)
    .map(({ json }) => (json as { data: { uid: string } }).data.uid)
}

function uidsOf(...events: { uid: string }[][]): string[] {
  return events.flat().map(({ uid }) => uid)
}

function hasAll(sandbox: Sandbox, sink: string, uids: string[]): boolean {
  const got = new Set(arrived(sandbox, sink))
  return uids.every((uid) => got.has(uid))
}

async function accountOf(app: App, sink: string): Promise<SinkCounts> {
  return (await readAccounting(app.ledgers[0] as AccountLedger)).sinks[sink]!
}

/** A replica of a newer configuration polls and is gone again, so that the older one has the job. */
async function takeOver(older: Observed, newer: Observed): Promise<void> {
  await newer.app.start()
  await until('the newer one has begun its walk', async () => {
    const state = await peekFeed(newer.app.ledgers[0]!, 'brand', 0)
    return state?.scan?.reason === 'configuration_changed'
  })
  await until('the older one stands back', () => older.said(standsBack).length > 0)
  await newer.app.stop()
  // once more where the account's server is found to filter by match time: that is another request
  expect(new Set(newer.said(newWalk))).toEqual(new Set(['brand configuration_changed']))
}

test.concurrent('a rolling restart to another configuration and back loses nothing and repeats nothing', async () => {
  const sandbox = await startTheSandbox()
  const mend = sandbox.faults.add({ on: '/hooks/gone', effect: 'status', status: 503 })
  const prefix = 'restart'
  const before = configOf(sandbox, {
    prefix,
    feeds:
      'brand: {type: events, identifier_group: 1042, detail: [], every: 5s}, people: {type: events, identifier_group: 1043, detail: [], every: 5s}',
    sinks: ['siem', 'gone'],
  })
  const after = configOf(sandbox, {
    prefix,
    feeds:
      'brand: {type: events, identifier_group: 1042, detail: [], every: 5s, filters: {severity: high}}, staff: {type: events, identifier_group: 1043, detail: [], every: 5s}',
    sinks: ['siem', 'extra'],
  })
  const brand = (count: number, severity: string) => sandbox.addEvents(count, { severity })
  const people = (count: number) => sandbox.addEvents(count, { groupIds: [1043] })
  const older = observed(before)
  const first = observed(after)
  const newer = observed(after)
  const again = observed(before)
  try {
    const early = [...brand(10, 'high'), ...people(4)]
    await older.app.start()
    await until('the first events arrive', () => hasAll(sandbox, 'siem', uidsOf(early)))

    // what the newer one reads otherwise the older one leaves alone, be it the only one there
    await takeOver(older, first)
    await newer.app.start()
    const stoodBackAt = sandbox.requests.length
    const later = [...brand(6, 'critical'), ...people(3)]
    const mild = brand(2, 'low')
    await until('the later events arrive', () => hasAll(sandbox, 'siem', uidsOf(later)))
    await until('so they do at the new sink', () => hasAll(sandbox, 'extra', uidsOf(later)))
    expect(hasAll(sandbox, 'siem', uidsOf(mild))).toBe(false)
    expect(older.said(standsBack)).toEqual(['brand'])
    expect(older.said(newWalk)).toEqual([])
    expect(newer.said(newWalk)).toEqual([])
    const asked = sandbox.requests
      .slice(stoodBackAt)
      .filter(({ path }) => path.endsWith('/1042/_search'))
    expect(asked.length).toBeGreaterThan(0)
    for (const { body } of asked) expect(body).toMatchObject({ filters: { severity: 'high' } })

    // the older one is gone: what its sink missed is held, and counted as such
    await older.app.stop()
    await until('all of the lost sink is held', async () => {
      const gone = await accountOf(newer.app, 'gone')
      return gone.pending['held'] === sumPending(gone)
    })
    const held = (await accountOf(newer.app, 'gone')).pending['held'] ?? 0
    expect(held).toBeGreaterThanOrEqual(early.length)
    await expectConservation(newer.app.ledgers[0]!)

    // and back again
    mend()
    await again.app.start()
    await until('the sink that is back gets all', () => hasAll(sandbox, 'gone', uidsOf(early)))
    await until('what was filtered arrives', () => hasAll(sandbox, 'siem', uidsOf(mild)))
    await newer.app.stop()
    expect([...newer.said(newWalk), ...again.said(newWalk)]).toEqual([
      'brand configuration_changed',
    ])
    const last = [...brand(3, 'info'), ...people(2)]
    await until('all goes on', () => hasAll(sandbox, 'siem', uidsOf(last)))
    await until('all is settled but the sink that has no configuration', async () => {
      const { sinks } = await readAccounting(again.app.ledgers[0]!)
      return sumPending(sinks['siem']!) + sumPending(sinks['gone']!) === 0
    })

    const all = uidsOf(early, later, mild, last)
    expect(arrived(sandbox, 'siem').toSorted()).toEqual(all.toSorted())
    for (const sink of ['gone', 'extra']) {
      expect(arrived(sandbox, sink)).toHaveLength(new Set(arrived(sandbox, sink)).size)
    }
    expect((await accountOf(again.app, 'gone')).delivered).toBeGreaterThanOrEqual(held)
    await expectConservation(again.app.ledgers[0]!)
    expect(sandbox.violations()).toEqual({ rate: 0, changedScans: 0 })
  } finally {
    await Promise.all([older, first, newer, again].map(({ app }) => app.stop()))
    await sandbox.close()
  }
})

test.concurrent('an account that reads elsewhere is another configuration too', async () => {
  const sandbox = await startTheSandbox()
  const parts = {
    prefix: 'tenant',
    feeds: 'brand: {type: events, identifier_group: 1042, detail: [], every: 5s}',
    sinks: ['siem'],
  }
  const older = observed(configOf(sandbox, parts))
  const withTenant = configOf(sandbox, { ...parts, account: ', tenant_id: 42' })
  const first = observed(withTenant)
  const newer = observed(withTenant)
  try {
    const early = sandbox.addEvents(12)
    await older.app.start()
    await until('the first events arrive', () => hasAll(sandbox, 'siem', uidsOf(early)))
    await takeOver(older, first)
    await newer.app.start()
    const later = sandbox.addEvents(12)
    await until('the later events arrive', () => hasAll(sandbox, 'siem', uidsOf(later)))
    await until('all is settled', () => nothingPending(newer.app))
    expect(older.said(newWalk)).toEqual([])
    expect(newer.said(newWalk)).toEqual([])
    expect(arrived(sandbox, 'siem').toSorted()).toEqual(uidsOf(early, later).toSorted())
  } finally {
    await Promise.all([older, first, newer].map(({ app }) => app.stop()))
    await sandbox.close()
  }
})
