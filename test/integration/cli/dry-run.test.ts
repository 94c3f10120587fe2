/** What a dry run says it would send, and that nothing is sent and nothing remembered. */
import { mkdirSync, readdirSync, readlinkSync, rmSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test, vi } from 'vitest'
import { parse, stringify } from 'yaml'
import { startSandbox } from '../../../src/sandbox/sandbox.ts'
import { redisForTests } from '../../support/ledger.ts'
import { aFile, environment, startTocsin, tocsin, tocsinProcess } from './tocsin.ts'

const tests = redisForTests()

/** A port where nobody listens: a dry run needs no Redis of the operator's. */
const noRedis = 'redis://127.0.0.1:1'

async function aConfig(change: (text: string) => string = (text) => text) {
  const sandbox = await startSandbox({ port: 0, smtpPort: 0, backlog: 12, enforceLimits: false })
  onTestFinished(() => sandbox.close())
  const text = `redis: {url: '${noRedis}'}
http: {port: 9464}
accounts: {main: {base_url: '${sandbox.url}', api_key: fw_sandbox, limits: {search: 100, basic: 100}}}
feeds: {brand: {type: events, identifier_group: 1042, initial_poll: send}}
sinks:
  soc: {type: slack, url: '${sandbox.url}/slack/T0SANDBOX/B0SANDBOX/slack-hush-hush', allow_private: true}
  siem: {type: webhook, url: '${sandbox.url}/hooks/siem', secret: a-secret-of-24-bytes-abc, allow_private: true}
route:
  sinks: [siem]
  group_wait: 0s
  routes: [{sinks: [soc, siem]}]
silences:
  - {matchers: ['severity=~".*"'], max_severity: medium, owner: ann, reason: later, until: '${until}'}
canary: {every: 1h, sinks: [siem]}
`
  const own = sandbox.events().filter(({ groupIds }) => groupIds.includes(1042)).length
  return { sandbox, own, file: aFile('tocsin.yaml', change(text)) }
}

const until = new Date(Date.now() + 86_400_000).toISOString()

const folders = (): string[] =>
  readdirSync(environment.TMPDIR).filter((name) => name.startsWith('tocsin-dry-'))

test('a dry run names each message that it would send, and what is suppressed and by what', async () => {
  const { sandbox, own, file } = await aConfig()
  const before = folders()
  const run = startTocsin('run', '--dry', '--for', '6s', '--config', file)
  await run.says('would send to siem: ')
  expect(folders().length).toBeGreaterThan(before.length)
  const { code, out, err } = await run.ended
  expect({ code, err }).toEqual({ code: 0, err: '' })
  expect(out).toMatch(/^would send to soc: (?:CRITICAL|HIGH|UNKNOWN \("none"\)) /m)
  expect(out).toContain('nothing was sent, and the ledger was not touched\n')
  expect(own).toBeGreaterThan(4)
  const read = `\\d+ fetched, ${own} new \\(0 late\\), 0 quarantined$`
  expect(out).toMatch(new RegExp(`^ {2}feed brand \\(account main\\): ${read}`, 'm'))
  expect(out).toMatch(/^ {4}\d+ not sent: silenced by /m)
  expect(out).toContain(
    'asked at half of the limits: redis.url: Redis at 127.0.0.1:1 is not reachable',
  )
  expect(out).not.toContain('never read to its end')
  expect(out).not.toContain('anary')
  expect(Object.values(sandbox.received).flat()).toEqual([])
  expect(folders()).toEqual(before)
})

test('Ctrl-C ends it early, with what it found so far and without its folder, also one that is longer than any timer', async () => {
  const { file } = await aConfig()
  const before = folders()
  const run = startTocsin('run', '--dry', '--for', '100d', '--config', file)
  await run.says('would send to siem: ')
  run.child.kill('SIGINT')
  const { code, out } = await run.ended
  expect(code).toBe(0)
  expect(out).toContain('nothing was sent, and the ledger was not touched')
  expect(folders()).toEqual(before)
})

test('as JSON each message is a line, and the end is one', async () => {
  const { own, file } = await aConfig((text) => text.replace(/silences:\n.*\n/, ''))
  const options = ['--for', '1h', '--full', '--output', 'json', '--config', file]
  const run = startTocsin('run', '--dry', ...options)
  const told = (): number => run.soFar().split('"sink":"siem"').length - 1
  await vi.waitUntil(() => told() >= own, { timeout: 40_000 })
  run.child.kill('SIGINT')
  const { code, out } = await run.ended
  expect(code).toBe(0)
  const lines = out
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, unknown>)
  const messages = lines.slice(0, -1)
  expect(new Set(messages.map(({ sink }) => sink))).toEqual(new Set(['soc', 'siem']))
  for (const message of messages) {
    expect(message).toMatchObject({
      headline: expect.stringMatching(/./),
      events: [expect.any(String)],
    })
  }
  const sinks = (lines.at(-1) as { sinks: { sink: string; messages: number; events: number }[] })
    .sinks
  const siem = sinks.find(({ sink }) => sink === 'siem')
  expect(siem).toMatchObject({ messages: own, events: own, suppressed: {} })
})

