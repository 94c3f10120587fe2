/**
 * Plants a secret of every kind, lets the daemon and its commands meet every kind of trouble, and searches
 * all that they said and stored. Needs no test runner.
 */
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { text } from 'node:stream/consumers'
import type { Redis } from 'ioredis'
import { runProgram } from '../../src/cli/program.ts'
import { until } from '../support/until.ts'
import { leaked, operators, planted } from './planted-secrets.ts'
import { scanForSecrets, type Output } from './scan-for-secrets.ts'
import { startSecretScene, type SecretScene } from './secret-scene.ts'
import { wrongConfigs } from './wrong-configs.ts'

export interface SecretScan {
  /** How many texts and files were searched, and their size. */
  outputs: number
  bytes: number
  /** How many secrets were looked for, tokens that were handed out meanwhile included. */
  planted: number
  /** `apiKey in log`; what cannot be looked at says so here as well. */
  found: string[]
}

export async function secretScan(): Promise<SecretScan> {
  const folder = mkdtempSync(join(tmpdir(), 'tocsin-scan-'))
  const scene = await startSecretScene()
  try {
    const outputs = await gather(scene, folder)
    const tokens = [...scene.gateway.tokens].map((token, at) => [`token ${at + 1}`, token])
    const secrets = { ...Object.fromEntries(tokens), ...planted } as Record<string, string>
    return {
      outputs: outputs.length,
      bytes: outputs.reduce((sum, { content }) => sum + Buffer.byteLength(content), 0),
      planted: Object.keys(secrets).length,
      found: [
        ...scanForSecrets(outputs, secrets),
        ...madeUp(outputs),
        ...missing(outputs),
        ...unrevealed(scene),
      ],
    }
  } finally {
    await scene.close()
    rmSync(folder, { recursive: true })
  }
}

/** What the sandbox makes up itself. */
function madeUp(outputs: readonly Output[]): string[] {
  const bad = outputs.filter(({ content }) => /Pa55-[0-9a-f]{4}/.test(String(content)))
  return bad.map(({ where }) => `a password of the sandbox in ${where}`)
}

/** Without these nothing was put to the test, nor by a command that there is not. */
function missing(outputs: readonly Output[]): string[] {
  const unknown = outputs.filter(({ content }) =>
    /^error: (?:unknown|too many)/m.test(Buffer.from(content).toString('latin1')),
  )
  const expected: [string, RegExp][] = [
    ['log', /poll failed[^]*delivery failed|delivery failed[^]*poll failed/],
    ['log', /"level":"trace"|"level":"debug"/],
    ['items show stealer_log/planted/1 --output text', /accepted/],
    ['items list --output text', /(?:hook|slack)4\d\d/],
    ['items list --state quarantined --output text', /metadata\.uid/],
    ['the file of Redis', /stealer_log\/planted\/1/],
    ['commands to Redis', /evalsha|fcall/i],
    ['Redis', /eve@example\.com/],
    ['mail to oncall', /stealer/i],
    ['webhook at hooks', /stealer/i],
  ]
  const notSaid = expected.flatMap(([where, words]) => {
    const named = outputs.filter((output) => output.where === where)
    return named.some(({ content }) => words.test(Buffer.from(content).toString('latin1')))
      ? []
      : [`nothing like ${words.source} in ${where}`]
  })
  return [...unknown.map(({ where }) => `no such command: ${where}`), ...notSaid]
}

/** One sink may be told, and is: so the secret was there to be found, and went through Redis. */
function unrevealed({ sandbox }: SecretScene): string[] {
  const isTold = sandbox.received.webhook.some(
    (message) => isForVault(message) && message.body.includes(leaked.credential),
  )
  return isTold ? [] : ['nothing revealed where it may be']
}

function isForVault({ to }: { to: string }): boolean {
  return to.startsWith('/hooks/vault/')
}

