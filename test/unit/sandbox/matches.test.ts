import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { createGenerator } from '../../../src/sandbox/history/generator.ts'
import type { SandboxEvent } from '../../../src/sandbox/history/history.ts'
import { matches, type WatchedAsset } from '../../../src/sandbox/api/matching.ts'
import type { SandboxPolicy } from '../../../src/sandbox/monitoring/store.ts'

const group = {
  id: 1042,
  name: 'Brand',
  tenantId: 42,
  identifiers: [
    { id: 77, name: 'example.com' },
    { id: 78, name: 'Example Bank' },
  ],
}
const nowMs = Date.UTC(2026, 10, 1)
const many = (() => {
  const generator = createGenerator(4)
  return Array.from({ length: 300 }, () => generator.make(group, nowMs))
})()

function anAsset(given: Partial<WatchedAsset> = {}): WatchedAsset {
  const domain = { type: 'domain', data: { fqdn: 'example.com' } } as const
  return { ...domain, attributes: [], searchTypes: [], risks: [], isDisabled: false, ...given }
}

function about(content: string, given: Partial<SandboxEvent> = {}): SandboxEvent {
  const draft = { type: 'paste', data: { content }, highlights: {}, uid: 'paste/site/1' }
  return createGenerator(1).make(group, nowMs, { ...draft, ...given })
}

type Policy = Pick<SandboxPolicy, 'type' | 'value'>
const included = (...keywords: string[]): Policy => ({
  type: 'INCLUDED_KEYWORDS',
  value: { keywords },
})
const excluded = (...keywords: string[]): Policy => ({
  type: 'EXCLUDED_KEYWORDS',
  value: { keywords },
})
const queried = (query: string): Policy => ({ type: 'LUCENE_QUERY', value: { query } })

const anEvent = fc.constantFrom(...many)
const word = fc.constantFrom(
  'example',
  'bank',
  'logs',
  'vpn',
  'access',
  'доступ',
  'nothing',
  'cookies',
)
const aPolicy = fc.oneof(
  fc.array(word, { minLength: 1, maxLength: 3 }).map((words) => included(...words)),
  fc.array(word, { minLength: 1, maxLength: 3 }).map((words) => excluded(...words)),
  word.map(queried),
)
const policies = fc.array(aPolicy, { maxLength: 3 })
const someAsset = fc
  .record({
    kind: fc.constantFrom<Pick<WatchedAsset, 'type' | 'data'>>(
      { type: 'domain', data: { fqdn: 'example.com' } },
      { type: 'keyword', data: { keyword: 'Example Bank' } },
    ),
    searchTypes: fc.subarray(['illicit_networks', 'open_web', 'leaks', 'domains', 'paste']),
    risks: fc.subarray([1, 2, 3, 4, 5]),
  })
  .map(({ kind, ...rest }) => anAsset({ ...kind, ...rest }))

describe('policies', () => {
  test('a further policy only takes events away', () => {
    fc.assert(
      fc.property(someAsset, policies, aPolicy, anEvent, (asset, assigned, further, event) => {
        const isNarrower = !matches(asset, [...assigned, further], event)
        expect(isNarrower || matches(asset, assigned, event)).toBe(true)
      }),
    )
  })

  test('their order means nothing', () => {
    fc.assert(
      fc.property(someAsset, policies, anEvent, (asset, assigned, event) => {
        expect(matches(asset, assigned.toReversed(), event)).toBe(matches(asset, assigned, event))
      }),
    )
  })

  test('what keywords include and what the same exclude are the two halves of what matches', () => {
    fc.assert(
      fc.property(someAsset, fc.array(word, { minLength: 1 }), anEvent, (asset, words, event) => {
        const halves = [included(...words), excluded(...words)]
        const found = halves.filter((policy) => matches(asset, [policy], event))
        expect(found).toHaveLength(matches(asset, [], event) ? 1 : 0)
      }),
    )
  })

  test('a Lucene query of one word is that word included, its negation the word excluded', () => {
    fc.assert(
      fc.property(someAsset, word, anEvent, (asset, one, event) => {
        const both = (left: Policy, right: Policy): void =>
          expect(matches(asset, [left], event)).toBe(matches(asset, [right], event))
        both(queried(one), included(one))
        both(queried(`NOT ${one}`), excluded(one))
      }),
    )
  })

  test('the generated events make both sides of each property come up', () => {
    const found = many.filter((event) => matches(anAsset(), [], event))
    expect(found.length).toBeGreaterThan(50)
    expect(found.length).toBeLessThan(many.length - 50)
    expect(found.some((event) => matches(anAsset(), [included('logs')], event))).toBe(true)
  })

  const cookies = (names: string[], matchesSubdomains = false): Policy => ({
    type: 'ASTP_COOKIES',
    value: { cookie_names: names, match_subdomains: matchesSubdomains },
  })
  const log = about('', {
    type: 'stealer_log',
    highlights: { 'credentials.url': ['https://example.com/login'] },
    stolen: { cookies: [cookie('.sso.example.com', 'sid'), cookie('example.com', 'csrf')] },
  })
  test.each([
    ['a cookie of the host itself', cookies(['csrf']), true],
    ['a cookie below the host, not asked for', cookies(['sid']), false],
    ['a cookie below the host, asked for', cookies(['other', 'sid'], true), true],
    ['no cookie of the name', cookies(['other'], true), false],
  ])('with %s, a stealer log matches as it should', (_case, policy, isMatch) => {
    expect(matches(anAsset(), [policy], log)).toBe(isMatch)
  })

  test('cookies of any host count for an asset that is no domain; what has none is not judged', () => {
    const keyword = anAsset({ type: 'keyword', data: { keyword: 'example' } })
    expect(matches(keyword, [cookies(['sid'])], log)).toBe(true)
    expect(matches(anAsset(), [cookies(['sid'])], about('example.com'))).toBe(true)
  })

  function cookie(hostKey: string, name: string) {
    return { host_key: hostKey, path: '/', expires_utc: '2027-01-01T00:00:00', name, value: 'x' }
  }
})

