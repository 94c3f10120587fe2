/** `check` and the daemon's log warn of secrets that other users read, or the network carries. */
import { randomBytes } from 'node:crypto'
import { chmodSync, chownSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { formatMistake } from '../../src/config/config.ts'
import { loadConfig } from '../../src/config/load.ts'
import { configKeys } from '../../src/config/schema.ts'
import { findExposure } from '../../src/config/secret-warnings.ts'
import { findSecretKey } from '../../src/lib/config/secret.ts'

const folder = mkdtempSync(join(tmpdir(), 'tocsin-exposed-'))
afterAll(() => rmSync(folder, { recursive: true }))
const at = (name: string): string => join(folder, name)
const isRoot = process.getuid?.() === 0

function aFile(name: string, text: string, mode = 0o600): string {
  rmSync(at(name), { force: true }) // with its owner
  writeFileSync(at(name), text)
  chmodSync(at(name), mode) // whatever the umask
  return at(name)
}

const drawn = `whsec_${randomBytes(32).toString('base64')}`

/** Of these files, each of mode 0600 at first. */
const files = {
  api_key_file: 'fw_Pq7Zr2Lx9Vt4Kw8N',
  proxy_file: 'http://user:Pq7Zr2Lx9Vt4@proxy.example.com:3128',
  slack_url_file: 'https://hooks.slack.example/services/T0/B0/Pq7Zr2Lx9Vt4Kw8N',
  smtp_file: 'smtps://user:Pq7Zr2Lx9Vt4@mail.example.com',
  hook_url_file: 'https://siem.example.com/in',
  secret_file: drawn,
  password_file: 'Pq7Zr2Lx9Vt4Kw8N',
  ping_file: 'https://ping.example.com/0f8fad5b-d9cb-469f-a165-70867728950e',
}
type File = keyof typeof files

const places: Record<File, string> = {
  api_key_file: 'accounts.main.api_key_file',
  proxy_file: 'accounts.main.proxy_file',
  slack_url_file: 'sinks.soc.url_file',
  smtp_file: 'sinks.oncall.smtp_file',
  hook_url_file: 'sinks.siem.url_file',
  secret_file: 'sinks.siem.secret_file',
  password_file: 'redis.password_file',
  ping_file: 'canary.ping_file',
}

function inFiles(open: Partial<Record<File, number>> = {}): string {
  for (const [name, text] of Object.entries(files)) aFile(name, text, open[name as File])
  return aFile(
    'in-files.yaml',
    `redis: {url: 'rediss://redis.example.com:6379', password_file: password_file}
accounts: {main: {base_url: 'https://api.example.com', api_key_file: api_key_file, proxy_file: proxy_file}}
feeds: {brand: {type: events, identifier_group: 1}}
sinks:
  soc: {type: slack, url_file: slack_url_file}
  oncall: {type: email, smtp_file: smtp_file, from: a@example.com, to: [b@example.com]}
  siem: {type: webhook, url_file: hook_url_file, secret_file: secret_file}
route: {sinks: [soc, oncall, siem]}
canary: {every: 1h, sinks: [siem], ping_file: ping_file}
`,
    0o644,
  )
}

/** With what the parts say written out. */
function written(parts: { redis?: string; key?: string; sinks?: string; mode?: number }): string {
  const { redis = '{}', key = '${KEY}', sinks = '', mode = 0o600 } = parts
  return aFile(
    'written.yaml',
    `redis: ${redis}
accounts: {main: {base_url: 'https://api.example.com', api_key: '${key}'}}
feeds: {brand: {type: events, identifier_group: 1}}
sinks:
  soc: {type: slack, url: '\${SLACK}'}
${sinks}
route: {sinks: [soc${sinks === '' ? '' : ', siem'}]}
`,
    mode,
  )
}

const env = {
  KEY: 'fw_Pq7Zr2Lx9Vt4Kw8N',
  SLACK: 'https://hooks.slack.example/services/T0/B0/Pq7Zr2Lx9Vt4Kw8N',
}

function warningsOf(path: string, more: Record<string, string> = {}): string[] {
  return loadConfig({ path, env: { ...env, ...more } }).warnings.map(formatMistake)
}

describe('a file that holds a secret', () => {
  test('is no matter while only this user may read it, and certificates never are', () => {
    expect(warningsOf(inFiles())).toEqual([])
    expect(warningsOf(inFiles({ api_key_file: 0o400 }))).toEqual([])
  })

  test.each(Object.keys(files) as File[])('is named where every user may read it: %s', (name) => {
    const warnings = warningsOf(inFiles({ [name]: 0o644 }))
    expect(warnings).toHaveLength(1)
    expect(warnings[0]).toContain(
      ` ${places[name]}: every user may read ${at(name)} (mode 0644); run: chmod 600 ${at(name)}`,
    )
  })

  test.runIf(isRoot)('is named where it belongs to another user', () => {
    const path = inFiles()
    chownSync(at('secret_file'), 65534, 65534)
    expect(warningsOf(path)).toEqual([
      expect.stringMatching(
        /sinks\.siem\.secret_file: \S+ belongs to user 65534, and this is user 0; run as root: chown 0 \S+ && chmod 600 \S+$/,
      ),
    ])
  })

  test.runIf(isRoot).each<[owner: number, mode: number, said: RegExp, todo: string]>([
    [1000, 0o600, /^$/, ''],
    [1000, 0o640, /^group 2000 may read \S+ \(mode 0640\)$/, 'run: chmod 600'],
    [1000, 0o602, /^every user may change /, 'run: chmod 600'],
    [1000, 0o666, /^every user may read and change /, 'run: chmod 600'],
    [0, 0o440, /^$/, ''], // Kubernetes with fsGroup, a package, a credential of systemd
    [0, 0o644, /^every user may read .*mode 0644/, 'defaultMode'], // Kubernetes by default
  ])('of user %i and mode %o is judged for user 1000', (owner, mode, said, todo) => {
    const target = aFile('target', 'x', mode)
    chownSync(target, owner, 2000)
    rmSync(at('link'), { force: true })
    symlinkSync(target, at('link')) // as a secret is mounted
    const { problem, remedy } = findExposure(at('link'), 1000) ?? { problem: '', remedy: '' }
    expect(problem).toMatch(said)
    expect(remedy).toContain(todo)
  })
})

describe('a configuration that others may read', () => {
  const literal = {
    key: env.KEY,
    sinks: `  siem: {type: webhook, url: 'https://siem.example.com/in', secret: '${drawn}'}`,
  }

  test('is named with the first secret that is written out in it', () => {
    const [warning, ...others] = warningsOf(written({ ...literal, mode: 0o644 }))
    expect(others).toEqual([])
    expect(warning).toMatch(
      /written\.yaml:2:\d+ accounts\.main\.api_key: a secret is written out here \(and 1 more\), and every user may read \S+written\.yaml \(mode 0644\); run: chmod 600 \S+, or write api_key_file /,
    )
    expect(warning).not.toContain(env.KEY)
  })

  test('is no matter where it is closed, or where its secrets are variables', () => {
    expect(warningsOf(written({ ...literal, mode: 0o600 }))).toEqual([])
    expect(warningsOf(written({ mode: 0o644 }))).toEqual([])
  })

  test('is named where a secret is the text for a variable that is not set', () => {
    const path = written({ key: '${NEVER_SET:-fw_Pq7Zr2Lx9Vt4Kw8N}', mode: 0o644 })
    expect(warningsOf(path)).toEqual([
      expect.stringContaining('accounts.main.api_key: a secret is written out here, and every'),
    ])
    expect(warningsOf(path, { NEVER_SET: env.KEY })).toEqual([])
  })

  test.each([
    [false, 'https://siem.example.com/hooks/tocsin'],
    [false, 'https://siem.example.com/services/collector-v2-production'],
    [true, 'https://siem.example.com/hooks/abcdefghij5klmnopqrs'],
    [true, 'https://siem.example.com/0f8fad5b-d9cb-469f-a165-70867728950e'],
    [true, 'https://siem.example.com/in/Pq7Zr2Lx9Vt4Kw8NPq7Z'],
    [true, 'https://siem.example.com/in?key=Pq7Zr2Lx9Vt4Kw8NPq7Z'],
  ])('holds a secret (%s) in the address %s', (isSecret, address) => {
    const sinks = `  siem: {type: webhook, url: '${address}', secret: '\${SIEM}'}`
    const warnings = warningsOf(written({ sinks, mode: 0o644 }), { SIEM: drawn })
    expect(warnings.length > 0).toBe(isSecret)

    const canary = `\ncanary: {every: 1h, sinks: [soc], ping: '${address}'}`
    const pinging = warningsOf(written({ redis: `{}${canary}`, mode: 0o644 }))
    expect(pinging.length > 0).toBe(isSecret)
  })
})

const strong = 'Pq7Zr2Lx9Vt4Kw8N'

test.each([
  [true, `{url: 'redis://:${strong}@redis.example.com:6379'}`],
  [true, `{url: 'redis://10.0.0.7', password: ${strong}}`],
  [true, `{url: 'redis://[fd00::7]', password: ${strong}}`],
  [false, `{url: 'rediss://:${strong}@redis.example.com:6379'}`],
  [false, `{url: 'redis://:${strong}@127.0.0.1:6379'}`],
  [false, `{url: 'redis://:${strong}@[::1]:6379'}`],
  [false, `{url: 'unix:///run/redis.sock', password: ${strong}}`],
  [false, `{url: 'redis://redis.example.com:6379'}`],
  // a container beside this one, as in docker-compose.yml
  [false, `{url: 'redis://redis:6379', password: ${strong}}`],
])(
  'a password of Redis that goes to another machine in clear is named (%s): %s',
  (isNamed, redis) => {
    const warnings = warningsOf(written({ redis }))
    const said = expect.stringMatching(/ redis\.url: the password goes to .*; write rediss:/)
    expect(warnings).toEqual(isNamed ? [said] : [])
    expect(warnings.join()).not.toContain(strong)
  },
)

/** A template holds words for people and no secret, so its file needs no mode 600. */
test('every file that a key names holds a secret, certificates and templates apart', () => {
  const keys = configKeys().filter((key) => !key.includes('.templates.'))
  const nameOf = (key: string): string => key.split('.').at(-1) ?? ''
  const unknown = keys
    .map(nameOf)
    .filter((name) => name.endsWith('_file') && findSecretKey(name) === undefined)
  expect([...new Set(unknown)].toSorted()).toEqual(['ca_file', 'cert_file'])
  // redacted, an error could not show them
  const twins = keys.filter((key) => keys.includes(`${key}_file`)).map(nameOf)
  expect(twins).toContain('api_key')
  expect(twins.filter((name) => findSecretKey(name) !== name)).toEqual([])
  expect(findSecretKey('key_file')).toBe('key')
  expect(findSecretKey('token_file')).toBe('token')
  expect(findSecretKey('name')).toBeUndefined()
})
