/** `audit`: a gap behind the ledger's back is named and ends in 1, in either comparison. */
import { expect, onTestFinished, test } from 'vitest'
import { createKeys } from '../../../src/redis/keys.ts'
import { startSandbox, type Sandbox } from '../../../src/sandbox/sandbox.ts'
import { redisForTests, routed, takeIn } from '../../support/ledger.ts'
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

async function aScene(): Promise<Scene> {
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

test('audit names an event whose record is gone, and ends in 1', async () => {
  const scene = await aScene()
  const uids = scene.sandbox
    .addEvents(23, { severity: 'high', groupIds: [1042] })
    .map(({ uid }) => uid)
  const received = (): number => scene.sandbox.received.webhook.length
  await withDaemon(scene, () => until('all have arrived', () => received() >= 23))
  expect(await scene.run('audit')).toMatchObject({ code: 0 })

  const ledger = await tests.ledger({ keys: createKeys(scene.prefix) })
  const uid = uids[11]!
  const id = ledger.fingerprints.recordId(uid)
  await ledger.redis.del(ledger.key('rec', id), ledger.key('pay', id))
  const { code, out } = await scene.run('audit', '--feed', 'brand', '--output', 'json')
  expect(code).toBe(1)
  expect(JSON.parse(out)).toMatchObject([
    { feed: 'brand', shown: 23, accounted: 22, missing: [{ uid, why: 'record_gone' }] },
  ])
})

test('audit says why it compares nothing, and ends in 0', async () => {
  const { code, out } = await (await aScene()).run('audit', '--feed', 'brand')
  expect(out).toMatch(/^brand: not compared: the feed was not read to its end yet/)
  expect(code).toBe(0)
})

test('audit --ledger asks the service nothing, names what does not add up, and ends in 1', async () => {
  const { prefix, run, sandbox } = await aScene()
  const ledger = await tests.ledger({ keys: createKeys(prefix) })
  await takeIn(ledger, [routed({ uid: 'a/b/1' }, ['siem']), routed({ uid: 'a/b/2' }, ['siem'])])
  expect(await run('audit', '--ledger')).toMatchObject({ code: 0 })
  const ref = `i:${ledger.fingerprints.recordId('a/b/1')}:0:siem`
  await tests.redis.zrem(ledger.key('due', 'siem'), ref)
  await tests.redis.hincrby(ledger.key('counters'), 's|siem|pending|queued', 3)
  const { code, out } = await run('audit', '--ledger')
  expect(code).toBe(1)
  expect(out).toContain('+ 5 pending, -3 unaccounted for; the records have 2 pending')
  expect(out).toContain('stranded  a/b/1 for siem, queued: lacks due')
  expect(out).toContain('tocsin items move --sink siem --to <sink>')
  const asJson = await run('audit', '--ledger', '--output', 'json')
  expect(JSON.parse(asJson.out)).toMatchObject([
    {
      ledger: 'main',
      whole: false,
      sinks: [{ sink: 'siem', unaccounted: -3, pending_in_records: 2 }],
      stranded: [{ uid: 'a/b/1', sink: 'siem', state: 'queued', lacks: 'due' }],
    },
  ])
  expect(sandbox.requests).toEqual([])
})