test('--full shows whole messages as they are laid out, and no leaked secret, also where the sink reveals it', async () => {
  const { sandbox, file } = await aConfig((text) =>
    text
      .replace(
        'feeds: {brand: {type: events, identifier_group: 1042, initial_poll: send}}',
        'feeds: {staff: {type: credentials, identifier: 77, severity: high, initial_poll: send, sweep: false}}',
      )
      .replace('secret: a-secret', 'reveal: true, secret: a-secret'),
  )
  const leaked = { hashType: null, identifierIds: [77], ignoredAtMs: null }
  sandbox.addCredentials([{ ...leaked, identityName: 'eve@example.com', hash: 'Bandicoot-77-x' }])
  const run = startTocsin('run', '--dry', '--for', '1h', '--full', '--config', file)
  await run.says('"severity": ')
  run.child.kill('SIGINT')
  const { out, err } = await run.ended
  expect(out).toMatch(/^would send to siem: .*\n {4}\{\n {6}"type": /m)
  expect(out).toContain('eve@example')
  expect(`${out}${err}`).not.toContain('Bandicoot')
})

test('what could not be read is named by feed, and never taken for a service that shows no event', async () => {
  const { sandbox, file } = await aConfig((text) => {
    const {
      accounts: { main } = {},
      feeds: { brand } = {},
      ...rest
    } = parse(text) as Record<string, Record<string, object>>
    return stringify({
      ...rest,
      accounts: { refused: { ...main, api_key: 'fw_wrong' }, limited: main },
      feeds: { one: { ...brand, account: 'refused' }, two: { ...brand, account: 'limited' } },
    })
  })
  sandbox.faults.add({ on: '/firework/*', effect: 'status', status: 429 })
  const { code, out, err } = await tocsinProcess('run', '--dry', '--for', '10s', '--config', file)
  expect(code).toBe(0)
  expect(err).toMatch(/401/)
  for (const [feed, reason] of [
    ['one (account refused)', 'auth'],
    ['two (account limited)', 'rate_limited'],
  ]) {
    const [, told] = out.split(`  feed ${feed}: `)
    expect(told).toMatch(
      new RegExp(`^.*\\n {4}never read to its end\\n {4}\\d+ polls? failed: ${reason}\\n`),
    )
  }
  expect(out).toContain('not all is known: 2 of 2 feeds never read to the end')
  expect(out).not.toContain('no event came')
})

test('where no Redis is within reach it asks at half of the limits', async () => {
  const { sandbox, file } = await aConfig((text) =>
    text.replace('{search: 100, basic: 100}', '{search: 4, basic: 4}'),
  )
  const run = startTocsin('run', '--dry', '--for', '1h', '--config', file)
  const times = (tier: string): number[] =>
    sandbox.requests.flatMap((request) => (request.tier === tier ? [request.atMs] : []))
  const tiers = ['search', 'basic']
  await vi.waitUntil(() => tiers.every((tier) => times(tier).length >= 6), { timeout: 45_000 })
  run.child.kill('SIGINT')
  expect((await run.ended).out).toContain('asked at half of the limits')
  for (const tier of tiers) {
    const [, second = 0, , , , sixth = 0] = times(tier)
    expect(sixth - second).toBeGreaterThanOrEqual(4 * 500 - 750) // the second may have been so late
  }
})

test('where Redis is within reach, API slots and token are those of the daemon, and nothing else is written', async () => {
  const redis = `{url: '${tests.server.url}', prefix: dryshared}`
  const { sandbox, file } = await aConfig((text) => text.replace(`{url: '${noRedis}'}`, redis))
  const run = startTocsin('run', '--dry', '--for', '1h', '--config', file)
  await run.says('would send to siem: ')
  const partsOf = async (): Promise<Set<string | undefined>> => {
    const keys = await tests.redis.keys('*dryshared*')
    return new Set(keys.map((key) => key.replace(/^\{?dryshared\}?:/, '').split(':')[0]))
  }
  await vi.waitUntil(async () => (await partsOf()).has('capability'), { timeout: 45_000 })
  run.child.kill('SIGINT')
  const first = await run.ended
  expect(first).toMatchObject({ code: 0, err: '' })
  expect(first.out).not.toContain('half of the limits')
  expect(await partsOf()).toEqual(new Set(['limit', 'organization', 'token', 'capability']))
  const second = startTocsin('run', '--dry', '--for', '1h', '--config', file)
  await second.says('would send to siem: ')
  second.child.kill('SIGINT')
  await second.ended
  expect(sandbox.requests.filter(({ path }) => path.startsWith('/tokens/generate'))).toHaveLength(1)
})

/** Processes that run in a folder. */
function residents(folder: string): string[] {
  return readdirSync('/proc').filter((pid) => {
    try {
      return /^\d+$/.test(pid) && readlinkSync(`/proc/${pid}/cwd`).startsWith(folder)
    } catch {
      return false
    }
  })
}

test('what a dry run that was killed left is gone with the next one, and its Redis at once', async () => {
  const { file } = await aConfig()
  const run = startTocsin('run', '--dry', '--for', '1h', '--config', file)
  await run.says('would send to siem: ')
  const [left = ''] = folders()
  expect(folders()).toEqual([left])
  const path = join(environment.TMPDIR, left)
  expect(residents(path)).not.toEqual([])
  run.child.kill('SIGKILL')
  await run.ended
  await vi.waitUntil(() => residents(path).length === 0, { timeout: 30_000 })
  expect(folders()).toEqual([left])
  const others = ['tocsin-dry-notes', `tocsin-dry-${process.pid}.-abcdef`]
  for (const name of others) mkdirSync(join(environment.TMPDIR, name))
  symlinkSync('/nowhere', join(environment.TMPDIR, 'tocsin-dry-999999999.1-abcdef'))
  await tocsinProcess('run', '--dry', '--for', '1s', '--config', file)
  expect(folders().toSorted()).toEqual([...others, 'tocsin-dry-999999999.1-abcdef'].toSorted())
  for (const name of folders()) rmSync(join(environment.TMPDIR, name), { recursive: true })
})

test('a second Ctrl-C does not wait for an answer, and leaves neither folder nor Redis', async () => {
  const { sandbox, file } = await aConfig()
  sandbox.faults.add({ on: '/firework/*', effect: 'hang' })
  const run = startTocsin('run', '--dry', '--for', '1h', '--config', file)
  const isAsked = (): boolean => sandbox.requests.some(({ path }) => path.startsWith('/firework/'))
  await vi.waitUntil(isAsked, { timeout: 45_000 })
  const [folder = ''] = folders()
  run.child.kill('SIGINT')
  await run.says('nothing was sent')
  run.child.kill('SIGINT')
  expect((await run.ended).code).toBe(130)
  expect(folders()).toEqual([])
  const path = join(environment.TMPDIR, folder)
  await vi.waitUntil(() => residents(path).length === 0, { timeout: 30_000 })
})

const unit = 'write a number and its unit, such as 30s, 5m, 12h or 7d'
test.each([
  ['0', `not a duration; ${unit}`],
  ['0s', 'too short; write 1s or more'],
  ['-1s', `not a duration; ${unit}`],
  ['5', `not a duration; ${unit}`],
  ['soon', `not a duration; ${unit}`],
  ['100ms', 'too short; write 1s or more'],
  ['1e3s', `not a duration; ${unit}`],
  ['36501d', 'too long; write 36500d or less'],
  ['', `has no value; ${unit}`],
])('--for %j is refused with why, and what to write instead', async (value, said) => {
  const { code, err } = await tocsin('run', '--dry', `--for=${value}`, '--config', 'none.yaml')
  expect(code).toBe(2)
  expect(err).toContain(`${said}.`)
})

test.each([
  [
    '--output',
    'yaml',
    "option '--output <form>' argument 'yaml' is invalid; there are: text, json",
  ],
  ['--sink', 'soc', 'tocsin run has no option --sink'],
  ['--watch', 'true', 'tocsin run has no option --watch'],
])('--dry with %s %s is refused before anything is polled', async (option, value, said) => {
  const { code, out, err } = await tocsin('run', '--dry', option, value, '--config', 'none.yaml')
  expect({ code, out }).toEqual({ code: 2, out: '' })
  expect(err).toContain(said)
})

test.each([
  ['--for', '--for', '30s'],
  ['--full', '--full'],
])('%s without --dry starts no daemon that would send', async (option, ...args) => {
  const { code, err } = await tocsin('run', ...args, '--config', 'no-such-file.yaml')
  expect({ code, err }).toEqual({
    code: 2,
    err: `${option} goes with --dry only; add --dry, or leave it out\n`,
  })
})
