/** The commands that need no ledger of their own, against the sandbox. */
import { createServer } from 'node:net'
import { once } from 'node:events'
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest'
import { sandboxConfig } from '../../../src/cli/demo/sandbox.ts'
import { startSandbox, type Sandbox } from '../../../src/sandbox/sandbox.ts'
import { redisForTests } from '../../support/ledger.ts'
import { aFile, startTocsin, tocsin, tocsinProcess } from './tocsin.ts'

const tests = redisForTests()
let sandbox: Sandbox | undefined

beforeAll(async () => {
  sandbox = await startSandbox()
})
afterAll(() => sandbox?.close())

function aConfig(change: (text: string) => string = (text) => text): string {
  const groups = [{ id: 1042, name: 'Brand', tenantId: 42, identifiers: [] }]
  const own = `redis: { url: "${tests.server.url}" }\n`
  return aFile('tocsin.yaml', change(own + sandboxConfig(sandbox!, groups)))
}

test('check says what a good configuration does', async () => {
  const { code, out } = await tocsin('check', aConfig())
  expect(code).toBe(0)
  expect(out).toContain('good: 1 account, 1 feed, 5 sinks, 3 routes')
  expect(out).toContain('urgent: severity>=high → soc, teams, duty, siem, oncall')
  expect(out).not.toContain(sandbox!.apiKeys[0])
})

test('check shows warnings, and they are no mistakes', async () => {
  const unsigned = aConfig((text) => text.replace(/ {4}secret: .*\n/, ''))
  const { code, out } = await tocsin('check', unsigned)
  expect(out).toMatch(/^warning .*tocsin\.yaml:\d+:\d+ sinks\.siem: its requests are not signed/)
  expect(code).toBe(0)
})

test('check gives machines the list of mistakes', async () => {
  const path = aConfig((text) => text.replace('every: 10s', 'evry: 10s'))
  const { code, out } = await tocsin('check', '--output', 'json', '--config', path)
  expect(code).toBe(2)
  expect(JSON.parse(out)).toEqual({
    ok: false,
    mistakes: [
      {
        file: path,
        line: 12,
        column: 5,
        path: 'feeds.brand.evry',
        problem: 'unknown key',
        remedy: 'did you mean "every"?',
      },
    ],
  })
})

test('schema prints the JSON Schema', async () => {
  const { code, out } = await tocsin('schema')
  expect(JSON.parse(out)).toMatchObject({ title: 'tocsin.yaml', type: 'object' })
  expect(code).toBe(0)
})

test('token test says in plain words whether the key works', async () => {
  const good = await tocsin('token', 'test', '--config', aConfig())
  expect(good.out).toContain('The key of account "main" works.')
  expect(good.code).toBe(0)
  const wrong = aConfig((text) => text.replace('api_key: fw_', 'api_key: fw_wrong_'))
  const bad = await tocsin('token', 'test', '--config', wrong, '--account=main', '--output=json')
  expect(JSON.parse(bad.out)).toMatchObject([{ account: 'main', ok: false }])
  expect(bad.out).not.toContain('fw_wrong')
  expect(bad.code).toBe(1)
})

test.each([
  ['soc', 'slack', 'TEST message for soc:'],
  ['teams', 'teams', 'TEST message for teams:'],
  ['duty', 'pagerduty', 'TEST message for duty:'],
  ['siem', 'webhook', 'TEST message for siem:'],
  ['oncall', 'email', 'TEST message for oncall@example.com:'],
] as const)('sinks test sends a message marked TEST to %s', async (name, kind, said) => {
  const before = sandbox!.received[kind].length
  const { code, out } = await tocsin('sinks', 'test', name, '--config', aConfig())
  expect(out).toContain(said)
  expect(code).toBe(0)
  const [message] = sandbox!.received[kind].slice(before)
  expect(message?.body).toContain('TEST')
})

test.each([
  [[], 'Usage: tocsin'],
  [['chek'], "unknown command 'chek'\n(Did you mean check?)\nsee: tocsin --help"],
  [['feeds', 'lsit'], "unknown command 'lsit'\n(Did you mean list?)\nsee: tocsin feeds --help"],
  [['check', '--outptu', 'json'], "unknown option '--outptu'\n(Did you mean --output?)"],
  [['feeds', 'list', '--colour'], 'see: tocsin feeds list --help'],
  [['check', '--output', 'xml'], "argument 'xml' is invalid. Allowed choices are text, json."],
  [['sandbox', '--port', '99999'], 'Write a whole number from 0 to 65535'],
  [['sandbox', '--rate', 'often'], 'Write 0, or a rate'],
])('bad arguments %j end with 2', async (args, said) => {
  const { code, err } = await tocsin(...args)
  expect(err).toContain(said)
  expect(code).toBe(2)
})

test.each([
  [['--help'], 'Usage: tocsin [options] [command]'],
  [['help', 'check'], 'Usage: tocsin check [options] [file]'],
  [['feeds', 'help', 'list'], 'Usage: tocsin feeds list [options] [feed]'],
])('%j prints the help of that command', async (args, said) => {
  const { code, out } = await tocsin(...args)
  expect(out.split('\n')[0]).toBe(said)
  expect(code).toBe(0)
})

test('the sandbox prints a configuration that checks as good, and ends on SIGINT', async () => {
  const args = ['--port=0', '--smtp-port=0', '--rate=0', '--output=json']
  const running = startTocsin('sandbox', ...args)
  await running.says('\n')
  const { config } = JSON.parse(running.soFar()) as { config: string }
  const path = aFile('tocsin.yaml', config)
  expect((await tocsin('check', path)).code).toBe(0)
  running.child.kill('SIGINT')
  expect(await running.ended).toMatchObject({ code: 0, err: '' })
})

test('a port of the sandbox that is taken is named', async () => {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => void server.close())
  const { port } = server.address() as { port: number }
  const { code, err } = await tocsinProcess('sandbox', `--port=${port}`, '--smtp-port=0')
  expect(err).toContain(`at the ports ${port} and 0 (EADDRINUSE); choose others with --port`)
  expect(err.trim().split('\n')).toHaveLength(1)
  expect(code).toBe(1)
})

test('an ordinary command that hangs ends at the first SIGINT', async () => {
  const mend = sandbox!.faults.add({ on: '/tokens/*', effect: 'hang' })
  onTestFinished(mend)
  const config = aConfig((text) => text.replace('redis: {', 'redis: { prefix: hanging,'))
  const seen = sandbox!.requests.length
  const { child, ended } = startTocsin('token', 'test', '--config', config)
  await vi.waitUntil(() => sandbox!.requests.length > seen, { timeout: 45_000 })
  child.kill('SIGINT')
  expect(await ended).toMatchObject({ code: 130, out: '', err: '' })
})
