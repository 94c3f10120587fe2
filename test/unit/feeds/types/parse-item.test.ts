import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { itemProblem, parseItem } from '../../../../src/feeds/types/events.ts'
import { withheldText } from '../../../../src/masking/masking.ts'

const item = {
  metadata: {
    uid: 'stealer_log/stealer_logs_live/12345',
    type: 'stealer_log',
    severity: 'high',
    estimated_created_at: '2026-01-05T16:30:37.589388Z',
    matched_at: '2026-01-05T16:31:00',
    flare_url: 'https://app.example.com/#/uid?uid=1',
  },
  tenant_metadata: {
    severity: { original: 'high', override: null },
    tags: ['watch'],
    notes: 'known machine',
    ignored_at: null,
    remediated_at: '2026-01-06T00:00:00+00:00',
  },
  highlights: {
    'victim_information.username': ['<mark>joe</mark> and <mark class="x">ann</mark>'],
  },
  identifiers: [{ id: 406285232303, name: 'example.com' }],
}

type Metadata = Partial<Record<keyof typeof item.metadata, unknown>>

function eventOf(changes: { metadata?: Metadata } & Record<string, unknown> = {}) {
  const raw = { ...item, ...changes, metadata: { ...item.metadata, ...changes.metadata } }
  const parsed = parseItem(raw)
  if (!parsed.ok) throw new Error(parsed.problem)
  return parsed.event
}

test('an item becomes an event', () => {
  expect(eventOf()).toEqual({
    uid: 'stealer_log/stealer_logs_live/12345',
    kind: 'event',
    type: 'stealer_log',
    source: 'stealer_logs_live',
    severity: 'high',
    originalSeverity: null,
    createdAtMs: Date.UTC(2026, 0, 5, 16, 30, 37, 589),
    matchedAtMs: Date.UTC(2026, 0, 5, 16, 31, 0),
    ignoredAtMs: null,
    remediatedAtMs: Date.UTC(2026, 0, 6),
    url: 'https://app.example.com/#/uid?uid=1',
    tags: ['watch'],
    notes: 'known machine',
    identifiers: [{ id: 406285232303, name: 'example.com' }],
    highlights: { 'victim_information.username': ['joe and ann'] },
  })
})

test('what is wrong with an item is said by its place and the first mistake, without control characters', () => {
  const strict = z.object({ 'a\u0007b\u001b': z.string(), c: z.string() })
  const { error } = strict.safeParse({ 'a\u0007b\u001b': 1, c: 2 })
  expect(itemProblem(error!)).toBe('a b : Invalid input: expected string, received number')
  expect(itemProblem(z.string().safeParse(1).error!)).toMatch(/^item: Invalid input: expected/)
})

test('an item with nothing but a uid becomes an event', () => {
  const parsed = parseItem({ metadata: { uid: 'experimental/darknet/darkchat/x' } })
  expect(parsed).toMatchObject({
    ok: true,
    event: { type: 'experimental', source: 'darknet', severity: 'unknown', url: null, tags: [] },
  })
})

test.each([
  ['high', { original: 'medium', override: 'critical' }, 'critical', 'medium'],
  ['high', { original: 'medium', override: null }, 'medium', null],
  ['high', { original: null, override: 'low' }, 'low', 'high'],
  ['high', { original: 'high', override: 'high' }, 'high', null],
  ['high', 'low', 'low', 'high'],
  ['high', { override: true }, 'unknown', 'high'],
  ['HIGH ', null, 'high', null],
  [null, null, 'unknown', null],
  ['', { override: ' ' }, 'unknown', null],
  ['apocalyptic', null, 'apocalyptic', null],
])(
  'the severity that counts of %j with %j is %s, hiding %s',
  (own, tenant, severity, originalSeverity) => {
    const event = eventOf({ metadata: { severity: own }, tenant_metadata: { severity: tenant } })
    expect(event).toMatchObject({ severity, originalSeverity })
  },
)

