/** An account leaves the configuration while its work waits: a restart, and a full event that nobody can fetch. */
import { afterEach, beforeEach, expect, onTestFinished, test } from 'vitest'
import type { App } from '../../src/daemon/daemon.ts'
import { createLogger } from '../../src/lib/logger.ts'
import { type Sandbox, startSandbox } from '../../src/sandbox/sandbox.ts'
import { sumPending, readAccounting } from '../../src/store/accounts.ts'
import { aFile, tocsin } from '../integration/cli/tocsin.ts'
import { expectConservation, redisForTests } from '../support/ledger.ts'
import { aReplica, until } from '../support/rehearsal.ts'

const tests = redisForTests()
let sandbox: Sandbox

beforeEach(async () => {
  sandbox = await startSandbox({
    organizations: [
      { id: 7, limits: { search: 40, basic: 40 }, keys: [{ key: 'fw_sandbox', tenants: [42] }] },
    ],
  })
})
afterEach(() => sandbox.close())

/** Two customers; `umbrella` is the one that leaves. */
function configOf(prefix: string, customers = ['main', 'umbrella']): string {
  const account = (name: string): string =>
    `  ${name}: {base_url: '${sandbox.url}', link_hosts: [app.example.com], api_key: fw_sandbox, limits: {search: 40, basic: 40}}`
  const groups: Record<string, number> = { main: 1042, umbrella: 1043 }
  const feed = (name: string): string =>
    `  ${groups[name] === 1042 ? 'brand' : 'people'}: {type: events, account: ${name}, identifier_group: ${groups[name]}, detail: [], every: 5s}`
  return `redis: {url: '${tests.server.url}', prefix: ${prefix}}
http: {port: 0}
accounts:
${customers.map(account).join('\n')}
feeds:
${customers.map(feed).join('\n')}
sinks:
  siem: {type: webhook, url: '${sandbox.url}/hooks/${prefix}', secret: '${sandbox.webhookSecret}', allow_private: true}
route: {sinks: [siem]}
`
}

interface Daemon {
  app: App
  url: string
  log: Record<string, unknown>[]
}

async function startDaemon(yaml: string): Promise<Daemon> {
  const log: Record<string, unknown>[] = []
  const write = (line: string): void => void log.push(JSON.parse(line))
  const app = aReplica(yaml, createLogger({ destination: { write } }))
  const { url } = await app.start()
  onTestFinished(() => app.stop())
  return { app, url, log }
}

const metricsOf = async ({ url }: Daemon): Promise<string> => (await fetch(`${url}/metrics`)).text()

function arrived(prefix: string): string[] {
  return sandbox.received.webhook
    .filter(({ to }) => to === `/hooks/${prefix}`)
    .map(({ json }) => (json as { data: { uid: string } }).data.uid)
}

async function waitingOf(app: App, account: string): Promise<number> {
  const ledger = app.ledgers.find((one) => one.account === account)
  const { sinks } = await readAccounting(ledger!)
  return sinks['siem'] ? sumPending(sinks['siem']) : 0
}

/** A hundred critical events of umbrella, taken in by a daemon whose sink is paused. */
async function bury(prefix: string): Promise<{ daemon: Daemon; uids: string[] }> {
  const daemon = await startDaemon(configOf(prefix))
  await pauseSink(prefix, true)
  const events = sandbox.addEvents(100, { groupIds: [1043], severity: 'critical' })
  const hasAll = async (): Promise<boolean> => (await waitingOf(daemon.app, 'umbrella')) === 100
  await until('umbrella has a hundred items', hasAll)
  return { daemon, uids: events.map(({ uid }) => uid) }
}

async function pauseSink(prefix: string, isPaused: boolean): Promise<void> {
  const words = isPaused ? ['pause', 'siem', '--reason=maintenance'] : ['resume', 'siem']
  const config = aFile('tocsin.yaml', configOf(prefix))
  expect(await tocsin('sinks', ...words, '--config', config)).toMatchObject({ code: 0 })
}

async function json(...args: string[]): Promise<Record<string, unknown>[]> {
  const { out, err } = await tocsin(...args, '--output=json')
  if (out === '') throw new Error(err)
  return JSON.parse(out) as Record<string, unknown>[]
}

const left = 'account is not configured any more; what it took in is still delivered'

test('100 critical items of an account that left are seen at once and delivered', async () => {
  const prefix = 'restart'
  const { daemon: before, uids } = await bury(prefix)
  await before.app.stop()
  const without = configOf(prefix, ['main'])
  const daemon = await startDaemon(without)
  await until('the log names it', () => daemon.log.some(({ msg }) => msg === left))
  expect(daemon.log.find(({ msg }) => msg === left)).toMatchObject({
    level: 'warn',
    account: 'umbrella',
    pending: 100,
  })
  const config = ['--config', aFile('tocsin.yaml', without)]
  const [siem] = await json('sinks', 'list', ...config)
  const waiting = Object.values(siem!['pending'] as Record<string, number>)
  expect(waiting.reduce((sum, count) => sum + count, 0)).toBe(100)
  expect(await json('audit', '--ledger', ...config)).toContainEqual(
    expect.objectContaining({ ledger: 'umbrella', whole: true, records: 100 }),
  )
  const [story] = await json('items', 'show', uids[0]!, ...config)
  expect(story).toMatchObject({ account: 'umbrella', items: [{ sink: 'siem' }] })
  expect(await json('accounts', 'list', 'umbrella', ...config)).toMatchObject([
    { is_configured: false, feeds: [{ feed: 'people', is_configured: false }] },
  ])
  const counted = 'tocsin_account_items_pending{account="umbrella"} 100\n'
  await until('the metrics count it', async () => (await metricsOf(daemon)).includes(counted))
  const body = await metricsOf(daemon)
  expect(body).toContain('tocsin_account_configured{account="umbrella"} 0\n')
  expect(body).toContain('tocsin_account_configured{account="main"} 1\n')

  await pauseSink(prefix, false)
  await until('all are delivered', () => new Set(arrived(prefix)).size === 100, 60_000)
  expect(arrived(prefix).toSorted()).toEqual(uids.toSorted())
  await until('nothing waits', async () => (await waitingOf(daemon.app, 'umbrella')) === 0)
  for (const ledger of daemon.app.ledgers) await expectConservation(ledger)
})

test('items of an account that left do not wait for a full event that nobody can fetch: they go without it', async () => {
  const prefix = 'detail'
  const hangs = sandbox.faults.add({ on: '/firework/v4/events/', effect: 'hang' })
  onTestFinished(() => hangs())
  const detailed = (customers?: string[]): string =>
    configOf(prefix, customers).replaceAll('detail: []', 'detail: [critical]')
  const daemon = await startDaemon(detailed())
  const event = sandbox.addEvent({ groupIds: [1043], severity: 'critical' })
  await until('it is held', async () => (await waitingOf(daemon.app, 'umbrella')) === 1)
  await daemon.app.stop()
  await startDaemon(detailed(['main']))
  await until('it arrives', () => arrived(prefix).length > 0, 40_000)
  expect(arrived(prefix)).toEqual([event.uid])
}, 90_000)
