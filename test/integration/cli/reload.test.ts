import { utimesSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { getCACertificates } from 'node:tls'
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest'
import { startSandbox, type Sandbox } from '../../../src/sandbox/sandbox.ts'
import { redisForTests } from '../../support/ledger.ts'
import { startRedis } from '../../support/redis.ts'
import { kept, reloaded, startDaemon } from './daemon.ts'
import { startTocsin, tocsinProcess } from './tocsin.ts'

const tests = redisForTests()
let sandbox: Sandbox
let count = 0

beforeAll(async () => {
  sandbox = await startSandbox({
    organizations: [
      { id: 7, limits: { search: 20, basic: 20 }, keys: [{ key: 'fw_sandbox', tenants: [42] }] },
    ],
  })
})
afterAll(() => sandbox.close())

interface Parts {
  redisUrl?: string
  feeds?: string[]
  sinks?: string[]
  more?: string
}

type Write = (parts?: Parts) => string

/** Configurations of one prefix, so that what each writes is a later state of the one before. */
function configurations(): Write {
  const prefix = `reload${(count += 1)}`
  return ({ redisUrl = tests.server.url, feeds = ['brand'], sinks = ['siem'], more = '' } = {}) => {
    const sink = (name: string): string =>
      `  ${name}: {type: webhook, url: '${sandbox.url}/hooks/${prefix}-${name}', secret: ${sandbox.webhookSecret}, allow_private: true}`
    return `redis:
  url: ${redisUrl}
  prefix: ${prefix}
http: {port: 0}
accounts: {main: {base_url: '${sandbox.url}', link_hosts: [app.example.com], api_key: fw_sandbox, limits: {search: 20, basic: 20}}}
feeds: {${feeds.map((name) => `${name}: {type: events, identifier_group: 1042, detail: [], every: 5s}`).join(', ')}}
sinks:
${sinks.map(sink).join('\n')}
route: {sinks: [${sinks.join(', ')}]}
${more}`
  }
}

/** Events that reached a sink of these configurations, in order of arrival. */
function arrived(path: string): string[] {
  return sandbox.received.webhook
    .filter(({ to }) => to === `/hooks/${path}`)
    .map(({ json }) => (json as { data: { uid: string } }).data.uid)
}

const success = /^tocsin_config_last_reload_successful (\d)$/m

test('a new feed, sink and route are taken up, and what is gone leaves the metrics', async () => {
  const config = configurations()
  const daemon = await startDaemon(config())
  expect(await daemon.metrics()).toContain('tocsin_feed_poll_interval_seconds{feed="brand"} 5')
  const event = sandbox.addEvent()
  await vi.waitUntil(() => arrived('reload1-siem').includes(event.uid), { timeout: 45_000 })
  daemon.reload(config({ feeds: ['staff'], sinks: ['siem', 'extra'] }))
  await daemon.hasSaid(reloaded, 1)
  expect(daemon.lines(reloaded)[0]).toMatchObject({
    generation: 2,
    changes: ['feeds.brand removed', 'feeds.staff added', 'sinks.extra added', 'route changed'],
  })
  const body = await daemon.metrics()
  expect(body).not.toMatch(/^tocsin_.*feed="brand"/m)
  expect(body).toContain('tocsin_feed_lag_objective_seconds{feed="staff"} 300')
  expect(body).toContain('tocsin_deliveries_total{sink="siem",outcome="delivered"} 1')
  expect(body).toContain('tocsin_items_created_total{sink="extra"} ')
  const later = sandbox.addEvent()
  await vi.waitUntil(() => arrived('reload1-extra').includes(later.uid), { timeout: 45_000 })
  expect(arrived('reload1-siem').filter((uid) => uid === event.uid)).toHaveLength(1)
})

test('a file with mistakes is refused in the words of check, and a mended one is taken', async () => {
  const config = configurations()
  const daemon = await startDaemon(config())
  daemon.reload(config({ sinks: ['siem', 'extra'] }).replace('every: 5s', 'evry: 5s'))
  await daemon.hasSaid(kept, 1)
  const checked = await tocsinProcess('check', daemon.file)
  const mistakes = daemon.lines(kept)[0]!['mistakes'] as string[]
  expect(mistakes).toHaveLength(1)
  expect(checked.err).toContain(mistakes[0])
  const refused = await daemon.metrics()
  expect(success.exec(refused)?.[1]).toBe('0')
  expect(refused).toContain('tocsin_feed_polls_total{feed="brand"}')
  expect(refused).not.toContain('sink="extra"')
  daemon.reload(config({ sinks: ['siem', 'extra'] }))
  await daemon.hasSaid(reloaded, 1)
  const mended = await daemon.metrics()
  expect(success.exec(mended)?.[1]).toBe('1')
  expect(mended).toContain('sink="extra"')
})

test('what only a restart can change is refused by name, with all else in the file', async () => {
  const config = configurations()
  const daemon = await startDaemon(config())
  daemon.reload(config({ redisUrl: 'redis://:pass-word@127.0.0.1:1', sinks: ['siem', 'extra'] }))
  await daemon.hasSaid(kept, 1)
  expect(daemon.lines(kept)[0]!['mistakes']).toEqual([
    `${daemon.file}:2:3 redis.url: cannot change while the process runs; restart to change it, or write what was there before`,
  ])
  expect(daemon.soFar()).not.toContain('pass-word')
  expect(await daemon.metrics()).not.toContain('sink="extra"')
})

test('a configuration that comes while Redis is away is the one that begins', async () => {
  const redis = await startRedis({ mayCrash: true })
  onTestFinished(() => redis.stop())
  await redis.kill()
  const config = configurations()
  const daemon = await startDaemon(
    config({ redisUrl: redis.url }),
    'redis is not reachable; waiting',
  )
  daemon.reload(config({ redisUrl: redis.url, feeds: ['brand', 'staff'] }))
  await daemon.hasSaid(reloaded, 1)
  expect(daemon.lines('tocsin runs')).toEqual([])
  await redis.restart()
  await daemon.says('tocsin runs')
  expect(daemon.lines('tocsin runs')).toMatchObject([{ generation: 1, feeds: 2 }])
})

test('a command that reads its configuration once ends with its terminal', async () => {
  const { child, ended, says } = startTocsin('sandbox', '--port', '0', '--smtp-port', '0')
  await says('http://127.0.0.1')
  child.kill('SIGHUP')
  expect((await ended).code).toBe(0)
})

/** Two authorities that nobody uses. */
const certificates = getCACertificates('bundled').slice(0, 2)

test('`POST /api/v1/reload` takes the file over, says the generation, and refuses mistakes', async () => {
  const [all, some] = ['a', 'b'].map((letter) => letter.repeat(32))
  const users = `users: [{name: mara, role: act, token_file: all}, {name: ben, role: act, accounts: [main], token_file: some}]`
  const config = configurations()
  const text = (parts?: Parts): string => config(parts).replace('port: 0', `port: 0, ${users}`)
  const daemon = await startDaemon(text(), 'tocsin runs', { all: all!, some: some! })
  const { port } = daemon.lines('http server listens')[0]!
  const reload = async (token: string | undefined) => {
    const headers = { authorization: `Bearer ${token}` }
    const url = `http://127.0.0.1:${Number(port)}/api/v1/reload`
    const answer = await fetch(url, { method: 'POST', headers })
    return { status: answer.status, ...((await answer.json()) as object) }
  }
  expect(await reload(all)).toMatchObject({
    status: 200,
    said: [expect.stringContaining('not changed')],
  })
  writeFileSync(daemon.file, text({ sinks: ['siem', 'extra'] }))
  expect(await reload(some)).toMatchObject({ status: 403 })
  expect(await reload(all)).toMatchObject({ status: 200, said: ['Reloaded: generation 2.'] })
  await daemon.hasSaid('asked to read the configuration again', 2)
  expect(daemon.lines('asked to read the configuration again')).toMatchObject([
    { by: 'mara' },
    { by: 'mara' },
  ])
  writeFileSync(daemon.file, text().replace('every: 5s', 'evry: 5s'))
  const detail = expect.stringContaining('feeds.brand.evry') as unknown
  expect(await reload(all)).toMatchObject({ status: 400, detail })
  expect(await daemon.metrics()).toContain('sink="extra"')
})

test('the log warns that a renamed account sends all again', async () => {
  const config = configurations()
  const daemon = await startDaemon(config())
  daemon.reload(config().replace('accounts: {main:', 'accounts: {acme:'))
  await daemon.hasSaid(reloaded, 1)
  const said =
    'accounts are new and others have left: a renamed account starts anew and sends again what it has sent'
  expect(daemon.lines(said)).toMatchObject([{ accounts: ['acme'], left: ['main'] }])
})

test('a file that keeps its name and holds something else is a change', async () => {
  const config = configurations()
  const daemon = await startDaemon(
    config().replace('api_key:', 'ca_file: ca.pem, api_key:'),
    'tocsin runs',
    { 'ca.pem': certificates[0]! },
  )
  const ca = join(dirname(daemon.file), 'ca.pem')
  const hash = /^tocsin_config_hash (\d+)$/m
  const before = hash.exec(await daemon.metrics())?.[1]
  writeFileSync(ca, certificates[1]!)
  daemon.child.kill('SIGHUP')
  await daemon.hasSaid(reloaded, 1)
  expect(daemon.lines(reloaded)).toMatchObject([{ changes: [ca] }])
  const { port } = daemon.lines('http server listens')[0]!
  const rules = await fetch(`http://127.0.0.1:${Number(port)}/rules`)
  expect(await rules.text()).toContain('loaded by <bdi>SIGHUP</bdi>')
  const body = await daemon.metrics()
  expect(hash.exec(body)?.[1]).not.toBe(before)
  utimesSync(ca, 1, 1)
  daemon.child.kill('SIGHUP')
  await daemon.says('nothing in it has changed')
})
