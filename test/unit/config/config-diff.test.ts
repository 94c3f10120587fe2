import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { fixedKeyFindings, listChanges } from '../../../src/config/config-diff.ts'
import type { Config } from '../../../src/config/config.ts'
import { parseConfig } from '../../../src/config/load.ts'

const folder = mkdtempSync(join(tmpdir(), 'tocsin-diff-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const sections = {
  redis: '{url: redis://127.0.0.1:6379}',
  http: '{port: 9464}',
  accounts: '{main: {base_url: https://api.example.com, api_key: the-api-key}}',
  feeds:
    '{brand: {type: events, identifier_group: 7}, people: {type: events, identifier_group: 8}}',
  sinks:
    '{soc: {type: slack, url: https://hooks.example.com/the-slack-token}, siem: {type: webhook, url: https://siem.example.com/in, secret: the-old-secret-of-24-bytes}}',
  route:
    "{sinks: [soc], routes: [{name: urgent, matchers: ['severity>=high'], sinks: [siem]}, {name: paste, matchers: ['type=paste']}]}",
  retention: '{history: 90d}',
}

function configWith(changed: Partial<typeof sections> = {}): Config {
  const lines = Object.entries({ ...sections, ...changed }).map(([key, text]) => `${key}: ${text}`)
  return parseConfig(lines.join('\n'), { file: join(folder, 'tocsin.yaml'), env: {} }).config
}

const changes = (after: Partial<typeof sections>): string[] =>
  listChanges(configWith(), configWith(after))

const [old, other] = ['the-old-secret-of-24-bytes', 'the-new-secret-of-24-bytes']
const withSecrets = (list: string): string => sections.sinks.replace(`secret: ${old}`, list)
const routes = (from: string, to: string): string => sections.route.replace(from, to)

test.each<[what: string, after: Partial<typeof sections>, changes: string[]]>([
  ['nothing', {}, []],
  ['a default that is written out', { http: '{}' }, []],
  [
    'feeds',
    {
      feeds:
        '{brand: {type: events, identifier_group: 7, every: 30s}, staff: {type: events, identifier_group: 8}}',
    },
    ['feeds.brand changed', 'feeds.people removed', 'feeds.staff added'],
  ],
  [
    'the limit of an account',
    {
      accounts:
        '{main: {base_url: https://api.example.com, api_key: the-api-key, limits: {search: 2}}}',
    },
    ['accounts.main changed'],
  ],
  ['a matcher', { route: routes('severity>=high', 'severity>=low') }, ['route changed']],
  [
    'the order of routes',
    {
      route:
        "{sinks: [soc], routes: [{name: paste, matchers: ['type=paste']}, {name: urgent, matchers: ['severity>=high'], sinks: [siem]}]}",
    },
    ['route changed'],
  ],
  ['another section', { retention: '{history: 30d}' }, ['ledger changed']],
  ['a secret', { sinks: withSecrets(`secret: ${other}`) }, ['sinks.siem changed']],
  ['no secret', { sinks: withSecrets('allow_private: false') }, ['sinks.siem changed']],
])('%s', (_what, after, expected) => {
  expect(changes(after)).toEqual(expected)
})

test('a secret of a file is compared by the place of the file, which may be gone by now', () => {
  const [here, moved] = [join(folder, 'old-key'), join(folder, 'moved-key')]
  const at = (file: string): Partial<typeof sections> => {
    writeFileSync(file, 'the-api-key')
    return { accounts: `{main: {base_url: https://api.example.com, api_key_file: ${file}}}` }
  }
  const before = configWith(at(here))
  expect(listChanges(before, configWith(at(here)))).toEqual([])
  const after = configWith(at(moved))
  rmSync(here)
  expect(listChanges(before, after)).toEqual(['accounts.main changed'])
})

describe('keys that a running process cannot take over', () => {
  test.each([
    ['redis.url', { redis: '{url: redis://:the-password@127.0.0.1:6380}' }],
    ['redis.prefix', { redis: '{url: redis://127.0.0.1:6379, prefix: other}' }],
    ['redis.allow_unsafe', { redis: '{url: redis://127.0.0.1:6379, allow_unsafe: true}' }],
    ['http.port', { http: '{port: 9465}' }],
    ['http.host', { http: '{host: localhost}' }],
  ])('%s is named with the way out', (key, after) => {
    const findings = fixedKeyFindings(configWith(), configWith(after))
    expect(findings.map(({ path }) => path.join('.'))).toEqual([key])
    expect(findings[0]!.remedy).toContain('restart')
    expect(JSON.stringify(findings)).not.toContain('the-password')
  })

  test('a secret that moved into a file is named as the file has it', () => {
    const file = join(folder, 'redis-url')
    writeFileSync(file, 'redis://127.0.0.1:6379')
    const [finding] = fixedKeyFindings(configWith(), configWith({ redis: `{url_file: ${file}}` }))
    expect(finding!.path).toEqual(['redis', 'url_file'])
  })

  test('who may use the page may change, and where people reach it', () => {
    const token = join(folder, 'user-token')
    writeFileSync(token, 'd6f1'.repeat(10))
    const http = `{users: [{name: ana, role: act, token_file: ${token}}], public_url: https://tocsin.example.net, proxy: {from: [10.0.0.5]}}`
    expect(fixedKeyFindings(configWith(), configWith({ http }))).toEqual([])
    expect(changes({ http })).toEqual(['http changed'])
  })

  test('every other section may change', () => {
    const accounts = '{main: {base_url: https://other.example.com, api_key: another-key}}'
    expect(fixedKeyFindings(configWith(), configWith({ accounts }))).toEqual([])
  })
})
