/** What a dry run says it would send, and that nothing is sent and nothing remembered. */
import { readdirSync } from 'node:fs'
import { expect, onTestFinished, test } from 'vitest'
import { startSandbox } from '../../../src/sandbox/sandbox.ts'
import { aFile, environment, startTocsin, tocsin, tocsinProcess } from './tocsin.ts'

/** A port where nobody listens: a dry run needs no Redis of the operator's. */
const noRedis = 'redis://127.0.0.1:1'

async function aConfig(change: (text: string) => string = (text) => text) {
  const sandbox = await startSandbox({ port: 0, smtpPort: 0, backlog: 12 })
  onTestFinished(() => sandbox.close())
  const text = `redis: {url: '${noRedis}'}
http: {port: 9464}
accounts: {main: {base_url: '${sandbox.url}', api_key: fw_sandbox}}
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
  return { sandbox, file: aFile('tocsin.yaml', change(text)) }
}

const until = new Date(Date.now() + 86_400_000).toISOString()

const folders = (): string[] =>
  readdirSync(environment.TMPDIR).filter((name) => name.startsWith('tocsin-dry-'))

test('a dry run names each message that it would send, and what is suppressed and by what', async () => {
  const { sandbox, file } = await aConfig()
  const before = folders()
  const run = startTocsin('run', '--dry', '--for', '10s', '--config', file)
  await run.says('would send to siem: ')
  expect(folders().length).toBeGreaterThan(before.length)
  const { code, out, err } = await run.ended
  expect({ code, err }).toEqual({ code: 0, err: '' })
  expect(out).toMatch(/^would send to soc: (?:CRITICAL|HIGH|UNKNOWN \("none"\)) /m)
  expect(out).toContain('nothing was sent, and the ledger was not touched\n')
  expect(out).toMatch(
    /^ {2}feed brand \(account main\): \d+ fetched, 9 new \(0 late\), 0 quarantined$/m,
  )
  expect(out).toMatch(/^ {4}\d+ not sent: silenced by /m)
  expect(out).not.toContain('anary')
  expect(Object.values(sandbox.received).flat()).toEqual([])
  expect(folders()).toEqual(before)
})

test('Ctrl-C ends it early, with what it found so far and without its folder', async () => {
  const { file } = await aConfig()
  const before = folders()
  const run = startTocsin('run', '--dry', '--for', '1h', '--config', file)
  await run.says('would send to siem: ')
  run.child.kill('SIGINT')
  const { code, out } = await run.ended
  expect(code).toBe(0)
  expect(out).toContain('nothing was sent, and the ledger was not touched')
  expect(folders()).toEqual(before)
})

test('as JSON each message is a line, and the end is one', async () => {
  const { file } = await aConfig((text) => text.replace(/silences:\n.*\n/, ''))
  const { code, out } = await tocsinProcess(
    'run',
    '--dry',
    '--for',
    '8s',
    '--full',
    '--output',
    'json',
    '--config',
    file,
  )
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
  expect(siem).toMatchObject({ messages: 9, events: 9, suppressed: {} })
})

test('--full shows whole messages as they are laid out', async () => {
  const { file } = await aConfig()
  const run = startTocsin('run', '--dry', '--for', '1h', '--full', '--config', file)
  await run.says('"severity": ')
  run.child.kill('SIGINT')
  const { out } = await run.ended
  expect(out).toMatch(/^would send to siem: .*\n {4}\{\n {6}"type": /m)
})

test('a service that refuses the key is named beside the output', async () => {
  const { file } = await aConfig((text) => text.replace('fw_sandbox', 'fw_wrong'))
  const { out, err } = await tocsinProcess('run', '--dry', '--for', '3s', '--config', file)
  expect(err).toMatch(/401/)
  expect(out).toContain('no event came, so nothing would have been sent')
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
