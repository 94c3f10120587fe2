/** `init` against the pretend service and its receivers, a real Redis and a Redis of its own. */
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { text } from 'node:stream/consumers'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { expect, onTestFinished, test, vi } from 'vitest'
import { runProgram } from '../../../src/cli/program.ts'
import { startSandbox, type Sandbox } from '../../../src/sandbox/sandbox.ts'
import { redisForTests } from '../../support/ledger.ts'
import { startRedis } from '../../support/redis.ts'
import { type Ended, tocsin } from './tocsin.ts'

const tests = redisForTests()

interface Scene {
  sandbox: Sandbox
  /** Where the files are to be written; empty. */
  folder: string
  /** Path of the configuration to write. */
  file: string
  /** Path of a file that holds a secret, elsewhere. */
  secretFile: (content: string) => string
  key: string
}

async function aScene(): Promise<Scene> {
  const sandbox = await startSandbox({ enforceLimits: false })
  onTestFinished(() => sandbox.close())
  const [folder, secrets] = [aFolder(), aFolder()]
  let count = 0
  return {
    sandbox,
    folder,
    file: join(folder, 'tocsin.yaml'),
    key: sandbox.apiKeys[0] ?? '',
    secretFile(content) {
      const path = join(secrets, `secret-${(count += 1)}`)
      writeFileSync(path, `${content}\n`, { mode: 0o600 })
      return path
    },
  }
}

function aFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'tocsin-init-test-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

/** Words of a question, and what is typed once they are seen. */
type Dialogue = readonly (readonly [question: string, answer: string])[]

/**
 * On a terminal; each answer is typed when its question is there. The process is told to stop when `stopsAt` is
 * there, right before its answer.
 */
async function talk(
  args: readonly string[],
  dialogue: Dialogue,
  stopsAt?: string,
): Promise<Ended & { left: Dialogue }> {
  const tty = (): PassThrough => Object.assign(new PassThrough(), { isTTY: true })
  const [input, output, errors] = [tty(), new PassThrough(), tty()]
  const left = [...dialogue]
  let [seen, from] = ['', 0]
  errors.on('data', (chunk) => {
    seen += String(chunk)
    const [question, answer] = left[0] ?? []
    const at = question === undefined ? -1 : seen.indexOf(question, from)
    if (at < 0) return
    from = seen.length
    left.shift()
    setImmediate(() => {
      if (question === stopsAt) stopping.abort()
      input.write(`${answer}\r`)
    })
  })
  const stopping = new AbortController()
  const stop = stopping.signal
  const code = await runProgram(['init', ...args], { input, output, errors, stop })
  output.end()
  return { code, out: await text(output), err: seen, left }
}

function modes(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .map((name) => `${name} ${(statSync(join(folder, name)).mode & 0o777).toString(8)}`)
    .toSorted()
}

const start: Dialogue = [['Address of the service', 'nonsense']]

test('asks, explains what does not work, and writes a configuration that does', async () => {
  const { sandbox, folder, file, key } = await aScene()
  const mail = `smtp://ann:hush$hush@${new URL(sandbox.smtpUrl).host}`
  const { code, out, err, left } = await talk(
    [file, '--allow-private'],
    [
      ...start,
      ['Address of the service', 'http://127.0.0.1:9'],
      ['Address of the service', sandbox.url],
      ['API key', 'fw_a_wrong_key'],
      ['Address of the service', ''],
      ['API key', key],
      ['Group of identifiers', '77777'],
      ['Group of identifiers', '1'],
      ['Where messages go', 'slak'],
      ['Where messages go', ''],
      ['URL of an incoming webhook of Slack', sandbox.slackUrl],
      ['Send one message marked TEST', 'y'],
      ['Another destination?', 'y'],
      ['Where messages go', 'email'],
      ['Mail server', mail],
      ['Sender of mails', 'nobody'],
      ['Who gets mails', 'ann@example.com'],
      ['Mail server', mail],
      ['Sender of mails', 'tocsin@example.com'],
      ['Who gets mails', 'ann@example.com, bob@example.com'],
      ['Send one message marked TEST to 2', 'n'],
      ['Another destination?', 'n'],
    ],
  )
  expect(left).toEqual([])
  expect(code).toBe(0)
  expect(err).toContain('not a URL; write')
  expect(err).toContain('the service was not reached (ECONNREFUSED)')
  expect(err).toContain('make a new one in the profile page')
  expect(err).toContain('Organization')
  expect(err).toContain('no group "77777" of the key\'s tenant; known: 1042')
  expect(err).toContain('no kind of sink "slak"; did you mean "slack"?')
  expect(err).toContain('not an e-mail address')
  for (const secret of [key, 'fw_a_wrong_key', 'hush$hush', sandbox.slackUrl]) {
    expect(out + err).not.toContain(secret)
  }
  expect([sandbox.received.slack.length, sandbox.received.email.length]).toEqual([1, 0])
  expect(out).toMatch(
    /tocsin\.yaml is written, and 3 secrets beside it.*\nNext:\n {2}tocsin doctor --config .*\n {2}tocsin run --config .*\n$/,
  )
  expect(modes(folder)).toEqual([
    'secrets 700',
    'secrets/tocsin-api-key 600',
    'secrets/tocsin-oncall-smtp 600',
    'secrets/tocsin-soc-url 600',
    'tocsin.yaml 600',
  ])
  expect(readFileSync(file, 'utf8')).not.toContain(key)
  const checked = await tocsin('check', file, '--output=json')
  expect(JSON.parse(checked.out)).toEqual({ ok: true, warnings: [] })
  expect((await tocsin('check', file)).out).toContain('root: the rest → soc, oncall')
  expect(readFileSync(join(folder, 'secrets/tocsin-oncall-smtp'), 'utf8')).toContain('hush$hush')
})

