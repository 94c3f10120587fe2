/** `init` against the pretend service and its receivers, a real Redis and a Redis of its own. */
import {
  chmodSync,
  chownSync,
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
  key: string
}

async function aScene(): Promise<Scene> {
  const sandbox = await startSandbox({ enforceLimits: false })
  onTestFinished(() => sandbox.close())
  const folder = aFolder()
  const key = sandbox.apiKeys[0] ?? ''
  return { sandbox, folder, file: join(folder, 'tocsin.yaml'), key }
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

test('asks, explains what does not work, and writes a configuration that does', async () => {
  const { sandbox, folder, file, key } = await aScene()
  const mail = `smtp://ann:hush$hush@${new URL(sandbox.smtpUrl).host}`
  const { code, out, err, left } = await talk(
    [file, '--allow-private'],
    [
      ['URL of your Redis', tests.server.url],
      ['Address of the service', 'nonsense'],
      ['Address of the service', 'http://127.0.0.1:9'],
      ['Address of the service', sandbox.url],
      ['API key', 'fw_a_wrong_key'],
      ['Id of the tenant', ''],
      ['Address of the service', ''],
      ['API key', key],
      ['Id of the tenant', 'mine'],
      ['Address of the service', ''],
      ['API key', key],
      ['Id of the tenant', '42'],
      ['Id of an identifier group', '5'],
      ['Id of an identifier group', ''],
      ['Where messages go', 'slak'],
      ['Where messages go', ''],
      ['URL of an incoming webhook of Slack', sandbox.slackUrl],
      ['Send it one message marked TEST', 'y'],
      ['Another destination?', 'y'],
      ['Where messages go', 'email'],
      ['Mail server', mail],
      ['Sender of mails', 'nobody'],
      ['Who gets mails', 'ann@example.com'],
      ['Where messages go', 'email'],
      ['Mail server', mail],
      ['Sender of mails', 'tocsin@example.com'],
      ['Who gets mails', 'ann@example.com, bob@example.com'],
      ['Send it one message marked TEST', 'n'],
      ['Another destination?', 'y'],
      ['Where messages go', 'webhook'],
      ['URL of a webhook', sandbox.webhookUrl],
      ['Secret that signs', ''],
      ['Send it one message marked TEST', 'n'],
      ['Another destination?', 'n'],
    ],
  )
  expect(left).toEqual([])
  expect(code).toBe(0)
  expect(err).toContain('not a URL; write')
  expect(err).toContain('ECONNREFUSED')
  expect(err).toContain('make a new one in the profile page')
  expect(err).toContain('tenant_id: not a number')
  expect(err).toContain('Organization')
  expect(err).toContain('no kind of sink; did you mean "slack"?')
  expect(err).toContain('not an e-mail address')
  for (const secret of [key, 'fw_a_wrong_key', 'hush$hush', sandbox.slackUrl]) {
    expect(out + err).not.toContain(secret)
  }
  expect([sandbox.received.slack.length, sandbox.received.email.length]).toEqual([1, 0])
  expect(out).toMatch(
    /tocsin\.yaml is written, and 6 secrets beside it.*\nNext:\n {2}tocsin doctor --config .*\n {2}tocsin run --config .*\n$/,
  )
  expect(modes(folder)).toEqual([
    'secrets 700',
    'secrets/tocsin-main-api-key 600',
    'secrets/tocsin-oncall-smtp 600',
    'secrets/tocsin-redis-url 600',
    'secrets/tocsin-siem-secret 600',
    'secrets/tocsin-siem-url 600',
    'secrets/tocsin-soc-url 600',
    'tocsin.yaml 600',
  ])
  expect(readFileSync(file, 'utf8')).not.toContain(key)
  const checked = await tocsin('check', file, '--output=json')
  expect(JSON.parse(checked.out)).toEqual({ ok: true, warnings: [] })
  expect((await tocsin('check', file)).out).toContain('root: the rest → soc, oncall, siem')
  expect(readFileSync(join(folder, 'secrets/tocsin-oncall-smtp'), 'utf8')).toContain('hush$hush')
})

test('writes a draft without questions, whose gaps are variables of the environment', async () => {
  const { sandbox, folder, file, key } = await aScene()
  const written = await tocsin('init', file, '--sink', 'slack,email,webhook', '--allow-private')
  const variables =
    'TOCSIN_BASE_URL TOCSIN_API_KEY SLACK_WEBHOOK_URL SMTP_URL MAIL_FROM MAIL_TO WEBHOOK_URL WEBHOOK_SECRET'
  expect(written.out).toContain(`it takes from the environment: ${variables}\n`)
  expect(modes(folder)).toEqual(['tocsin.yaml 600'])
  expect((await tocsin('check', file)).err).toContain('the variable MAIL_TO is not set')
  const values = [
    sandbox.url,
    key,
    sandbox.slackUrl,
    sandbox.smtpUrl,
    'tocsin@example.com',
    'ann@example.com',
    sandbox.webhookUrl,
    sandbox.webhookSecret,
  ]
  for (const [at, name] of variables.split(' ').entries()) vi.stubEnv(name, values[at])
  onTestFinished(() => void vi.unstubAllEnvs())
  const doctor = await tocsin('doctor', '--config', file)
  expect(doctor).toMatchObject({ code: 0, out: expect.stringContaining('0 problems') })
})

test('a draft has each sink of a repeated option, and a hint where a region matters', async () => {
  const { file } = await aScene()
  const { out } = await tocsin('init', file, '--sink', 'slack', '--sink', 'pagerduty')
  expect(out).toContain('SLACK_WEBHOOK_URL PAGERDUTY_KEY\n')
  const draft = readFileSync(file, 'utf8')
  expect(draft.match(/^ {2}(soc|duty):$/gm)).toEqual(['  soc:', '  duty:'])
  expect(draft).toContain('# url: https://events.eu.pagerduty.com')
})

test('names the way without questions where nobody can be asked', async () => {
  const { folder, file } = await aScene()
  const { code, err } = await tocsin('init', file)
  expect(err).toContain('nobody is there to ask; --sink slack,email writes a draft')
  expect([code, readdirSync(folder)]).toEqual([2, []])
})

const first: Dialogue = [['URL of your Redis', '']]

test.each([
  ['/proc/self/tocsin.yaml', 'nothing can be written to /proc/self (E'],
  ['/nowhere/tocsin.yaml', 'nothing can be written to /nowhere (ENOENT)'],
  ['/tmp', '/tmp: there already'],
  ['-', '-: write the name of a file'],
])('says before the first question that %j cannot be written', async (file, said) => {
  const { code, err, left } = await talk([file], first)
  expect(err).toContain(said)
  expect([code, left.length]).toEqual([2, 1])
})

test('says before the first question that others may put another secret in the place of one', async () => {
  const folder = aFolder()
  const secrets = join(folder, 'secrets')
  const says = async (problem: string): Promise<void> => {
    const { code, err, left } = await talk([join(folder, 'tocsin.yaml')], first)
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

test('writes over no file', async () => {
  const { file } = await aScene()
  writeFileSync(file, 'mine\n')
  const { code, err } = await tocsin('init', file, '--sink=slack')
  expect(err).toContain('there already')
  expect([code, readFileSync(file, 'utf8')]).toEqual([2, 'mine\n'])
})

/** All answers but the last one. */
function answers({ sandbox, key }: Scene): [string, string][] {
  return [
    ['URL of your Redis', tests.server.url],
    ['Address of the service', sandbox.url],
    ['API key', key],
    ['Id of the tenant', ''],
    ['Id of an identifier group', ''],
    ['Where messages go', ''],
    ['URL of an incoming webhook of Slack', sandbox.slackUrl],
    ['Send it one message marked TEST', 'y'],
  ]
}

test('reads a group where the service cannot search a whole tenant', async () => {
  const scene = await aScene()
  const { sandbox, file } = scene
  sandbox.faults.add({ on: '/firework/v4/events/tenant/_search', effect: 'status', status: 404 })
  const said: Dialogue = answers(scene).flatMap((line): [string, string][] =>
    line[0] === 'Id of an identifier group' ? [line, [line[0], '1042']] : [line],
  )
  const { code, err } = await talk(
    [file, '--allow-private'],
    [...said, ['Another destination?', 'n']],
  )
  expect(err).toContain('give the id of an identifier group')
  expect([code, readFileSync(file, 'utf8')]).toEqual([
    0,
    expect.stringContaining('type: events\n    identifier_group: 1042'),
  ])
})

test('keeps a file that came meanwhile, and leaves no secret beside it', async () => {
  const scene = await aScene()
  const { sandbox, folder, file } = scene
  sandbox.onReceived(() => writeFileSync(file, 'of somebody else\n'))
  const said: Dialogue = [...answers(scene), ['Another destination?', 'n']]
  const { code, err } = await talk([file, '--allow-private'], said)
  expect([code, readFileSync(file, 'utf8')]).toEqual([1, 'of somebody else\n'])
  expect(err).toContain(`${file} could not be written (EEXIST)`)
  const left = readdirSync(folder, { recursive: true, encoding: 'utf8' })
  expect(left.toSorted()).toEqual(['secrets', 'tocsin.yaml'])
})

test('leaves nothing behind where it is broken off', async () => {
  const scene = await aScene()
  const place = aFolder()
  vi.stubEnv('TMPDIR', place)
  onTestFinished(() => void vi.unstubAllEnvs())
  const said: Dialogue = [['URL of your Redis', ''], ...answers(scene).slice(1, 5)]
  const { code, left } = await talk([scene.file], [...said, ['Where messages go', '\u0003']])
  expect([code, left]).toEqual([130, []])
  expect(readdirSync(scene.folder)).toEqual([])
  expect(readdirSync(place)).toEqual([])
})

test('writes nothing once the process is told to stop, though the last answer follows', async () => {
  const scene = await aScene()
  const last = 'Another destination?'
  const said: Dialogue = [...answers(scene), [last, 'n']]
  const { code, left } = await talk([scene.file, '--allow-private'], said, last)
  for (let turn = 0; turn < 10; turn += 1) await nextTurn() // the command goes on for a moment
  expect([code, left]).toEqual([130, []])
  expect(readdirSync(scene.folder)).toEqual([])
})

test('refuses a Redis that can forget, with what to set, and takes another', async () => {
  const scene = await aScene()
  const redis = await startRedis({ settings: ['maxmemory-policy allkeys-lru'] })
  onTestFinished(() => redis.stop())
  const said: Dialogue = [['URL of your Redis', redis.url], ...answers(scene).slice(0, 1)]
  const { err } = await talk([scene.file], [...said, ['Address of the service', '\u0003']])
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
