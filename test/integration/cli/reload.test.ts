import {
  chmodSync,
  chownSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { dirname, join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { getCACertificates } from 'node:tls'
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest'
import { startSandbox, type Sandbox } from '../../../src/sandbox/sandbox.ts'
import { redisForTests } from '../../support/ledger.ts'
import { startRedis } from '../../support/redis.ts'
import { kept, reloaded, startDaemon } from './daemon.ts'
import { aFile, startTocsin, tocsin, tocsinProcess } from './tocsin.ts'

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
http: {port: 0, metrics: detailed}
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
const successTime = /^tocsin_config_last_reload_success_timestamp_seconds (\S+)$/m

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
    feeds: { added: ['staff'], removed: ['brand'] },
    sinks: { added: ['extra'] },
    routes: { changed: ['root'] },
  })
  const body = await daemon.metrics()
  expect(body).not.toMatch(/^tocsin_.*feed="brand"/m)
  expect(body).toContain('tocsin_feed_lag_objective_seconds{feed="staff"} 300')
  expect(body).toContain('tocsin_deliveries_total{sink="siem",outcome="delivered"} 1')
  expect(body).toContain('tocsin_deliveries_total{sink="extra",outcome="dead"} 0')
  const later = sandbox.addEvent()
  await vi.waitUntil(() => arrived('reload1-extra').includes(later.uid), { timeout: 45_000 })
  expect(arrived('reload1-siem').filter((uid) => uid === event.uid)).toHaveLength(1)
})

test('a file with mistakes is refused in the words of check, and a mended one is taken', async () => {
  const config = configurations()
  const daemon = await startDaemon(config())
  const loadedAt = successTime.exec(await daemon.metrics())![1]
  daemon.reload(config({ sinks: ['siem', 'extra'] }).replace('every: 5s', 'evry: 5s'))
  await daemon.hasSaid(kept, 1)
  const checked = await tocsinProcess('check', daemon.file)
  const mistakes = daemon.lines(kept)[0]!['mistakes'] as string[]
  expect(mistakes).toHaveLength(1)
  expect(checked.err).toContain(mistakes[0])
  const refused = await daemon.metrics()
  expect(success.exec(refused)?.[1]).toBe('0')
  expect(successTime.exec(refused)?.[1]).toBe(loadedAt)
  expect(refused).toContain('tocsin_feed_polls_total{feed="brand"}')
  expect(refused).not.toContain('sink="extra"')
  daemon.reload(config({ sinks: ['siem', 'extra'] }))
  await daemon.hasSaid(reloaded, 1)
  const mended = await daemon.metrics()
  expect(success.exec(mended)?.[1]).toBe('1')
  expect(Number(successTime.exec(mended)?.[1])).toBeGreaterThan(Number(loadedAt))
  expect(mended).toContain('sink="extra"')
})

