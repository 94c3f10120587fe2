/** What a command loads decides how soon it starts, and what the daemon loads how much memory it holds when idle. */
import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { pathToFileURL } from 'node:url'
import { expect, test } from 'vitest'
import { redisForTests } from '../../support/ledger.ts'
import { aFile } from './tocsin.ts'

const tests = redisForTests()
const root = join(import.meta.dirname, '../../..')

const config = (): string => `redis: {url: '${tests.server.url}', prefix: modules}
http: {port: 0}
accounts: {main: {base_url: 'http://127.0.0.1:9', api_key: key}}
feeds: {brand: {type: events, identifier_group: 7}}
sinks: {siem: {type: webhook, url: 'http://127.0.0.1:9/in', secret: a-secret-of-24-bytes-abc, allow_private: true}}
route: {sinks: [siem]}
`

/** Preloaded: writes what the process has loaded into the file TOCSIN_TEST_MODULES, one URL a line. */
const recording = `
import { writeFileSync } from 'node:fs'
import { registerHooks } from 'node:module'
const urls = []
registerHooks({
  load(url, context, nextLoad) {
    urls.push(url)
    return nextLoad(url, context)
  },
})
process.on('exit', () => writeFileSync(process.env.TOCSIN_TEST_MODULES, urls.join('\\n')))
`

/** Packages that take time and memory to load. */
const heavy =
  'bullmq fastify ioredis nodemailer pino-pretty prom-client re2js smtp-server undici yaml zod'.split(
    ' ',
  )

/** What of them one process loads, and our own files, as paths below src; a daemon is stopped once it says that it runs. */
async function loadedBy(
  command: string,
  ...more: string[]
): Promise<{ packages: string[]; files: string[] }> {
  const file = aFile('modules', '')
  const recorder = aFile('recorder.mjs', recording)
  const words = [...command.split(' '), ...more]
  const node = ['--import', recorder, '--disable-sigusr1', join(root, 'src/main.ts'), ...words]
  const env = { ...process.env, TOCSIN_TEST_MODULES: file }
  const child = spawn(process.execPath, node, { env, stdio: ['ignore', 'pipe', 'ignore'] })
  child.stdout.on('data', (chunk) => {
    if (String(chunk).includes('tocsin runs')) child.kill('SIGTERM')
  })
  await text(child.stdout)
  const urls = readFileSync(file, 'utf8').split('\n')
  const packages = urls.flatMap((url) => /node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(url)?.[1] ?? [])
  const ours = pathToFileURL(join(root, 'src/')).href
  return {
    packages: heavy.filter((name) => packages.includes(name)),
    files: urls.filter((url) => url.startsWith(ours)).map((url) => url.slice(ours.length)),
  }
}

/** What sends to a sink or asks the service, and the sandbox. */
const acting = /^(?:sinks\/\w+\/\w+-sink|upstream\/(?:create-client|transport)|sandbox\/.*)\.ts$/

test('help loads no part of Tocsin but the list of commands', async () => {
  const { packages, files } = await loadedBy('--help')
  expect(packages).toEqual([])
  expect(files.filter((file) => file.startsWith('store/'))).toEqual([])
})

test.each(['check', 'schema'])(
  '%s loads what reads a configuration, and nothing that connects',
  async (command) => {
    const file = command === 'check' ? [aFile('tocsin.yaml', config())] : []
    expect((await loadedBy(command, ...file)).packages).toEqual(['yaml', 'zod'])
  },
)

test.each(['feeds list', 'accounts list', 'sinks list', 'items show a/b/c', 'items list'])(
  '%s loads the client of Redis, and not that of a sink or the service, nor the sandbox',
  async (command) => {
    const file = aFile('tocsin.yaml', config())
    const { packages, files } = await loadedBy(command, '--config', file)
    expect(packages).toEqual(['ioredis', 'yaml', 'zod'])
    expect(files.filter((one) => acting.test(one))).toEqual([])
  },
)

test('the daemon loads no kind of sink that its configuration has not, and no sandbox', async () => {
  const { packages, files } = await loadedBy('run', '--config', aFile('tocsin.yaml', config()))
  const ofIt = ['bullmq', 'fastify', 'ioredis', 'prom-client', 'undici', 'yaml', 'zod']
  expect(packages).toEqual(ofIt)
  expect(files.filter((file) => acting.test(file)).toSorted()).toEqual([
    'sinks/webhook/webhook-sink.ts',
    'upstream/create-client.ts',
    'upstream/transport.ts',
  ])
})