test('takes every answer from options where nobody can be asked', async () => {
  const { sandbox, folder, file, key, secretFile } = await aScene()
  const options = [
    ['init', file, '--allow-private', '--send', '--base-url', sandbox.url],
    ['--api-key-file', secretFile(key), '--group', '1042'],
    ['--redis-url-file', secretFile(tests.server.url)],
    ['--slack-url-file', secretFile(sandbox.slackUrl)],
    ['--webhook-url-file', secretFile(sandbox.webhookUrl)],
    ['--teams-url-file', secretFile(sandbox.teamsUrl)],
    ['--pagerduty-key-file', secretFile(sandbox.pagerDutyKey)],
    ['--pagerduty-url', sandbox.pagerDutyUrl],
    ['--smtp-url-file', secretFile(sandbox.smtpUrl)],
    ['--mail-from', 'tocsin@example.com', '--mail-to', 'ann@example.com'],
    ['--webhook-secret-file', secretFile(sandbox.webhookSecret)],
  ].flat()
  const { code, out, err } = await tocsin(...options)
  expect(err).toContain('sink siem (webhook): took a TEST message')
  expect(code).toBe(0)
  expect(out).toContain('8 secrets beside it')
  const { received } = sandbox
  expect([received.slack.length, received.teams.length, received.email.length]).toEqual([1, 1, 1])
  const checked = await tocsin('check', file, '--output=json')
  expect(JSON.parse(checked.out)).toMatchObject({ ok: true, warnings: [] })
  const doctor = await tocsin('doctor', '--config', file)
  expect(doctor).toMatchObject({ code: 0, out: expect.stringContaining('0 problems') })
  expect(existsSync(join(folder, 'data'))).toBe(false)
})

test.each([
  ['--redis-url-file', '/dev/zero'],
  ['--api-key-file', '/dev/zero'],
  ['--webhook-secret-file', '/dev/zero'],
])('reads no more of %s than a secret is long', async (option, endless) => {
  const scene = await aScene()
  const webhook = ['--webhook-url-file', scene.secretFile(scene.sandbox.webhookUrl)]
  const options = [...givenOptions(scene, tests.server.url), ...webhook, option, endless]
  const { code, err } = await tocsin('init', ...options)
  const remedy = 'name a file that holds this and nothing else'
  expect(err).toContain(`${endless}: longer than 64 KiB; ${remedy}`)
  expect([code, readdirSync(scene.folder)]).toEqual([2, []])
})

function givenOptions({ sandbox, key, secretFile, file }: Scene, redisUrl: string): string[] {
  const service = [file, '--allow-private', '--base-url', sandbox.url, '--group', '1042']
  const files = ['--api-key-file', secretFile(key), '--redis-url-file', secretFile(redisUrl)]
  const sink = ['--slack-url-file', secretFile(sandbox.slackUrl)]
  return [...service, ...files, ...sink]
}

test.each([
  ['/proc/self/tocsin.yaml', 'nothing can be written to /proc/self (E'],
  ['/dev/null/tocsin.yaml', 'nothing can be written to /dev/null (E'],
  ['/nowhere/tocsin.yaml', 'nothing can be written to /nowhere (ENOENT)'],
  ['/tmp', '/tmp is a folder; name a file in it, such as /tmp/tocsin.yaml'],
])('says before the first question that %j cannot be written', async (file, said) => {
  const { code, err, left } = await talk([file], [['Address of the service', '']])
  expect(err).toContain(said)
  expect([code, left.length]).toEqual([2, 1])
})

test('says before the first question that its folder of secrets is none', async () => {
  const folder = aFolder()
  writeFileSync(join(folder, 'secrets'), '')
  const { code, err, left } = await talk(
    [join(folder, 'tocsin.yaml')],
    [['Address of the service', '']],
  )
  expect(err).toContain(`${folder}/secrets is no folder`)
  expect([code, left.length]).toEqual([2, 1])
})

