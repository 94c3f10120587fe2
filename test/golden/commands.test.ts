/** What commands and metrics say, letter by letter; see `messages.test.ts`. */
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { systemClock } from '../../src/lib/clock.ts'
import { createMetrics } from '../../src/lib/metrics.ts'
import { aFile, tocsin, type Ended } from '../integration/cli/tocsin.ts'
import { redisForTests } from '../support/ledger.ts'
import { loadStoreOf04 } from '../support/store-of-0.4.ts'

const tests = redisForTests()

/** The names below `Commands:`, which stand two blanks from the left. */
function commandsIn(help: string): string[] {
  const [, list = ''] = help.split('\nCommands:\n')
  const names = [...list.matchAll(/^ {2}(\S+)/gm)].map(([, name = '']) => name)
  return names.filter((name) => name !== 'help')
}

async function helpOf(path: string[]): Promise<string[]> {
  const { out } = await tocsin(...path, '--help')
  const below = await Promise.all(commandsIn(out).map((name) => helpOf([...path, name])))
  return [`==== tocsin ${path.join(' ')}\n${out}`, ...below.flat()]
}

test('every command says of itself what it said', async () => {
  const pages = await helpOf([])
  expect(pages.length).toBeGreaterThan(60)
  await expect(pages.join('\n')).toMatchFileSnapshot('recorded/help.txt')
})

test('the examples are told as they were', async () => {
  const folder = join(import.meta.dirname, '../../config')
  const files = readdirSync(folder).filter((name) => /^(minimal|tocsin)\.yaml$/.test(name))
  expect(files).toHaveLength(2)
  const told: string[] = []
  for (const name of files) {
    for (const more of [[], ['--output', 'json']]) {
      const asked = ['check', join(folder, name), ...more]
      told.push(shown(['check', name, ...more], await tocsin(...asked)))
    }
  }
  await expect(told.join('\n').replaceAll(folder, 'config')).toMatchFileSnapshot(
    'recorded/check.txt',
  )
})

test('metrics have the names, kinds, words and labels that they had', async () => {
  const { body } = await createMetrics({ clock: systemClock }).render()
  const lines = body
    .split('\n')
    .filter((line) => line.startsWith('# ') || line.startsWith('tocsin_'))
    .map((line) => (line.startsWith('# ') ? line : line.replace(/ \S+$/, '')))
  expect(lines.length).toBeGreaterThan(100)
  await expect(`${lines.join('\n')}\n`).toMatchFileSnapshot('recorded/metrics.txt')
})

const configuration = (url: string): string => `redis: { url: "${url}" }
accounts:
  main: { base_url: "http://127.0.0.1:9", link_hosts: [app.example.com], api_key: fw_key }
feeds:
  brand: { type: events, account: main, identifier_group: 1042, labels: { team: soc } }
  leaks: { type: credentials, account: main, identifier: 9, severity: high }
sinks:
  lake: { type: webhook, url: "https://lake.example.com/hook" }
  siem: { type: webhook, url: "https://siem.example.com/hook", batch: { max: 10, wait: 1s } }
  soc: { type: slack, url: "https://hooks.slack.com/services/T0/B0/hush-hush" }
  oncall:
    type: email
    smtp: "smtp://mail.example.com"
    from: t@example.com
    to: [a@example.com]
    digest: { schedule: "0 8 * * *", timezone: Europe/Zurich }
route:
  sinks: [lake]
  routes:
    - { name: urgent, matchers: [severity>=high], sinks: [soc, siem], group_by: [feed] }
    - { name: rest, sinks: [oncall] }
`

const questions = [
  'accounts list',
  'feeds list',
  'sinks list',
  'dead-letters list',
  'quarantine list',
  'silences list',
  'routes show',
  'routes explain --uid paste/x/queued',
  'digests preview oncall',
  'audit --ledger',
  ...['queued', 'delivered', 'retrying', 'dead', 'grouped', 'trimmed', 'batch1', 'unknown'].map(
    (name) => `explain paste/x/${name}`,
  ),
]

test('commands tell of a ledger what they told', async () => {
  await loadStoreOf04(tests.redis)
  const config = aFile('tocsin.yaml', configuration(tests.server.url))
  const told: string[] = []
  for (const question of questions) {
    for (const more of ['', ' --output json']) {
      const asked = `${question}${more}`.split(' ')
      told.push(shown(asked, await tocsin(...asked, '--config', config)))
    }
  }
  await expect(told.join('\n').replaceAll(config, 'tocsin.yaml')).toMatchFileSnapshot(
    'recorded/commands.txt',
  )
})

/** What it printed, without what differs from day to day. */
function shown(asked: string[], { code, out, err }: Ended): string {
  const said = [out, err]
    .join('')
    .replaceAll(/\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?Z?/g, '<time>')
    .replaceAll(/\b\d+(\.\d+)? ?(ms|s|min|h|d)\b( \d+ ?(s|min|h|d)\b)*/g, '<span>')
    .replaceAll(/"(\w*(seconds|_ms|_at))": [\d.]+/g, '"$1": <number>')
    .replaceAll(/ +/g, ' ')
  return `==== tocsin ${asked.join(' ')}\n${said}exit ${code}\n`
}