test.each([
  ['javascript:alert(1)', null],
  ['data:text/html,x', null],
  ['//app.example.com/x', null],
  ['not a link', null],
  ['https://user:secret@app.example.com/', null],
  [`https://app.example.com/${'x'.repeat(3000)}`, null],
  ['http://127.0.0.1:8080/x', 'http://127.0.0.1:8080/x'],
  ['https://app.example.com/"><script>', 'https://app.example.com/%22%3E%3Cscript%3E'],
])('of the link %j remains %j', (link, url) => {
  expect(eventOf({ metadata: { flare_url: link } }).url).toBe(url)
})

test('a tag that names a login is withheld; one with a prefix stays what matchers know it by', () => {
  const tags = ['joe@example.com:hunter22', 'token:github', 'password:reset', 'watch']
  const { tags: kept } = eventOf({ tenant_metadata: { tags } })
  expect(kept).toEqual([withheldText, ...tags.slice(1)])
})

test('an event is bounded, whatever comes', () => {
  const long = 'é😀'.repeat(5000)
  const many = <T>(one: T): T[] => Array.from({ length: 500 }, () => one)
  const event = eventOf({
    metadata: { type: long, severity: long },
    tenant_metadata: { tags: many(long), notes: long },
    highlights: Object.fromEntries(many(many(long)).map((texts, index) => [`f${index}`, texts])),
    identifiers: many({ id: 1, name: long }),
  })
  expect(Object.keys(event.highlights)).toHaveLength(20)
  expect(event.highlights['f0']).toHaveLength(5)
  expect(event.highlights['f0']?.[0]?.length).toBeLessThanOrEqual(501)
  expect(event.tags).toHaveLength(100)
  expect(event.notes?.length).toBeLessThanOrEqual(1001)
  expect(event.identifiers).toHaveLength(100)
  expect(JSON.stringify(event).length).toBeLessThan(120_000)
  expect(JSON.stringify(event).isWellFormed()).toBe(true)
})

test('of a long text its beginning is kept: so much of each field', () => {
  const words = 'a b '.repeat(1500)
  const most = (length: number): string => `${words.slice(0, length)}…`
  const event = eventOf({
    metadata: { type: words, severity: words },
    tenant_metadata: { tags: [words], notes: words },
    highlights: { [words]: [words] },
    identifiers: [{ id: 1, name: words }],
  })
  expect(event).toMatchObject({
    type: most(100),
    severity: most(40),
    tags: [most(200)],
    notes: most(1000),
    identifiers: [{ id: 1, name: most(300) }],
    highlights: { [most(200)]: [most(500)] },
  })
  const urlOf = (length: number): string => `https://app.flare.io/`.padEnd(length, 'x')
  const readUrl = (url: string): string | null => eventOf({ metadata: { flare_url: url } }).url
  expect(readUrl(urlOf(2000))).toBe(urlOf(2000))
  expect(readUrl(urlOf(2001))).toBeNull()
  const uid = 'a'.repeat(512)
  expect(parseItem({ metadata: { uid } })).toMatchObject({ event: { uid } })
})

test('what other endpoints call otherwise is read too, and what a tenant did to an event', () => {
  const tenant_metadata = { ignored_at: '2026-11-01T00:00Z', remediated_at: '2026-11-02T00:00Z' }
  expect(parseItem({ uid: 'u/v/1', event_type: 'paste', tenant_metadata })).toMatchObject({
    event: {
      uid: 'u/v/1',
      type: 'paste',
      ignoredAtMs: Date.UTC(2026, 10, 1),
      remediatedAtMs: Date.UTC(2026, 10, 2),
    },
  })
  const metadata = { uid: 'a/b/2', type: 'leak' }
  expect(parseItem({ metadata, uid: 'u/v/1', event_type: 'paste' })).toMatchObject({
    event: { uid: 'a/b/2', type: 'leak' },
  })
})

