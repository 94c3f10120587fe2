/** What the file says of feeds, as it reaches them. */
import { describe, expect, test } from 'vitest'
import { parseConfig, type LoadedConfig } from '../../../../src/config/load.ts'
import type { FeedConfig } from '../../../../src/feeds/types/config.ts'
import {
  aCookieFeed,
  aCredentialFeed,
  aCredentialSearch,
  aFeed,
  anIdentifierFeed,
  aTenantCredentialFeed,
  aTenantFeed,
} from '../../../support/feeds.ts'

const events = 'type: events, identifier_group: 1042'
const tenantEvents = 'type: events'
const identifierEvents = 'type: events, identifier: 77'
const tenantCredentials = 'type: credentials, severity: high'
const credentials = 'type: credentials, identifier: 77, severity: high'
const domain = 'query: { type: domain, fqdn: example.com }'
const search = `type: credential_search, severity: high, ${domain}`

const [minute, hour, day] = [60_000, 3_600_000, 86_400_000]

function load(feeds: string, env: Record<string, string> = {}): LoadedConfig {
  const text = `
accounts: { main: { base_url: 'https://api.example.com', api_key: key } }
sinks: { soc: { type: slack, url: 'https://hooks.example.com/x' } }
route: { sinks: [soc] }
feeds:
${feeds}
`
  return parseConfig(text, { file: 'tocsin.yaml', env })
}

function feedOf(keys: string, env: Record<string, string> = {}): FeedConfig {
  return load(`  brand: { ${keys} }`, env).config.feeds[0]!
}

describe('a feed that says only what it must has the defaults of its type', () => {
  const detail = ['high', 'critical']
  const rescan = { everyMs: undefined, backMs: 7 * day }
  const unstated = { longestMs: undefined }
  test.each([
    ['events', events, aFeed({ detail, rescan, ...unstated })],
    ['events of the tenant', tenantEvents, aTenantFeed({ detail, rescan, ...unstated })],
    [
      'events of an identifier',
      identifierEvents,
      anIdentifierFeed({ detail, rescan, ...unstated }),
    ],
    ['credentials', credentials, aCredentialFeed({ name: 'brand' })],
    ['credentials of the tenant', tenantCredentials, aTenantCredentialFeed({ name: 'brand' })],
    ['credential_search', search, aCredentialSearch({ name: 'brand' })],
    ['cookies', 'type: cookies, domain: vpn.example.com', aCookieFeed({ name: 'brand' })],
  ])('%s', (_type, keys, { scope: _scope, ...expected }) => {
    // without one, the objective follows from the limit of the organization
    expect(feedOf(keys)).toEqual({ ...expected, lagObjectiveMs: undefined })
  })
})

describe('rescan', () => {
  test.each([
    [events, 'rescan: { every: 2h, back: 3d }', { everyMs: 2 * hour, backMs: 3 * day }],
    [events, 'rescan: { back: 1h }', { everyMs: undefined, backMs: hour }],
    [events, 'rescan: { every: 5m }', { everyMs: 5 * minute, backMs: 7 * day }],
    [credentials, 'rescan: { every: 7d }', { everyMs: 7 * day, backMs: 0 }],
    [search, 'rescan: { back: 30d }', { everyMs: day, backMs: 30 * day }],
  ])('of { %s } as %s', (keys, rescan, expected) => {
    expect(feedOf(`${keys}, ${rescan}`).rescan).toEqual(expected)
  })

  test.each([events, credentials, search])('of { %s } comes every 10s at most', (keys) => {
    expect(feedOf(`${keys}, rescan: { every: 10s }`).rescan).toMatchObject({ everyMs: 10_000 })
    expect(() => feedOf(`${keys}, rescan: { every: 9s }`)).toThrow(/10s/)
  })

  test('of a feed that nothing else reads whole is not switched off', () => {
    expect(() => feedOf(`${credentials}, rescan: false`)).toThrow(/rescan: not a section/)
  })

  test.each([events, search])('of { %s } is switched off by false', (keys) => {
    expect(feedOf(`${keys}, rescan: false`).rescan).toBeUndefined()
    expect(feedOf(`${keys}, rescan: "\${RESCAN}"`, { RESCAN: 'false' }).rescan).toBeUndefined()
  })
})

test('a first poll may send each event by itself', () => {
  expect(feedOf(`${events}, initial_poll: send`).initialPoll).toBe('send')
})

test.each([
  ['{ type: domain, fqdn: sub.example.com }', { type: 'domain', fqdn: 'sub.example.com' }],
  ['{ type: auth_domain, fqdn: bücher.example }', { type: 'auth_domain', fqdn: 'bücher.example' }],
  ['{ type: email, email: jo@example.com }', { type: 'email', email: 'jo@example.com' }],
  ['{ type: keyword, keyword: acme corp }', { type: 'keyword', keyword: 'acme corp' }],
])('a credential search by %s', (query, expected) => {
  const keys = `type: credential_search, severity: low, quota_reserve: 1000, query: ${query}`
  expect(feedOf(keys)).toMatchObject({ severity: 'low', quotaReserve: 1000, query: expected })
})

test('a search by ASTP reserves nothing, and counts against the basic tier', () => {
  const expected = { astp: true, quotaReserve: 0, tier: 'basic' }
  expect(feedOf(`${search}, astp: true, quota_reserve: 9`)).toMatchObject(expected)
})

test('feeds of all types stand side by side, each with its own labels', () => {
  const { config } = load(`
  brand: { ${events}, labels: { team: soc } }
  staff: { ${credentials}, labels: { team: iam } }
  leaks: { ${search} }
`)
  expect(
    config.feeds.map(({ name, type, account, labels }) => [name, type, account, labels]),
  ).toEqual([
    ['brand', 'events', 'main', { team: 'soc' }],
    ['staff', 'credentials', 'main', { team: 'iam' }],
    ['leaks', 'credential_search', 'main', {}],
  ])
})

test('whatever changes what a feed reads or tells is another configuration', () => {
  const variants = [
    events,
    `${events}, initial_poll: send`,
    `${events}, rescan: false`,
    `${events}, rescan: { every: 2h }`,
    tenantEvents,
    `${tenantEvents}, filters: { severity: high }`,
    identifierEvents,
    identifierEvents.replace('77', '78'),
    tenantCredentials,
    credentials,
    credentials.replace('77', '78'),
    credentials.replace('high', 'low'),
    search,
    search.replace('example.com', 'example.org'),
    search.replace('domain', 'auth_domain'),
    `${search}, quota_reserve: 1`,
    `${search}, astp: true`,
  ]
  const hashes = variants.map((keys) => load(`  brand: { ${keys} }`).hash)
  expect(new Set(hashes).size).toBe(variants.length)
  expect(load(`  brand: { ${events}, rescan: { back: 168h } }`).hash).toBe(hashes[0])
})
