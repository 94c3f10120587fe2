/** `audit`: a gap behind the ledger's back is named, and repaired on the way of every event. */
import { describe, expect, onTestFinished, test } from 'vitest'
import { readAuditNotes } from '../../../src/audit/audit-schedule.ts'
import { createKeys } from '../../../src/redis/keys.ts'
import { loadConfig } from '../../../src/config/load.ts'
import { activateGeneration } from '../../../src/store/account-ledger.ts'
import { readLedgerCheckNote } from '../../../src/audit/ledger-check-schedule.ts'
import { startSandbox, type Sandbox } from '../../../src/sandbox/sandbox.ts'
import { expectConservation, redisForTests, routed, takeIn } from '../../support/ledger.ts'
import { aReplica, nothingPending, until } from '../../support/rehearsal.ts'
import { aFile, tocsin, type Ended } from './tocsin.ts'

const tests = redisForTests()
let prefixes = 0

interface Scene {
  sandbox: Sandbox
  yaml: string
  prefix: string
  run: (...args: string[]) => Promise<Ended>
}

async function aScene(otherFeeds = ''): Promise<Scene> {
  const limits = { search: 50, basic: 50 }
  const sandbox = await startSandbox({
    organizations: [{ id: 7, limits, keys: [{ key: 'fw_sandbox', tenants: [42] }] }],
  })
  onTestFinished(() => sandbox.close())
  const prefix = `audit${(prefixes += 1)}`
  const yaml = `
redis: {url: '${tests.server.url}', prefix: ${prefix}}
http: {port: 0}
accounts: {main: {base_url: '${sandbox.url}', api_key: fw_sandbox, limits: {search: 50, basic: 50}}}
feeds:
  brand: {type: events, identifier_group: 1042, detail: [], every: 5s, rescan: false}
  ${otherFeeds}
sinks:
  siem: {type: webhook, url: '${sandbox.url}/hooks/siem', secret: '${sandbox.webhookSecret}', allow_private: true}
route: {sinks: [siem]}
`
  const path = aFile('tocsin.yaml', yaml)
  return { sandbox, yaml, prefix, run: (...args) => tocsin(...args, '--config', path) }
}

async function withDaemon({ yaml }: Scene, work: () => Promise<void>): Promise<void> {
  const app = aReplica(yaml)
  try {
    await app.start()
    await work()
    await until('nothing is pending', () => nothingPending(app))
  } finally {
    await app.stop()
  }
}

test('a planted gap is named, and delivered once it is repaired', async () => {
  const scene = await aScene()
  const uids = scene.sandbox
    .addEvents(23, { severity: 'high', groupIds: [1042] })
    .map(({ uid }) => uid)
  const events = () => scene.sandbox.received.webhook.filter(({ uids: [uid] }) => uid !== undefined)
  const received = (): number => events().length
  await withDaemon(scene, () => until('all have arrived', () => received() === 23))

  const ledger = await tests.ledger({ keys: createKeys(scene.prefix) })
  const gone = uids[11]!
  const id = ledger.fingerprints.recordId(gone)
  await ledger.redis.del(ledger.key('rec', id), ledger.key('pay', id))

  const named = await scene.run('audit', '--feed', 'brand')
  expect(named.code).toBe(1)
  expect(named.out).toContain('23 events shown, 22 in the ledger, 1 missing')
  expect(named.out).toContain(gone)
  expect(named.out).toMatch(/missing  .*, created .*: record gone/)

  const repaired = await scene.run('audit', '--feed', 'brand', '--repair', '--output', 'json')
  expect(repaired.code).toBe(0)
  expect(JSON.parse(repaired.out)).toMatchObject([
    { feed: 'brand', shown: 23, still_missing: [], missing: [{ uid: gone, why: 'record_gone' }] },
  ])
  await withDaemon(scene, () => until('it has arrived again', () => received() === 24))
  expect(events().at(-1)?.uids).toEqual([gone]) // a notice of what was missing may follow
  expect((await scene.run('audit')).code).toBe(0)
  await expectConservation(ledger)
})

test('a repair by a narrower look makes what metrics say better by as much as it took in', async () => {
  const scene = await aScene()
  const createdAtMs = Date.now() - 20 * 60_000
  const given = { severity: 'high', groupIds: [1042], createdAtMs, matchedAtMs: createdAtMs }
  const [gone] = scene.sandbox.addEvents(3, given)
  const received = (): number => scene.sandbox.received.webhook.length
  await withDaemon(scene, () => until('all have arrived', () => received() >= 3))
  const keys = createKeys(scene.prefix)
  const ledger = await tests.ledger({ keys })
  const noted = async (): Promise<number | undefined> =>
    (await readAuditNotes(tests.redis, keys))['brand']?.missing
  await ledger.redis.del(ledger.key('rec', ledger.fingerprints.recordId(gone!.uid)))
  await scene.run('audit', '--feed', 'brand')
  expect(await noted()).toBe(1)
  expect((await scene.run('audit', '--feed', 'brand', '--since', '5m')).code).toBe(0)
  expect(await noted()).toBe(1) // it looked at less
  expect((await scene.run('audit', '--feed', 'brand', '--since', '1h', '--repair')).code).toBe(0)
  expect(await noted()).toBe(0)
})

