/** How connections leave: the same keys and mistakes for accounts and sinks; Redis has a certificate too. */
import { writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { ConfigError } from '../../../src/config/config.ts'
import { type LoadedConfig, parseConfig } from '../../../src/config/load.ts'
import { createAuthority } from '../../support/certificates.ts'

const authority = createAuthority()
afterAll(() => authority.remove())
const folder = dirname(authority.file)
const own = authority.issue('own')

function write(name: string, content: string): string {
  const path = join(folder, name)
  writeFileSync(path, content, { mode: 0o600 })
  return path
}

const garbage = write('garbage.pem', `${authority.cert}${own.cert.replace(/\n\w{20}/, '\nAAAA')}`)

const holders = {
  'accounts.main': 'base_url: "https://api.example.com", api_key: key',
  'sinks.chat': 'type: slack, url: "https://hooks.slack.com/services/T/B/x"',
  'sinks.team': 'type: teams, url: "https://flow.example.com/x?sig=x"',
  'sinks.mail':
    'type: email, smtp: "smtp://mail.example.com", from: a@b.example, to: [c@d.example]',
  'sinks.pager': `type: pagerduty, routing_key: ${'k'.repeat(32)}`,
  'sinks.siem': 'type: webhook, url: "https://siem.example.com"',
}

/** All of them with the same keys. */
function load(keys: string, redis: string): LoadedConfig {
  const lines = (room: string): string =>
    Object.entries(holders)
      .filter(([path]) => path.startsWith(room))
      .map(([path, basis]) => `  ${path.slice(room.length + 1)}: { ${basis}, ${keys} }\n`)
      .join('')
  const text = `
redis: ${redis}
accounts:
${lines('accounts')}feeds: { brand: { type: events, identifier_group: 7 } }
sinks:
${lines('sinks')}route: { sinks: [chat] }
`
  return parseConfig(text, { file: join(folder, 'tocsin.yaml'), env: {} })
}

function mistakesOf(keys: string, redis = '{}'): string[] {
  try {
    load(keys, redis)
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    return error.mistakes.map(({ path, problem, remedy }) => `${path}: ${problem}; ${remedy}`)
  }
  return []
}

describe('accounts and sinks of every type', () => {
  test('take a proxy, exceptions from it, and authorities', () => {
    const keys = `proxy: "http://joe:pw@proxy.example:3128", no_proxy: "localhost, .Corp.example.,10.0.0.0/8 fd00::/8",
      ca_file: ca.pem`
    const { config } = load(keys, '{}')
    for (const holder of [...config.accounts, ...config.sinks]) {
      expect(holder).toMatchObject({
        noProxy: ['localhost', '.corp.example', '10.0.0.0/8', 'fd00::/8'],
        caFile: authority.file,
      })
      expect(holder.proxy?.reveal()).toBe('http://joe:pw@proxy.example:3128')
      expect(JSON.stringify(holder)).not.toContain('joe')
    }
  })

  test.each([
    [
      'proxy: proxy.example',
      'proxy: not the address of a proxy; write a URL such as http://proxy.example:3128',
    ],
    [
      'proxy: "socks5://proxy.example"',
      'proxy: not the address of a proxy; write a URL such as http://proxy.example:3128',
    ],
    [
      'proxy: "http://joe:5%@proxy.example"',
      'proxy: its user or password has a stray %; write it as %25',
    ],
    [
      'proxy: "http://us%E9r:p@proxy.example"',
      'proxy: its user or password is percent-encoded, and not as UTF-8; write é as %C3%A9',
    ],
    ...[
      'http://corp.example',
      '10.0.0.0/33',
      'corp.example:8080',
      '*',
      '10.',
      '10.0.0',
      '999.1.1.1',
    ].map((written) => [
      `no_proxy: "localhost, ${written}"`,
      'no_proxy: not a list of hosts; write hosts with commas between, such as localhost, .example.com, 10.0.0.0/8',
    ]),
    [`ca_file: ${garbage}`, `ca_file: the file ${garbage} holds no certificate; give a PEM file`],
    [
      `ca_file: ${own.keyFile}`,
      `ca_file: the file ${own.keyFile} holds no certificate; give a PEM file`,
    ],
    [
      'ca_file: none.pem',
      `ca_file: there is no such file below ${folder}; create it or correct the path`,
    ],
  ])('refuse %s by place and remedy', (keys, expected) => {
    const told = mistakesOf(keys ?? '')
    expect(told).toEqual(Object.keys(holders).map((path) => `${path}.${expected}`))
    expect(told.join()).not.toContain('joe')
  })
})

test.each([
  ['cert_file: own.pem, key_file: own.key', []],
  ['cert_file: own.pem', ['redis.cert_file: given without key_file; write key_file too']],
  ['key_file: own.key', ['redis.key_file: given without cert_file; write cert_file too']],
  ...['other.key', 'own.pem', 'none.key'].map((key): [string, string[]] => [
    `cert_file: own.pem, key_file: ${key}`,
    [
      'redis.key_file: no certificate and its key in cert_file and key_file; give two PEM files, the key without a passphrase',
    ],
  ]),
])('of a certificate for Redis {%s} is judged', (keys, expected) => {
  authority.issue('other')
  expect(mistakesOf('', `{ url: "rediss://redis.example.com", ${keys} }`)).toEqual(expected)
})