async function gather(scene: SecretScene, folder: string): Promise<Output[]> {
  const config = join(folder, 'tocsin.yaml')
  writeFileSync(config, scene.yaml)
  const daemon = startDaemon(config)
  const outputs: Output[] = []
  try {
    await untilAllWentWrong(scene)
    outputs.push(...(await pages(scene, ['/', '/metrics', '/healthz', '/readyz', '/nothing'])))
    outputs.push(...(await commands(scene, config)), ...(await mistakes(folder)))
    outputs.push({ where: 'commands to Redis', content: scene.commands() })
    outputs.push(...(await stored(scene.admin)))
    outputs.push(...(await withoutRedis(scene, config)))
  } finally {
    await stop(daemon.process)
  }
  outputs.push({ where: 'log', content: await daemon.said }, ...received(scene))
  return outputs
}

interface Daemon {
  process: ChildProcess
  said: Promise<string>
}

function startDaemon(config: string): Daemon {
  const main = join(import.meta.dirname, '../../src/main.ts')
  const child = spawn(process.execPath, [main, 'run', '--config', config], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { PATH: process.env['PATH'], LOG_LEVEL: 'trace' },
  })
  const said = Promise.all([text(child.stdout), text(child.stderr)]).then((parts) => parts.join(''))
  return { process: child, said }
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null) return
  child.kill('SIGTERM')
  await once(child, 'exit')
}

async function untilAllWentWrong({
  sandbox,
  gateway,
  events,
  refusals,
}: SecretScene): Promise<void> {
  const { slack, webhook, email } = sandbox.received
  const arrived = (): number[] => {
    const vault = webhook.filter(isForVault).length
    return [slack.length, email.length, vault, webhook.length - vault]
  }
  await until('all delivered where it can be', () => Math.min(...arrived()) >= events)
  await until('every refusal met', () => refusals.every((status) => gateway.echoed(status) >= 3))
}

interface Page extends Output {
  isGood: boolean
}

async function pages({ httpPort }: SecretScene, paths: readonly string[]): Promise<Page[]> {
  return Promise.all(
    paths.map(async (path) => {
      const answer = await fetch(`http://127.0.0.1:${httpPort}${path}`)
      const head = JSON.stringify([...answer.headers])
      return { where: path, content: `${head}\n${await answer.text()}`, isGood: answer.ok }
    }),
  )
}

async function commands(scene: SecretScene, config: string): Promise<Output[]> {
  const outputs: Output[] = []
  const run = async (...words: string[]): Promise<string> => {
    const output = await said(...words, '--config', config)
    outputs.push({ where: words.join(' '), content: output.content })
    return output.out
  }
  for (const form of ['text', 'json']) {
    for (const words of [...asked(scene), ...changing]) await run(...words, '--output', form)
  }
  const listed = async (state: string): Promise<string[]> =>
    idsIn(await run('items', 'list', '--state', state, '--output', 'json'), 'items')
  const ids = [...(await listed('dead')).slice(0, 8), ...(await listed('quarantined'))]
  for (const form of ['text', 'json']) {
    for (const id of ids) await run('items', 'show', id, '--output', form)
  }
  return outputs
}

function asked(scene: SecretScene): string[][] {
  const uids = ['stealer_log/planted/1', 'paste/nobody/1', scene.sandbox.events()[0]!.uid]
  return [
    ...uids.map((uid) => ['items', 'show', uid]),
    ...['quarantined', 'all'].map((state) => ['items', 'list', '--state', state]),
    ...['check', 'audit', 'doctor', 'status', 'report'].map((name) => [name]),
    ...['siem', 'vault', 'soc', 'oncall'].map((sink) => ['render', uids[0] ?? '', '--sink', sink]),
    ['audit', '--feed', 'main'],
    ...['accounts', 'feeds', 'sinks', 'items', 'silences'].map((noun) => [noun, 'list']),
    ['routes', 'explain', 'stealer_log/planted/1'],
    ['events', 'get', 'stealer_log/planted/1', '--account', 'main'],
    ['events', 'search', '--group', '1042', '--account', 'main'],
    ['events', 'search', '--group', '1', '--account', 'tok422'],
    ['api', 'credentials.feed', '--identifier-id', '1119', '--account', 'main'],
    ['credentials', 'search', '--domain', 'example.com', '--account', 'main'],
    ['events', 'get', 'paste/nobody/0', '--account', 'tok400'],
  ]
}