test('a file that is gone is refused; one that is back as it was changes nothing', async () => {
  const config = configurations()
  const daemon = await startDaemon(config())
  rmSync(daemon.file)
  daemon.child.kill('SIGHUP')
  await daemon.hasSaid(kept, 1)
  expect(JSON.stringify(daemon.lines(kept))).toContain('there is no such file')
  daemon.reload(`${config()}\n# as before`)
  await daemon.says('configuration read again; nothing in it has changed')
  expect(success.exec(await daemon.metrics())?.[1]).toBe('1')
  expect(daemon.lines(reloaded)).toEqual([])
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

/** Another state of the file, put in place in one step, and nobody is told. */
function replace(file: string, text: string): void {
  writeFileSync(`${file}.new`, text, { mode: 0o600 })
  renameSync(`${file}.new`, file)
}

/** Two authorities that nobody uses. */
const certificates = getCACertificates('bundled').slice(0, 2)

const asked = 'asked to read the configuration again'

const generation = /^tocsin_config_generation (\d+)$/m

test('`reload` waits for the outcome and says the generation and what changed', async () => {
  const config = configurations()
  const daemon = await startDaemon(config())
  const again = await tocsinProcess('reload', '--config', daemon.file)
  expect(again).toMatchObject({
    code: 0,
    out: `nothing in ${daemon.file} has changed: still generation 1\n`,
  })
  replace(daemon.file, config({ sinks: ['siem', 'extra'] }))
  const { code, out } = await tocsinProcess('reload', '--config', daemon.file)
  expect(out).toBe('reloaded: generation 2\n  sinks: added extra\n  routes: changed root\n')
  expect(code).toBe(0)
  expect(generation.exec(await daemon.metrics())?.[1]).toBe('2')
  const digest = config({ sinks: ['siem', 'extra'] }).replace(
    'brand: {',
    'brand: {labels: {a: b}, ',
  )
  replace(daemon.file, digest)
  const json = await tocsinProcess('reload', '--config', daemon.file, '--output', 'json')
  expect(JSON.parse(json.out)).toMatchObject({ status: 'changed', generation: 3 })
  expect(generation.exec(await daemon.metrics())?.[1]).toBe('3')
})

test('a change of nothing but a sink is a generation of its own', async () => {
  const config = configurations()
  const daemon = await startDaemon(config())
  replace(
    daemon.file,
    config().replace('allow_private: true', 'allow_private: true, batch: {wait: 2s}'),
  )
  const { out } = await tocsinProcess('reload', '--config', daemon.file)
  expect(out).toBe('reloaded: generation 2\n  sinks: changed siem\n')
  expect(generation.exec(await daemon.metrics())?.[1]).toBe('2')
})

test('`reload` warns that a renamed account sends all again', async () => {
  const config = configurations()
  const daemon = await startDaemon(config())
  replace(daemon.file, config().replace('accounts: {main:', 'accounts: {acme:'))
  const { code, out } = await tocsinProcess('reload', '--config', daemon.file)
  expect(code).toBe(0)
  expect(out).toMatch(
    /^warning \S+:\d+:\d+ accounts\.acme: is new and main has left: a renamed account starts anew and sends again what it has sent; keep the name of an account that is the same; if they are others, go on\nreloaded: generation 2\n/,
  )
})

test('`reload` prints every mistake with its line as check does, and the old one stays', async () => {
  const config = configurations()
  const daemon = await startDaemon(config())
  const wrong = config({ sinks: ['siem', 'extra'] })
    .replace('every: 5s', 'evry: 5s')
    .replace('sinks: [siem, extra]', 'sinks: [siem, extr]')
  replace(daemon.file, wrong)
  const reload = await tocsinProcess('reload', '--config', daemon.file)
  const checked = await tocsinProcess('check', daemon.file)
  expect(reload).toEqual(checked)
  expect(reload.code).toBe(2)
  expect(reload.err).toContain('the configuration has 2 mistakes')
  expect(await daemon.metrics()).not.toContain('sink="extra"')
})

test('without a daemon `reload` says where it looked and what to do', async () => {
  const config = configurations()
  const file = aFile('tocsin.yaml', config())
  const none = await tocsinProcess('reload', '--config', file)
  expect(none.code).toBe(1)
  expect(none.err).toMatch(
    /^no daemon is found for .*tocsin\.yaml: there is no readable .*\.reload; start it with: /,
  )
  writeFileSync(file, config().replace('every: 5s', 'evry: 5s'))
  expect(await tocsinProcess('reload', '--config', file)).toMatchObject({ code: 2 })
})

test('the token is for its user alone, where the file says, and goes with the daemon', async () => {
  const config = configurations()
  const named = (text: string): string => text.replace('port: 0', 'port: 0, token_file: run/token')
  const daemon = await startDaemon(named(config()))
  const token = join(dirname(daemon.file), 'run/token')
  expect(statSync(token).mode & 0o777).toBe(0o600)
  const { url } = JSON.parse(readFileSync(token, 'utf8')) as {
    url: string
  }
  const headers = { authorization: 'Bearer wrong' }
  const answer = await fetch(`${url}/-/reload`, { method: 'POST', headers })
  expect(answer.status).toBe(401)
  replace(daemon.file, named(config({ sinks: ['siem', 'extra'] })))
  expect(await tocsin('reload', '--config', daemon.file)).toMatchObject({ code: 0 })
  daemon.child.kill('SIGTERM')
  await daemon.ended
  expect(() => statSync(token)).toThrow('ENOENT')
})

test.runIf(process.getuid?.() === 0)('root may reload the daemon of another user', async () => {
  const config = configurations()
  const daemon = await startDaemon(config().replace('port: 0', 'port: 0, token_file: token'))
  chownSync(join(dirname(daemon.file), 'token'), 1001, 1001)
  expect(await tocsinProcess('reload', '--config', daemon.file)).toMatchObject({ code: 0 })
})

test.each<[what: string, answer: RequestListener]>([
  ['a page', (_request, response) => void response.end('<h1>It works!</h1>')],
  ['a refusal of the token', (_request, response) => void response.writeHead(401).end()],
  ['no state of a reload', (_request, response) => void response.end('{"status":"\u001b[31m"}')],
  ['no end', (_request, response) => void pipeline(endless(), response).catch(() => undefined)],
])('what answers %s is no daemon', async (_what, answer) => {
  const stranger = createServer(answer).listen(0, '127.0.0.1')
  onTestFinished(() => void stranger.close())
  await once(stranger, 'listening')
  const { port } = stranger.address() as AddressInfo
  const file = aFile('tocsin.yaml', configurations()().replace('port: 0', 'token_file: token'))
  const access = { url: `http://127.0.0.1:${port}`, token: 'a-token' }
  writeFileSync(join(dirname(file), 'token'), JSON.stringify(access), { mode: 0o600 })
  const { code, out, err } = await tocsin('reload', '--config', file)
  expect({ code, out }).toEqual({ code: 1, out: '' })
  expect(err).toContain(`${access.url}: no daemon takes this token`)
})

function* endless(): Generator<string> {
  for (;;) yield ' '.repeat(64 * 1024)
}

test('a token file that others may read is not used, and one that a killed daemon left leads nowhere', async () => {
  const file = aFile('tocsin.yaml', configurations()().replace('port: 0', 'token_file: token'))
  const token = join(dirname(file), 'token')
  writeFileSync(token, '{"url":"http://127.0.0.1:9","token":"t"}', { mode: 0o644 })
  const open = await tocsin('reload', '--config', file)
  expect(open.err).toContain(`${token} is not to be trusted: every user may read`)
  chmodSync(token, 0o600)
  const gone = await tocsin('reload', '--config', file)
  expect(gone).toMatchObject({ code: 1, out: '' })
  expect(gone.err).toContain('http://127.0.0.1:9: no daemon answers; start the daemon')
})

test('a file that keeps its name and holds something else is a change; the log says who asked', async () => {
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
  const { out } = await tocsinProcess('reload', '--config', daemon.file)
  expect(out).toBe(`reloaded: generation 2\n  files: changed ${ca}\n`)
  const { port } = daemon.lines('http server listens')[0]!
  const rules = await fetch(`http://127.0.0.1:${Number(port)}/rules`)
  expect(await rules.text()).toContain('loaded by <bdi>POST /-/reload from 127.0.0.1</bdi>')
  const body = await daemon.metrics()
  expect(generation.exec(body)?.[1]).toBe('2')
  expect(hash.exec(body)?.[1]).not.toBe(before)
  utimesSync(ca, 1, 1)
  daemon.child.kill('SIGHUP')
  await daemon.says('nothing in it has changed')
  expect(daemon.lines(asked)).toMatchObject([
    { by: 'POST /-/reload from 127.0.0.1' },
    { by: 'SIGHUP' },
  ])
})