test('a feed that was never read to its end is said to be so', async () => {
  const { code, out } = await (await aScene()).run('audit', '--feed', 'brand')
  expect(out).toBe(
    'brand: not compared: the feed was not read to its end yet, or not since it was changed or rewound\n',
  )
  expect(code).toBe(0)
})

describe('the ledger itself', () => {
  test('is told with its numbers, without asking the service anything', async () => {
    const scene = await aScene()
    scene.sandbox.addEvents(12, { severity: 'high', groupIds: [1042] })
    const received = (): number => scene.sandbox.received.webhook.length
    await withDaemon(scene, () => until('all have arrived', () => received() === 12))
    const asked = scene.sandbox.requests.length
    const { code, out, err } = await scene.run('audit', '--ledger')
    expect({ code, err }).toEqual({ code: 0, err: '' })
    expect(out).toMatch(/^ledger of main: 12 records as of .* UTC, all of it adds up\n/)
    expect(out).toMatch(
      / {2}feed brand: (\d+) fetched = 12 new \+ \d+ duplicate \+ 0 quarantined \+ 0 baseline\n/,
    )
    expect(out).toContain(
      '  sink siem: 12 created + 0 replayed = 12 delivered + 0 dead + 0 suppressed + 0 diverted + 0 pending; the records agree\n',
    )
    expect(scene.sandbox.requests.length).toBe(asked)
    const whole = await scene.run('audit')
    expect(whole).toMatchObject({ code: 0 })
    expect(whole.out).toContain('nothing is missing')
    expect(whole.out).toContain('all of it adds up')
  })

  test('that does not add up is named, with what to do, and ends in 1', async () => {
    const { prefix, run } = await aScene()
    const keys = createKeys(prefix)
    const ledger = await tests.ledger({ keys })
    await takeIn(ledger, [routed({ uid: 'a/b/1' }, ['siem']), routed({ uid: 'a/b/2' }, ['siem'])])
    await tests.redis.zrem(
      ledger.key('due', 'siem'),
      `i:${ledger.fingerprints.recordId('a/b/1')}:0:siem`,
    )
    await tests.redis.hincrby(ledger.key('counters'), 's|siem|pending|queued', 3)
    const { code, out } = await run('audit', '--ledger')
    expect(code).toBe(1)
    expect(out).toContain('2 records')
    expect(out).toContain('it does not add up')
    expect(out).toContain('+ 5 pending, -3 unaccounted for; the records have 2 pending')
    expect(out).toContain('stranded  a/b/1 for siem, queued: lacks due')
    expect(out).toContain('tocsin items move --sink siem --to <sink>')
    expect((await readLedgerCheckNote(tests.redis, keys))?.discrepancies).toEqual({ siem: 7 })
    const asJson = await run('audit', '--ledger', '--output', 'json')
    expect(JSON.parse(asJson.out)).toMatchObject([
      {
        ledger: 'main',
        whole: false,
        sinks: [{ sink: 'siem', unaccounted: -3, pending_in_records: 2 }],
        stranded: [{ uid: 'a/b/1', sink: 'siem', state: 'queued', lacks: 'due' }],
      },
    ])
  })

  test("by another configuration than the replicas' leaves the metrics as they are", async () => {
    const { prefix, yaml, run } = await aScene()
    const keys = createKeys(prefix)
    const { hash } = loadConfig({ path: aFile('same.yaml', yaml), env: {} })
    await activateGeneration(tests.redis, keys, { hash, digest: '' })
    await run('audit', '--ledger')
    const noted = await readLedgerCheckNote(tests.redis, keys)
    expect(noted?.records).toBe(0)
    const other = aFile('other.yaml', yaml.replace('accounts: {main:', 'accounts: {renamed:'))
    expect(await tocsin('audit', '--ledger', '--config', other)).toMatchObject({ code: 0 })
    expect(await readLedgerCheckNote(tests.redis, keys)).toEqual(noted)
  })
})

test('items show says of what made room what is still known of it', async () => {
  const { prefix, run } = await aScene()
  const ledger = await tests.ledger({ keys: createKeys(prefix) })
  await takeIn(ledger, [routed({ uid: 'a/b/1' }, ['siem'])])
  await ledger.redis.del(ledger.key('rec', ledger.fingerprints.recordId('a/b/1')))
  const known = await run('items', 'show', 'a/b/1')
  expect(known.code).toBe(0)
  expect(known.out).toContain('taken in by brand; its history is no longer kept')
  expect((await run('items', 'show', 'a/b/2')).code).toBe(1)
})
