import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import type { App } from '../../src/daemon/daemon.ts'
import type { ReloadOutcome } from '../../src/daemon/reload.ts'
import { startSandbox, type Sandbox } from '../../src/sandbox/sandbox.ts'
import { expectConservation } from '../support/ledger.ts'
import { startRedis, type TestRedis } from '../support/redis.ts'
import { aReplica, hurriedConfig, nothingPending, until } from '../support/rehearsal.ts'

let redis: TestRedis

beforeAll(async () => {
  redis = await startRedis()
})

afterAll(() => redis.stop())

interface Parts {
  feeds?: string[]
  sinks?: string[]
  route?: string
  limit?: number
}

/** `feeds` by the number of their group; every sink is a webhook of the sandbox. */
function configOf(sandbox: Sandbox, prefix: string, parts: Parts = {}): string {
  const { feeds = ['brand: 1042'], sinks = ['siem'], route = '', limit = 20 } = parts
  const feed = (text: string): string => {
    const [name, group] = text.split(': ')
    return `${name}: {type: events, identifier_group: ${group}, detail: [], every: 5s}`
  }
  const sink = (name: string): string =>
    `${name}: {type: webhook, url: '${sandbox.url}/hooks/${name}', secret: '${sandbox.webhookSecret}', allow_private: true}`
  return `
redis: {url: '${redis.url}', prefix: ${prefix}}
http: {port: 0}
accounts: {main: {base_url: '${sandbox.url}', link_hosts: [app.example.com], api_key: fw_sandbox, limits: {search: ${limit}, basic: 20}}}
feeds: {${feeds.map(feed).join(', ')}}
sinks: {${sinks.map(sink).join(', ')}}
route: {sinks: [${sinks.join(', ')}]${route}}
`
}

async function startTheSandbox(): Promise<Sandbox> {
  const sandbox = await startSandbox({
    organizations: [
      { id: 7, limits: { search: 20, basic: 20 }, keys: [{ key: 'fw_sandbox', tenants: [42] }] },
    ],
  })
  onTestFinished(() => sandbox.close())
  return sandbox
}

async function startTheApp(yaml: string): Promise<{ app: App; url: string }> {
  const app = aReplica(yaml)
  onTestFinished(() => app.stop())
  const { url } = await app.start()
  return { app, url }
}

function reload(app: App, yaml: string): Promise<ReloadOutcome> {
  return app.reload(async () => hurriedConfig(yaml))
}

/** The uids that a webhook got, in order of arrival. */
function arrived(sandbox: Sandbox, sink: string): string[] {
  return sandbox.received.webhook
    .filter(({ to }) => to === `/hooks/${sink}`)
    .map(({ json }) => (json as { data: { uid: string } }).data.uid)
}

function hasSome(sandbox: Sandbox, sink: string, events: { uid: string }[]): boolean {
  const got = new Set(arrived(sandbox, sink))
  return events.some(({ uid }) => got.has(uid))
}

function hasAll(sandbox: Sandbox, sink: string, events: { uid: string }[]): boolean {
  const got = new Set(arrived(sandbox, sink))
  return events.every(({ uid }) => got.has(uid))
}

function uidsOf(events: { uid: string }[]): string[] {
  return events.map(({ uid }) => uid).toSorted()
}

/** How many connections the daemon has to Redis: those of an engine that was not stopped would stay. */
async function connections(app: App): Promise<number> {
  const info = await app.ledgers[0]!.redis.info('clients')
  return Number(/^connected_clients:(\d+)/m.exec(info)?.[1])
}

/** Ten configurations, each other than the one before: feeds, sinks, routes and limits come and go. */
function variants(sandbox: Sandbox): string[] {
  const both = ['brand: 1042', 'people: 1043']
  const route = ", routes: [{name: urgent, matchers: ['severity>=high'], continue: true}]"
  return Array.from({ length: 10 }, (_, index) =>
    configOf(sandbox, 'ten', {
      feeds: index % 3 === 2 ? both.slice(0, 1) : both,
      sinks: index % 2 === 0 ? ['siem', 'extra'] : ['siem', 'other'],
      route: index % 4 < 2 ? route : '',
      limit: 10 + index,
    }),
  )
}

test('ten reloads under way, and every event reaches each destination once', async () => {
  const warnings: string[] = []
  const warn = (warning: Error): void => void warnings.push(warning.message)
  process.on('warning', warn)
  onTestFinished(() => void process.off('warning', warn))
  const sandbox = await startTheSandbox()
  onTestFinished(sandbox.faults.add({ on: '/hooks/*', effect: 'delay', ms: 100 }))
  const { app } = await startTheApp(configOf(sandbox, 'ten'))
  const all: { uid: string }[] = []
  const add = (groupId: number): { uid: string }[] => {
    const events = sandbox.addEvents(6, { groupIds: [groupId], severity: 'high' })
    all.push(...events)
    return events
  }
  const first = add(1042)
  await until('the first arrive', () => hasAll(sandbox, 'siem', first))
  const atFirst = await connections(app)
  for (const yaml of variants(sandbox)) {
    const early = add(1042)
    add(1043)
    await until('the first of them arrive', () => hasSome(sandbox, 'siem', early))
    const reloaded = reload(app, yaml)
    add(1042)
    expect(await reloaded).toMatchObject({ status: 'changed' })
  }
  await reload(
    app,
    configOf(sandbox, 'ten', {
      feeds: ['brand: 1042', 'people: 1043'],
      sinks: ['siem', 'extra', 'other'],
    }),
  )
  await until('all arrive', () => hasAll(sandbox, 'siem', all))
  await until('all is settled', () => nothingPending(app))

  expect(arrived(sandbox, 'siem').toSorted()).toEqual(uidsOf(all))
  for (const sink of ['extra', 'other']) {
    const uids = arrived(sandbox, sink)
    expect(uids.length).toBeGreaterThan(0)
    expect(uids).toHaveLength(new Set(uids).size)
  }
  const { sinks } = await expectConservation(app.ledgers[0]!)
  for (const sink of ['siem', 'extra', 'other']) {
    expect(sinks[sink]!.delivered).toBe(arrived(sandbox, sink).length)
  }
  expect(sandbox.violations()).toEqual({ rate: 0, changedScans: 0 })
  await reload(app, configOf(sandbox, 'ten'))
  await until('no connection is left over', async () => (await connections(app)) === atFirst)
  expect(warnings).toEqual([])
})

test('a stop while the file is read ends the reload, whatever the file says', async () => {
  const sandbox = await startTheSandbox()
  const yaml = configOf(sandbox, 'stopped')
  const { app } = await startTheApp(yaml)
  const outcome = await app.reload(async () => {
    await app.stop()
    return hurriedConfig(yaml)
  })
  expect(outcome).toEqual({ status: 'stopped' })
})