describe('an asset', () => {
  test('that is disabled matches nothing', () => {
    fc.assert(
      fc.property(someAsset, policies, anEvent, (asset, assigned, event) => {
        expect(matches({ ...asset, isDisabled: true }, assigned, event)).toBe(false)
      }),
    )
  })

  test('with two lists of search types matches what it matches with either', () => {
    const types = fc.subarray(['illicit_networks', 'leaks', 'paste', 'service'], { minLength: 1 })
    fc.assert(
      fc.property(types, types, anEvent, (left, right, event) => {
        const isMatch = (searchTypes: string[]): boolean =>
          matches(anAsset({ searchTypes }), [], event)
        expect(isMatch([...left, ...right])).toBe(isMatch(left) || isMatch(right))
      }),
    )
  })

  test('with groups of search types matches the types in them, and no others', () => {
    const paste = about('example.com')
    const log = about('', { type: 'stealer_log', data: { content: 'example.com' } })
    expect(matches(anAsset({ searchTypes: ['open_web'] }), [], paste)).toBe(true)
    expect(matches(anAsset({ searchTypes: ['open_web'] }), [], log)).toBe(false)
    expect(matches(anAsset({ searchTypes: ['illicit_networks'] }), [], log)).toBe(true)
    expect(matches(anAsset({ searchTypes: ['infected_devices'] }), [], log)).toBe(true)
  })

  test.each(['info', 'low', 'medium', 'high', 'critical', 'unheard-of'])(
    'with risks matches their severities alone: %s',
    (severity) => {
      const event = about('example.com', { severity })
      const risks = [1, 2, 3, 4, 5].filter((risk) => matches(anAsset({ risks: [risk] }), [], event))
      const words = ['info', 'low', 'medium', 'high', 'critical']
      expect(risks).toEqual([words.includes(severity) ? words.indexOf(severity) + 1 : 5])
    },
  )

  const name = { first_name: 'Anna', last_name: 'Meier' }
  const found: [WatchedAsset['type'], Record<string, unknown>, string[], string[]][] = [
    [
      'domain',
      { fqdn: 'Acme.test' },
      ['see acme.test.', 'https://vpn.ACME.test/x', 'a@acme.test'],
      ['evil-acme.test', 'acme.test.evil.test', 'acme.testing', 'acmextest'],
    ],
    ['keyword', { keyword: 'Größe & Söhne' }, ['größe & söhne!'], ['Übergröße & Söhne', 'Söhne']],
    [
      'email',
      { email: 'a.b@acme.test' },
      ['<A.B@acme.test>'],
      ['xa.b@acme.test', 'a.b@acme.tests'],
    ],
    ['username', { username: 'neo_7' }, ['by neo_7: hi'], ['neo_77']],
    ['name', name, ['Meier, Anna'], ['Anna Maier']],
    [
      'name',
      { ...name, is_strict: true },
      ['by anna\n meier'],
      ['Meier, Anna', 'anna.meier@acme.test', 'Anna Meiers'],
    ],
    [
      'github_repository',
      { repo_owner: 'acme', repo_name: 'api' },
      ['github.example/acme/api/x'],
      ['acme/apis'],
    ],
    [
      'search_query',
      { search_query: 'acme AND "cash out"' },
      ['cash out at acme'],
      ['cash acme out'],
    ],
    ['bin', { bin: '453211' }, ['card 4532110000000000'], ['14532110000']],
    [
      'ip',
      { ip: '198.51.100.7' },
      ['at 198.51.100.7:22', '198.51.100.7.'],
      ['198.51.100.77', '1198.51.100.7'],
    ],
    ['ip', { ip: '2001:db8::1' }, ['[2001:DB8::1]'], ['2001:db8::12']],
    ['secret', { secret: 'AKIA.x+1' }, ['key=AKIA.x+1'], ['key=akia.x+1', 'AKIAZx+1']],
    ['azure_tenant', { tenant_id: 'ab-12' }, ['tenant AB-12'], ['tenant ab-123']],
  ]
  test.each(found)('of type %s with %o finds its term, and no other', (type, data, has, hasNot) => {
    const isFound = (text: string): boolean => matches(anAsset({ type, data }), [], about(text))
    expect(has.filter((text) => !isFound(text))).toEqual([])
    expect(hasNot.filter(isFound)).toEqual([])
  })

  test('that is an identity finds any of its attributes', () => {
    const attributes = [
      { type: 'email', email: 'neo@acme.test' },
      { type: 'username', username: 'neo_7' },
    ]
    const identity = anAsset({ type: 'identity', data: { uuid: 'x' }, attributes })
    expect(matches(identity, [], about('neo@acme.test'))).toBe(true)
    expect(matches(identity, [], about('neo_7'))).toBe(true)
    expect(matches(identity, [], about('somebody'))).toBe(false)
  })

  test('is not found by the name of whom an event is said to be for', () => {
    const event = about('nothing', { identifiers: [{ id: 1, name: 'example.com' }] })
    expect(matches(anAsset(), [], event)).toBe(false)
  })
})