test('says before the first question that others may put another secret in the place of one', async () => {
  const folder = aFolder()
  const secrets = join(folder, 'secrets')
  const says = async (problem: string): Promise<void> => {
    const { code, err, left } = await talk(
      [join(folder, 'tocsin.yaml')],
      [['Address of the service', '']],
    )
    expect(err).toContain(problem)
    expect([code, left.length]).toEqual([2, 1])
  }
  mkdirSync(secrets)
  chmodSync(secrets, 0o777)
  await says(`${secrets}: others may enter it (mode 777); run: chmod 700 ${secrets}`)
  if (process.getuid?.() !== 0) return
  chmodSync(secrets, 0o700)
  chownSync(secrets, 1001, 1001)
  await says(`${secrets}: it belongs to user 1001, and this is user 0`)
})

test('writes over a file only if asked to', async () => {
  const scene = await aScene()
  const { file } = scene
  writeFileSync(file, 'mine\n')
  const options = givenOptions(scene, tests.server.url)
  const refused = await tocsin('init', ...options)
  expect([refused.code, readFileSync(file, 'utf8')]).toEqual([2, 'mine\n'])
  expect(refused.err).toContain('--force')
  expect((await tocsin('init', '--force', ...options)).code).toBe(0)
  expect(statSync(file).mode & 0o777).toBe(0o600)
  rmSync(file)
  const left = await tocsin('init', ...options)
  expect(left.err).toContain('secrets/tocsin-api-key: there already')
  expect((await tocsin('init', '--force', ...options)).code).toBe(0)
})

test('keeps a file that came meanwhile, and leaves no secret beside it', async () => {
  const scene = await aScene()
  const { sandbox, folder, file } = scene
  sandbox.onReceived(() => writeFileSync(file, 'of somebody else\n'))
  const { code, err } = await tocsin('init', '--send', ...givenOptions(scene, tests.server.url))
  expect([code, readFileSync(file, 'utf8')]).toEqual([1, 'of somebody else\n'])
  expect(err).toContain(`${file} could not be written (EEXIST)`)
  const left = readdirSync(folder, { recursive: true, encoding: 'utf8' })
  expect(left.toSorted()).toEqual(['secrets', 'tocsin.yaml'])
})

test('leaves nothing behind where it is broken off', async () => {
  const { sandbox, folder, file, key } = await aScene()
  const place = aFolder()
  vi.stubEnv('TMPDIR', place)
  onTestFinished(() => void vi.unstubAllEnvs())
  const { code, left } = await talk(
    [file],
    [
      ['Address of the service', sandbox.url],
      ['API key', key],
      ['Group of identifiers', '1042'],
      ['Where messages go', '\u0003'],
    ],
  )
  expect([code, left]).toEqual([130, []])
  expect(readdirSync(folder)).toEqual([])
  expect(readdirSync(place)).toEqual([])
})

test('writes nothing once the process is told to stop, though the last answer follows', async () => {
  const { sandbox, folder, file, key } = await aScene()
  const { code, left } = await talk(
    [file, '--allow-private'],
    [
      ['Address of the service', sandbox.url],
      ['API key', key],
      ['Group of identifiers', '1042'],
      ['Where messages go', ''],
      ['URL of an incoming webhook of Slack', sandbox.slackUrl],
      ['Send one message marked TEST', 'n'],
      ['Another destination?', 'n'],
    ],
    'Another destination?',
  )
  for (let turn = 0; turn < 10; turn += 1) await nextTurn() // the command goes on for a moment
  expect([code, left]).toEqual([130, []])
  expect(readdirSync(folder)).toEqual([])
})

test('writes nothing with a key that is refused, and does not show it', async () => {
  const scene = await aScene()
  const options = givenOptions({ ...scene, key: 'fw_a_wrong_key' }, tests.server.url)
  const { code, out, err } = await tocsin('init', ...options)
  expect(code).toBe(1)
  expect(err).toContain('and replace it; nothing was written')
  expect(out + err).not.toContain('fw_a_wrong_key')
  expect(readdirSync(scene.folder)).toEqual([])
})

test('refuses a Redis that can forget, with what to set', async () => {
  const scene = await aScene()
  const redis = await startRedis({ settings: ['maxmemory-policy allkeys-lru'] })
  onTestFinished(() => redis.stop())
  const { code, err } = await tocsin('init', ...givenOptions(scene, redis.url))
  expect(code).toBe(1)
  expect(err).toContain('set "maxmemory-policy noeviction"')
  expect(readdirSync(scene.folder)).toEqual([])
})

test('gives up where the input ends', async () => {
  const { folder, file } = await aScene()
  const [input, output, errors] = [new PassThrough(), new PassThrough(), new PassThrough()]
  for (const stream of [input, errors]) Object.assign(stream, { isTTY: true })
  input.end()
  const stop = new AbortController().signal
  expect(await runProgram(['init', file], { input, output, errors, stop })).toBe(1)
  expect(readdirSync(folder)).toEqual([])
})
