/** How connections leave: the same keys, with the same mistakes, for accounts and every type of sink. */
import { createPrivateKey } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { ConfigError } from '../../../src/config/config.ts'
import { type LoadedConfig, parseConfig } from '../../../src/config/load.ts'
import { createAuthority } from '../../support/certificates.ts'

const authority = createAuthority()
afterAll(() => authority.remove())
const folder = dirname(authority.file)
const [own, other] = [authority.issue('own'), authority.issue('other')]

function write(name: string, content: string): string {
  const path = join(folder, name)
  writeFileSync(path, content, { mode: 0o600 })
  return path
}

const garbage = write('garbage.pem', `${authority.cert}${own.cert.replace(/\n\w{20}/, '\nAAAA')}`)
const cipher = {
  cipher: 'aes-256-cbc',
  passphrase: 'guarded',
  type: 'pkcs8',
  format: 'pem',
} as const
const guarded = write('guarded.key', createPrivateKey(own.key).export(cipher).toString())

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
function load(keys: string): LoadedConfig {
  const lines = (room: string): string =>
    Object.entries(holders)
      .filter(([path]) => path.startsWith(room))
      .map(([path, basis]) => `  ${path.slice(room.length + 1)}: { ${basis}, ${keys} }\n`)
      .join('')
  const text = `
accounts:
${lines('accounts')}feeds: { brand: { type: events, identifier_group: 7 } }
sinks:
${lines('sinks')}route: { sinks: [chat] }
`
  return parseConfig(text, { file: join(folder, 'tocsin.yaml'), env: {} })
}

function mistakesOf(keys: string): string[] {
  try {
    load(keys)
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    return error.mistakes.map(({ path, problem, remedy }) => `${path}: ${problem}; ${remedy}`)
  }
  return []
}

describe('accounts and sinks of every type', () => {
  test('take a proxy, exceptions from it, authorities and a client certificate', () => {
    const keys = `proxy: "http://joe:pw@proxy.example:3128", no_proxy: "localhost, .Corp.example.,10.0.0.0/8 fd00::/8",
      ca_file: ca.pem, client_cert_file: own.pem, client_key_file: own.key`
    const { config } = load(keys)
    for (const holder of [...config.accounts, ...config.sinks]) {
      expect(holder).toMatchObject({
        noProxy: ['localhost', '.corp.example', '10.0.0.0/8', 'fd00::/8'],
        caFile: authority.file,
        clientCertFile: own.certFile,
        clientKeyFile: own.keyFile,
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
      `client_cert_file: ${own.certFile}`,
      'client_cert_file: a certificate without its key; write client_key_file too',
    ],
    [
      `client_key_file: ${own.keyFile}`,
      'client_key_file: a key without its certificate; write client_cert_file too',
    ],
    [
      `client_cert_file: ${own.certFile}, client_key_file: ${other.keyFile}`,
      'client_key_file: not the key of client_cert_file; give the files that were made together',
    ],
    [
      `client_cert_file: ${own.certFile}, client_key_file: ${guarded}`,
      'client_key_file: a key with a passphrase; write it without: openssl pkey -in <file>',
    ],
    [
      `client_cert_file: ${own.certFile}, client_key_file: ${own.certFile}`,
      `client_key_file: the file ${own.certFile} holds no private key; give a PEM file`,
    ],
    [
      'ca_file: none.pem',
      `ca_file: there is no such file below ${folder}; create it or correct the path`,
    ],
  ])('refuse %s by place and remedy', (keys, expected) => {
    const told = mistakesOf(keys ?? '')
    expect(told).toEqual(Object.keys(holders).map((path) => `${path}.${expected}`))
    expect(told.join()).not.toMatch(/joe|guarded\b(?!\.key)/)
  })
})
