/** A restore as docs/run.md tells it: an older snapshot of Redis in the place of what was lost. */
import { copyFileSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { isConsistent } from '../../src/operator/audit/ledger-check.ts'
import type { App } from '../../src/daemon/daemon.ts'
import { startSandbox } from '../../src/sandbox/sandbox.ts'
import { type HttpServer, type ReceivedRequest, startHttpServer } from '../support/http-server.ts'
import { connectTo, proofOf } from '../support/ledger.ts'
import { freePort } from '../support/free-port.ts'
import { endServer, launchServer } from '../support/redis.ts'
import { aReplica, nothingPending, until } from '../support/rehearsal.ts'

const away = { status: 503 }
const there = { status: 200 }

interface Arrival {
  uid: string
  id: string
  isMarked: boolean
}

/** What a receiver took, in order. */
function arrivals(server: HttpServer, isTaken: (at: number) => boolean): Arrival[] {
  return server.requests.filter((_request, at) => isTaken(at)).map(toArrival)
}

function toArrival({ headers, body }: ReceivedRequest): Arrival {
  const { data } = JSON.parse(body) as { data: { uid: string } }
  const isMarked = headers['tocsin-possible-repeat'] === 'true'
  return { uid: data.uid, id: String(headers['webhook-id']), isMarked }
}

interface Receiver {
  url: string
  setThere: (isThere: boolean) => void
  /** What it accepted. */
  taken: () => Arrival[]
  tried: () => number
}

/** A receiver that can be away. */
async function aReceiver(): Promise<Receiver> {
  const server = await startHttpServer()
  onTestFinished(() => server.stop())
  let isThere = true
  const accepted = new Set<number>()
  server.script((_request, index) => {
    if (isThere) accepted.add(index)
    return isThere ? there : away
  })
  return {
    url: server.url,
    setThere: (value: boolean) => void (isThere = value),
    taken: () => arrivals(server, (at) => accepted.has(at)),
    tried: () => server.requests.length,
  }
}

const uidsOf = (taken: readonly Arrival[]): string[] => [...new Set(taken.map(({ uid }) => uid))]

function aFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'tocsin-restore-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

/** Waits until the snapshot is on the disk. */
async function snapshot(url: string, from: string): Promise<string> {
  const redis = connectTo(url)
  const before = await redis.lastsave()
  await until('a second has passed since the last save', () => Date.now() / 1000 > before + 1)
  await redis.bgsave()
  await until('the snapshot is written', async () => (await redis.lastsave()) > before)
  redis.disconnect()
  const copy = join(aFolder(), 'dump.rdb')
  copyFileSync(join(from, 'dump.rdb'), copy)
  return copy
}

/** Redis reads a snapshot only without its append-only file, which is switched on afterwards. */
async function restore(copy: string, port: number): Promise<void> {
  const folder = aFolder()
  copyFileSync(copy, join(folder, 'dump.rdb'))
  const server = await launchServer(folder, [`port ${port}`, 'appendonly no'])
  onTestFinished(() => endServer(server))
  const redis = connectTo(`redis://127.0.0.1:${port}`)
  await redis.config('SET', 'appendonly', 'yes')
  await until('the append-only file is there', async () =>
    /aof_rewrite_in_progress:0[^]*aof_rewrite_scheduled:0/.test(await redis.info('persistence')),
  )
  redis.disconnect()
}

/** A service, a Redis in a folder, and replicas that poll one into the other. */
async function aScene(sinks: string) {
  const limits = { search: 100, basic: 100 }
  const sandbox = await startSandbox({
    organizations: [{ id: 7, limits, keys: [{ key: 'fw_sandbox', tenants: [42] }] }],
  })
  onTestFinished(() => sandbox.close())
  const [folder, port] = [aFolder(), await freePort()]
  const url = `redis://127.0.0.1:${port}`
  const server = await launchServer(folder, [`port ${port}`])
  onTestFinished(() => endServer(server))
  const yaml = `
redis: {url: '${url}'}
http: {port: 0}
accounts: {main: {base_url: '${sandbox.url}', link_hosts: [app.example.com], api_key: fw_sandbox, limits: {search: 100, basic: 100}}}
feeds: {brand: {type: events, identifier_group: 1042, detail: [], every: 5s, start: 1h, initial_poll: send}}
${sinks}
`
  return {
    sandbox,
    port,
    yaml,
    snapshot: () => snapshot(url, folder),
    endRedis: () => endServer(server),
    replica(): App {
      const app = aReplica(yaml)
      onTestFinished(() => app.stop())
      return app
    },
    pour: (count: number): string[] =>
      sandbox.addEvents(count, { severity: 'critical', groupIds: [1042] }).map(({ uid }) => uid),
  }
}

/** Every sink gets every event. */
function webhooks(urls: Record<string, string>): string {
  const sinks = Object.entries(urls).map(([name, url]) => aWebhook(name, url))
  return `sinks:\n${sinks.join('\n')}\nroute: {sinks: [${Object.keys(urls).join(', ')}]}`
}

function aWebhook(name: string, url: string): string {
  return `  ${name}: {type: webhook, url: '${url}', allow_private: true}`
}

async function settled(receiver: Pick<Receiver, 'taken'>, count: number): Promise<void> {
  const has = (): boolean => uidsOf(receiver.taken()).length >= count
  await until(`${count} events have arrived`, has)
}

const nothingWaits = (app: App): Promise<void> => until('nothing waits', () => nothingPending(app))

async function expectConsistent(app: App): Promise<void> {
  expect((await proofOf(app.ledgers)).every(isConsistent)).toBe(true)
}

test('a restored snapshot loses no event, and repeats only what was delivered after it, under the same ids and unmarked', async () => {
  const [siem, held] = [await aReceiver(), await aReceiver()]
  held.setThere(false)
  const scene = await aScene(webhooks({ siem: siem.url, held: held.url }))
  const first = scene.replica()
  scene.pour(20)
  await first.start()
  await settled(siem, 20)
  siem.setThere(false)
  const tried = siem.tried()
  scene.pour(5)
  await until('those of the outage were tried', () => siem.tried() > tried)
  const copy = await scene.snapshot()
  const takenBefore = uidsOf(siem.taken())
  siem.setThere(true)
  const after = scene.pour(10)
  await settled(siem, 35)
  await scene.endRedis()
  await first.stop()
  scene.pour(5)

  await restore(copy, scene.port)
  held.setThere(true)
  const second = scene.replica()
  await second.start()
  await settled(siem, 40)
  await settled(held, 40)
  await nothingWaits(second)

  for (const receiver of [siem, held]) {
    const taken = receiver.taken()
    expect(uidsOf(taken)).toHaveLength(40)
    const ids = new Set(taken.map(({ uid, id }) => `${uid} ${id}`))
    expect(ids.size).toBe(40)
  }
  const counts = Map.groupBy(siem.taken(), ({ uid }) => uid)
  const repeated = [...counts].filter(([, all]) => all.length > 1)
  expect(repeated.length).toBeGreaterThan(0)
  expect(repeated.filter(([uid]) => takenBefore.includes(uid))).toEqual([])
  expect(repeated.every(([, all]) => all.length === 2)).toBe(true)
  // what the snapshot does not know at all is sent as for the first time
  expect(after.map((uid) => counts.get(uid)?.map(({ isMarked }) => isMarked))).toEqual(
    after.map(() => [false, false]),
  )
  expect(held.taken()).toHaveLength(40)
  await expectConsistent(second)
})