const changing = ['siem', 'soc', 'oncall', 'refusedmail', 'hook500', 'slack404', 'tls'].map(
  (sink) => ['sinks', 'test', sink],
)

function idsIn(json: string, key: string): string[] {
  const found = JSON.parse(json) as Record<string, { id: string }[]>
  return (found[key] ?? []).map(({ id }) => id)
}

async function said(...words: string[]): Promise<{ out: string; content: string }> {
  const [input, output, errors] = [new PassThrough(), new PassThrough(), new PassThrough()]
  input.end()
  await runProgram(words, { input, output, errors, stop: new AbortController().signal })
  output.end()
  errors.end()
  const out = await text(output)
  return { out, content: `${out}${await text(errors)}` }
}

async function mistakes(folder: string): Promise<Output[]> {
  const outputs: Output[] = []
  for (const [written, yaml] of wrongConfigs) {
    const file = join(folder, 'wrong.yaml')
    writeFileSync(file, yaml)
    for (const form of ['text', 'json']) {
      const { content } = await said('check', '--output', form, '--config', file)
      outputs.push({ where: `check of ${written}`, content })
    }
  }
  return outputs
}

/** Every key as it is kept, as it is dumped, and the file that Redis writes. */
async function stored(admin: Redis): Promise<Output[]> {
  const outputs: Output[] = []
  for await (const names of admin.scanStream({ count: 1_000 })) {
    for (const name of names as string[]) {
      const [value, dump] = [await valueOf(admin, name), await admin.dumpBuffer(name)]
      outputs.push({ where: 'Redis', content: `${name} ${value}` })
      outputs.push({ where: `a dump of ${name}`, content: dump ?? '' })
    }
  }
  const [, folder = ''] = (await admin.config('GET', 'dir')) as string[]
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' })
  for (const file of files.map((name) => join(folder, name))) {
    if (statSync(file).isFile())
      outputs.push({ where: 'the file of Redis', content: readFileSync(file) })
  }
  return outputs
}

async function valueOf(admin: Redis, name: string): Promise<string> {
  const reads: Record<string, () => Promise<unknown>> = {
    string: () => admin.get(name),
    hash: () => admin.hgetall(name),
    list: () => admin.lrange(name, 0, -1),
    set: () => admin.smembers(name),
    zset: () => admin.zrange(name, 0, '-1', 'WITHSCORES'),
    stream: () => admin.xrange(name, '-', '+'),
    none: () => Promise.resolve(''),
  }
  return JSON.stringify(await reads[await admin.type(name)]!())
}

/** The password changes under the daemon for a while: it, and every command, is refused. */
async function withoutRedis(scene: SecretScene, config: string): Promise<Output[]> {
  const { admin } = scene
  await admin.call('CONFIG', 'SET', 'requirepass', `${operators.redisPassword}-rotated`)
  await admin.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes')
  const { content } = await said('feeds', 'list', '--config', config)
  const shown = await pages(scene, ['/readyz', '/metrics'])
  await admin.call('CONFIG', 'SET', 'requirepass', operators.redisPassword)
  await until('Redis back', async () => (await pages(scene, ['/readyz']))[0]!.isGood)
  return [
    { where: 'feeds list, refused by Redis', content },
    ...shown.map((page) => ({ ...page, where: `${page.where} without Redis` })),
  ]
}

/** A webhook's Authorization is for its receiver, in that header alone. */
function received({ sandbox }: SecretScene): Output[] {
  return Object.values(sandbox.received)
    .flat()
    .filter((message) => !isForVault(message))
    .map(({ sink, to, headers: { authorization: _own, ...headers }, body, mail }) => ({
      where: sink === 'email' ? 'mail to oncall' : `${sink} at ${to.split('/')[1]}`,
      content: `${JSON.stringify(headers)} ${body} ${JSON.stringify(mail)}`,
    }))
}