describe('a malformed item names the field', () => {
  test.each([
    [null, null, 'item'],
    [{}, null, 'metadata'],
    [{ metadata: { uid: '' } }, null, 'metadata.uid'],
    [{ metadata: { uid: 'a'.repeat(513) } }, null, 'metadata.uid: 513 characters'],
    [{ metadata: { uid: 'a/b/\uD800' } }, null, 'metadata.uid: holds half'],
    [{ metadata: { uid: 'a/b\n/c' } }, null, 'metadata.uid: holds control'],
    [{ metadata: { uid: 'notice/tocsin/x' } }, null, "uid is reserved for Tocsin's own"],
    [{ metadata: { uid: 'canary/tocsin/1' } }, null, "uid is reserved for Tocsin's own"],
    [{ metadata: { uid: {} } }, null, 'metadata.uid: there is none'],
    [{ metadata: { uid: 1.5 } }, null, 'metadata.uid'],
    [{ metadata: { uid: 2 ** 53 } }, null, 'metadata.uid'],
  ])('%j', (raw, uid, problem) => {
    expect(parseItem(raw)).toMatchObject({
      ok: false,
      uid,
      problem: expect.stringContaining(problem),
    })
  })

  test.each(['notice/tocsins/1', 'canary/forum/1', 'paste/tocsin/1'])(
    'but %s is a uid like any other',
    (uid) => expect(parseItem({ metadata: { uid } }).ok).toBe(true),
  )
})

test('nothing the service could send makes it throw', () => {
  const almost = fc.record(
    {
      metadata: fc.oneof(
        fc.jsonValue(),
        fc.record({ uid: fc.string(), type: fc.jsonValue(), flare_url: fc.string() }),
      ),
      tenant_metadata: fc.jsonValue(),
      highlights: fc.oneof(fc.jsonValue(), fc.dictionary(fc.string(), fc.array(fc.string()))),
      identifiers: fc.jsonValue(),
    },
    { requiredKeys: [] },
  )
  fc.assert(
    fc.property(fc.oneof(almost, fc.jsonValue()), (raw) => {
      const parsed = parseItem(raw)
      expect(parsed.ok ? 'item: fine' : parsed.problem).toMatch(/^\S.*: \S/su)
    }),
    { numRuns: 1000 },
  )
})

test('the value of a leaked cookie is not shown, though its field is called no more than value', () => {
  const highlights = {
    value: ['Zq7<mark>Pangolin</mark>-session-1'],
    host_key: ['<mark>acme</mark>.example'],
  }
  const parsed = parseItem({ metadata: { uid: 'cookie/jar/1', type: 'cookie' }, highlights })
  expect(parsed).toMatchObject({
    ok: true,
    event: { highlights: { value: ['••••'], host_key: ['acme.example'] } },
  })
})

test.each([
  ['12', 12, '12'],
  ['9007199254740993', 0, undefined],
  ['-5', 0, undefined],
  ['1e3', 0, undefined],
  ['0x10', 0, undefined],
  ['a-uuid-7', 0, undefined],
  [1.5, 0, undefined],
])(
  'an identifier whose id is %j has the id %j, and that for a name where it has none',
  (id, read, name) => {
    const named = eventOf({ identifiers: [{ id, name: ' acme ' }] })
    expect(named.identifiers).toEqual([{ id: read, name: 'acme' }])
    expect(named.unread).toEqual(name === undefined ? ['identifiers'] : undefined)
    expect(eventOf({ identifiers: [{ id }] }).identifiers).toEqual(
      name === undefined ? [] : [{ id: read, name }],
    )
  },
)

test('highlights without a text are left out', () => {
  const event = eventOf({ highlights: { title: ['acme'], body: [], url: null } })
  expect(event.highlights).toEqual({ title: ['acme'] })
  expect(event.unread).toBeUndefined()
})
