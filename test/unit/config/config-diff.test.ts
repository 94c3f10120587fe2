import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterAll, describe, expect, test } from 'vitest'
import {
  listChanges,
  diffConfigs,
  fixedFileFindings,
  fixedKeyFindings,
} from '../../../src/config/config-diff.ts'
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

function changes(after: Partial<typeof sections>): Record<string, unknown> | undefined {
  return listChanges(diffConfigs(configWith(), configWith(after)))
}

test('two readings of one file differ in nothing', () => {
  expect(changes({})).toBeUndefined()
})

test('what is written as it would be by default is no change', () => {
  expect(changes({ http: '{}' })).toBeUndefined()
})

describe('what is added, removed and changed is named', () => {
  test('feeds', () => {
    const feeds =
      '{brand: {type: events, identifier_group: 7, every: 30s}, staff: {type: events, identifier_group: 8}}'
    expect(changes({ feeds })).toEqual({
      feeds: { added: ['staff'], removed: ['people'], changed: ['brand'] },
    })
  })

  test('accounts, also where only a limit changes', () => {
    const accounts =
      '{main: {base_url: https://api.example.com, api_key: the-api-key, limits: {search: 2}}}'
    expect(changes({ accounts })).toEqual({ accounts: { changed: ['main'] } })
  })

  test('a route by its own settings, not by those of its branches', () => {
    const route = sections.route.replace('sinks: [siem]', 'sinks: [soc, siem]')
    expect(changes({ route })).toEqual({ routes: { changed: ['urgent'] } })
  })

  test('a route whose branches change their order, which decides who comes first', () => {
    const route =
      "{sinks: [soc], routes: [{name: paste, matchers: ['type=paste']}, {name: urgent, matchers: ['severity>=high'], sinks: [siem]}]}"
    expect(changes({ route })).toEqual({ routes: { changed: ['root'] } })
  })

  test('a matcher', () => {
    const route = sections.route.replace('severity>=high', 'severity>=low')
    expect(changes({ route })).toEqual({ routes: { changed: ['urgent'] } })
  })

  test('other sections, as the file calls them', () => {
    expect(changes({ retention: '{history: 30d}' })).toEqual({ sections: ['dedupe or retention'] })
  })
})

describe('a secret', () => {
  test('is seen to change, and told in no way', () => {
    const sinks = sections.sinks.replace('the-old-secret-of-24-bytes', 'the-new-secret-of-24-bytes')
    expect(changes({ sinks })).toEqual({ sinks: { changed: ['siem'] } })
  })

  test('of a list is seen to change, to come and to go', () => {
    const [one, other] = ['the-old-secret-of-24-bytes', 'the-new-secret-of-24-bytes']
    const withList = (list: string): string => sections.sinks.replace(`secret: ${one}`, list)
    expect(changes({ sinks: withList(`secrets: [${one}]`) })).toBeUndefined()
    for (const list of [
      `secrets: [${other}]`,
      `secrets: [${other}, ${one}]`,
      'allow_private: false',
    ]) {
      expect(changes({ sinks: withList(list) })).toEqual({ sinks: { changed: ['siem'] } })
    }
  })

  test('of a file is compared by the place of the file, which may be gone by now', () => {
    const [old, moved] = [join(folder, 'old-key'), join(folder, 'moved-key')]
    const at = (file: string): Partial<typeof sections> => {
      writeFileSync(file, 'the-api-key')
      return { accounts: `{main: {base_url: https://api.example.com, api_key_file: ${file}}}` }
    }
    const before = configWith(at(old))
    expect(listChanges(diffConfigs(before, configWith(at(old))))).toBeUndefined()
    const after = configWith(at(moved))
    rmSync(old)
    expect(listChanges(diffConfigs(before, after))).toEqual({ accounts: { changed: ['main'] } })
  })
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

  test('files that keep their names and hold something else are named, and only those of Redis', () => {
    const [password, sentinel, key] = ['password', 'sentinel', 'key'].map((name) => {
      writeFileSync(join(folder, name), 'Pq7Zr2Lx9Vt4Kw8N')
      return join(folder, name)
    })
    const config = configWith({
      redis: `{password_file: ${password}, sentinels: {name: main, nodes: [127.0.0.1], password_file: ${sentinel}}}`,
      accounts: `{main: {base_url: https://api.example.com, api_key_file: ${key}}}`,
    })
    const find = (...files: (string | undefined)[]): string[] =>
      fixedFileFindings({ redis: config.redis }, files.map(String)).map(({ path }) =>
        path.join('.'),
      )
    expect(find(password, key)).toEqual(['redis.password_file'])
    expect(find(sentinel)).toEqual(['redis.sentinels.password_file'])
    expect(find(key)).toEqual([])
  })

  test('who may use the page may change, and where people reach it', () => {
    const token = join(folder, 'user-token')
    writeFileSync(token, 'd6f1'.repeat(10))
    const http = `{users: [{name: ana, role: act, token_file: ${token}}], public_url: https://tocsin.example.net, proxy: {from: [10.0.0.5]}}`
    expect(fixedKeyFindings(configWith(), configWith({ http }))).toEqual([])
    expect(changes({ http })).toEqual({ sections: ['http'] })
  })

  test('every other section may change', () => {
    const accounts = '{main: {base_url: https://other.example.com, api_key: another-key}}'
    expect(fixedKeyFindings(configWith(), configWith({ accounts }))).toEqual([])
  })
})

test('whatever set of feeds follows on another, each name is in exactly the list it belongs to', () => {
  const feedsOf = (feeds: Record<string, number>): Config =>
    configWith({
      feeds: `{kept: {type: events, identifier_group: 1}${Object.entries(feeds)
        .map(([name, group]) => `, ${name}: {type: events, identifier_group: ${group}}`)
        .join('')}}`,
    })
  const feeds = fc.dictionary(fc.constantFrom('a', 'b', 'c', 'd'), fc.integer({ min: 1, max: 2 }))
  fc.assert(
    fc.property(feeds, feeds, (before, after) => {
      const diff = diffConfigs(feedsOf(before), feedsOf(after)).feeds
      for (const name of ['a', 'b', 'c', 'd', 'kept']) {
        const [had, has] = [before[name], after[name]]
        expect(diff.added.includes(name)).toBe(had === undefined && has !== undefined)
        expect(diff.removed.includes(name)).toBe(had !== undefined && has === undefined)
        expect(diff.changed.includes(name)).toBe(
          had !== undefined && has !== undefined && had !== has,
        )
      }
    }),
    { numRuns: 50 },
  )
})
