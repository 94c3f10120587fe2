import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, existsSync, openSync } from 'node:fs'
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest'
import { sandboxConfig } from '../../../src/cli/demo/sandbox.ts'
import { stopDeadlineMs } from '../../../src/cli/run.ts'
import { startSandbox, type Sandbox } from '../../../src/sandbox/sandbox.ts'
import { redisForTests } from '../../support/ledger.ts'
import { freePort } from '../../support/free-port.ts'
import { startRedis } from '../../support/redis.ts'
import { until } from '../../support/until.ts'
import { aFile, environment, main, startNode, startTocsin } from './tocsin.ts'

const tests = redisForTests()
let sandbox: Sandbox | undefined

beforeAll(async () => {
  sandbox = await startSandbox()
  sandbox.addEvents(3) // of the first group
})
afterAll(() => sandbox?.close())

function aConfig(redisUrl: string, prefix = 'tocsin', port = 0): string {
  const groups = [{ id: 1042, name: 'Brand', tenantId: 42, identifiers: [] }]
  const own = `redis:\n  url: ${redisUrl}\n  prefix: ${prefix}\nhttp:\n  port: ${port}\n\n`
  return aFile('tocsin.yaml', own + sandboxConfig(sandbox!, groups))
}

/** Its own word for an end in time is `stopped`: at its deadline it is another. */
function wordsOf(out: string): unknown[] {
  return out
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line).msg)
}

test('its deadline for a stop leaves time for its last words within 10 s', () => {
  expect(stopDeadlineMs).toBeLessThan(9_900)
})

test('it runs on the configuration that the sandbox prints, and ends before its deadline at a SIGTERM', async () => {
  const { child, ended, says } = startTocsin('run', '--config', aConfig(tests.server.url))
  await says('tocsin runs')
  child.kill('SIGTERM')
  const { code, out, err } = await ended
  expect({ code, err }).toEqual({ code: 0, err: '' })
  expect(wordsOf(out)).toContain('stopped')
  expect(out).not.toContain(sandbox!.apiKeys[0])
})

test('it waits for a Redis that is away, and ends before its deadline all the same', async () => {
  const url = `redis://127.0.0.1:${await freePort()}`
  const { child, ended, says } = startTocsin('run', '--config', aConfig(url))
  await says('redis is not reachable; waiting')
  child.kill('SIGTERM')
  const { code, out, err } = await ended
  expect({ code, err }).toEqual({ code: 0, err: '' })
  expect(wordsOf(out)).toContain('stopped')
})

test('its last words come in their order, however busy the process is', async () => {
  const work =
    "import { pbkdf2 } from 'node:crypto'; const hash = () => pbkdf2('a', 'b', 4e5, 64, 'sha512', () => 0)"
  const busy = `${work}; process.once('SIGTERM', () => { for (let i = 0; i < 8; i += 1) hash() })`
  const preload = `--import=data:text/javascript,${encodeURIComponent(busy)}`
  const { child, ended, says } = startNode([
    preload,
    main,
    'run',
    '--config',
    aConfig(tests.server.url, 'busy'),
  ])
  await says('tocsin runs')
  child.kill('SIGTERM')
  const words = wordsOf((await ended).out)
  expect(words.filter((word) => word === 'stopping' || word === 'stopped')).toEqual([
    'stopping',
    'stopped',
  ])
})

test('a Redis that refuses the password ends it, as the mistake that it is', async () => {
  const redis = await startRedis({ settings: ['requirepass pass-word'] })
  onTestFinished(() => redis.stop())
  const config = aConfig(redis.url.replace('//', '//:guess-work@'))
  const { code, out, err } = await startTocsin('run', '--config', config).ended
  expect(err).toContain(`Redis at 127.0.0.1:${redis.port} refuses this user or password`)
  expect(out + err).not.toMatch(/guess-work|defect/)
  expect(code).toBe(1)
})

test.skipIf(!existsSync('/dev/full'))(
  'with its log on a full disk it ends when asked',
  async () => {
    const port = await freePort()
    const config = aConfig(tests.server.url, 'full', port)
    const full = openSync('/dev/full', 'w')
    onTestFinished(() => closeSync(full))
    const args = [main, 'run', '--config', config]
    const child = spawn(process.execPath, args, { stdio: ['ignore', full, full], env: environment })
    onTestFinished(() => void child.kill('SIGKILL'))
    const ended = once(child, 'exit')
    await until('it answers', () =>
      fetch(`http://127.0.0.1:${port}/metrics`).then(
        () => true,
        () => false,
      ),
    )
    child.kill('SIGTERM')
    expect(await ended).toEqual([1, null]) // what it said is lost
  },
)

test('a second SIGINT does not wait for a send that hangs', async () => {
  const mend = sandbox!.faults.add({ on: '/hooks/*', effect: 'hang' })
  onTestFinished(mend)
  const config = aConfig(tests.server.url, 'hanging')
  const { child, ended, says } = startTocsin('run', '--config', config)
  const seen = sandbox!.requests.length
  await vi.waitUntil(
    () => sandbox!.requests.slice(seen).some(({ path }) => path.startsWith('/hooks/')),
    { timeout: 45_000 },
  )
  child.kill('SIGINT')
  await says('stopping')
  child.kill('SIGINT')
  expect(await ended).toMatchObject({ code: 130 })
})
