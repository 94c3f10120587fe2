/** A daemon is killed while acts of its page run: each is done once or not at all, and never without its record. */
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { hashPassword } from '../../src/lib/password-hash.ts'
import { createKeys } from '../../src/redis/keys.ts'
import { type Sandbox, startSandbox } from '../../src/sandbox/sandbox.ts'
import { readActs } from '../../src/store/history/acts.ts'
import { type AccountLedger, openLedger } from '../../src/store/account-ledger.ts'
import { readAccounting } from '../../src/store/accounts.ts'
import { readRecord } from '../../src/store/records.ts'
import { readWrites } from '../../src/store/history/service-writes.ts'
import type { Redis } from '../../src/redis/client.ts'
import { type Daemon, startDaemon } from '../integration/cli/daemon.ts'
import { password } from '../support/door.ts'
import { connectTo, expectConservation, ledgerConfig } from '../support/ledger.ts'
import { fieldsOf, signIn, type Visitor } from '../support/page-rig.ts'
import { startRedis, type TestRedis } from '../support/redis.ts'

let server: TestRedis
let redis: Redis
let sandbox: Sandbox
let yaml: string
const keys = createKeys('killed')

beforeAll(async () => {
  server = await startRedis()
  redis = connectTo(server.url)
  sandbox = await startSandbox({ enforceLimits: false })
  sandbox.faults.add({ on: '/hooks/*', effect: 'status', status: 400 })
  // so that acts are under way when their daemon dies
  sandbox.faults.add({ on: '/firework/*', method: 'PATCH', effect: 'delay', ms: 40 })
  yaml = `
redis: {url: '${server.url}', prefix: killed}
http: {port: 0, users: [{name: mara, role: act, password_hash: '${await hashPassword(password)}'}]}
accounts: {main: {base_url: '${sandbox.url}', api_key: fw_sandbox, limits: {search: 50, basic: 50}}}
feeds: {brand: {type: events, identifier_group: 1042, every: 5s, initial_poll: send, detail: []}}
sinks: {siem: {type: webhook, url: '${sandbox.url}/hooks/a', secret: '${sandbox.webhookSecret}', allow_private: true}}
route: {sinks: [siem]}
`
})
afterAll(async () => {
  redis.disconnect()
  await sandbox.close()
  await server.stop()
})

interface Form {
  path: string
  fields: [string, string][]
}

const rounds = 6
const eventsARound = 5

async function startPage(): Promise<{ daemon: Daemon; at: { port: number } }> {
  const daemon = await startDaemon(yaml)
  const port = daemon.lines('http server listens')[0]!['port'] as number
  const isReady = async (): Promise<boolean> => (await fetch(`http://127.0.0.1:${port}/readyz`)).ok
  await vi.waitUntil(isReady, { timeout: 60_000 }) // until then the page takes no act
  return { daemon, at: { port } }
}

/** Of each event the forms to note it at the service and to send it again. */
async function readForms(mara: Visitor, place: string, at: { port: number }): Promise<Form[]> {
  const { body } = await mara.get(place, at)
  const [note, resend] = [`${place}/note`, '/items/resend']
  return [
    { path: note, fields: [...fieldsOf(body, note), ['note', `of ${place}`]] },
    { path: resend, fields: fieldsOf(body, resend) },
  ]
}

/** The notes that the service was asked to take, by uid. */
function patches(): string[] {
  return sandbox.requests
    .filter(({ method, path }) => method === 'PATCH' && path.endsWith('/tenant/metadata'))
    .map(({ query }) => String(query['uid']))
}

test('each act is done once or not at all, and recorded with the name whenever it was done', async () => {
  const uids = sandbox.addEvents(rounds * eventsARound, { type: 'paste' }).map(({ uid }) => uid)
  let { daemon, at } = await startPage()
  const mara = await signIn(at, 'mara')
  const ledger = await openLedger({ redis, keys, account: 'main', config: ledgerConfig })
  const dead = async () => (await readAccounting(ledger)).sinks['siem']?.dead
  await vi.waitUntil(async () => (await dead()) === uids.length, { timeout: 120_000 })
  const answered = new Map<string, number>()
  for (let round = 0; round < rounds; round += 1) {
    const own = uids.slice(round * eventsARound, (round + 1) * eventsARound)
    const places = own.map((uid) => `/events/main/${ledger.fingerprints.recordId(uid)}`)
    const forms = (await Promise.all(places.map((place) => readForms(mara, place, at)))).flat()
    const before = patches().length
    const posted = forms.map(async ({ path, fields }) => {
      const { status } = await mara.post(path, fields, at).catch(() => ({ status: 0 }))
      if (status === 200) answered.set(path, (answered.get(path) ?? 0) + 1)
    })
    await vi.waitUntil(() => patches().length > before + (round % 4), {
      interval: 1,
      timeout: 60_000,
    })
    daemon.child.kill('SIGKILL')
    await Promise.all([...posted, daemon.ended])
    ;({ daemon, at } = await startPage())
    // whoever saw no answer sends the same forms again
    for (const { path, fields } of forms) {
      const { status } = await mara.post(path, fields, at)
      expect([200, 403]).toContain(status)
      if (status === 200) answered.set(path, (answered.get(path) ?? 0) + 1)
    }
  }
  await expectOnce(ledger, uids, answered)
  daemon.child.kill('SIGTERM')
  await daemon.ended
})

async function expectOnce(
  ledger: AccountLedger,
  uids: readonly string[],
  answered: ReadonlyMap<string, number>,
): Promise<void> {
  const acts = await readActs({ redis, keys }, 10_000)
  expect(new Set(acts.map(({ by }) => by))).toEqual(new Set(['mara']))
  const outcomes = new Set<string>()
  let replays = 0
  for (const uid of uids) {
    const id = ledger.fingerprints.recordId(uid)
    const path = `/events/main/${id}/note`
    const done = patches().filter((one) => one === uid).length
    const noted = acts.filter(({ act }) => act === path)
    const written = await readWrites(ledger, uid)
    const outcome = noted[0]?.outcome ?? 'none'
    const isWhole =
      done <= 1 &&
      noted.length <= 1 &&
      (done === 0 || (noted.length === 1 && written.map(({ by }) => by).join() === 'mara')) &&
      (!answered.has(path) || outcome === 'done') &&
      (outcome !== 'done' || done === 1)
    expect({ uid, done, noted, written, isWhole }).toMatchObject({ isWhole: true })
    outcomes.add(`${done} ${outcome}`)
    const item = (await readRecord(ledger, id))!.items[0]!
    expect(item.replays).toBeLessThanOrEqual(1)
    replays += item.replays
  }
  const resends = acts.filter(({ act }) => act === '/items/resend').length
  expect(replays).toBeLessThanOrEqual(resends)
  expect(replays).toBeGreaterThanOrEqual(answered.get('/items/resend') ?? 0)
  // the kills met acts under way, else this shows nothing
  expect(outcomes).toContain('1 done')
  expect([...outcomes].some((one) => one.endsWith('unclear'))).toBe(true)
  await expectConservation(ledger)
}
