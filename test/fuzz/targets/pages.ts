/** Answers of the service through each type of feed: an item is an event or kept aside, and none is lost. */
import { sortPage } from '../../../src/feeds/page.ts'
import { readAnswer } from '../../../src/upstream/session.ts'
import { UpstreamError } from '../../../src/upstream/error.ts'
import { wireSearchPage } from '../../../src/upstream/resources/page.ts'
import { aCredentialFeed, aCredentialSearch, aFeed, aLegacySearch } from '../../support/feeds.ts'
import { bytesOf } from '../engine/bytes.ts'
import { assertThat } from '../engine/target.ts'
import { damaged, jsonOf } from '../engine/wild-json.ts'

const item = {
  metadata: {
    uid: 'stealer_log/logs/1',
    type: 'stealer_log',
    severity: 'high',
    estimated_created_at: '2026-11-01T12:00:00.123456+00:00',
    matched_at: '2026-11-01T12:01:00',
    flare_url: 'https://app.example.com/#/uid',
  },
  tenant_metadata: {
    severity: { original: 'low', override: 'high' },
    tags: ['a', 'b'],
    notes: 'password: hunter2',
    ignored_at: null,
    remediated_at: null,
  },
  identifiers: [{ id: 1, name: 'example.com' }],
  highlights: { 'credentials.password': ['joe:<mark>hunter2</mark>'], text: ['https://a:b@c.d'] },
}
const legacy = {
  metadata: { uid: 'paste/x/1', type: 'paste' },
  header: { timestamp: '2026-11-01T12:00:00', risk: { score: 3 }, notes: 'x', tags: ['a'] },
  data: {},
}
const credential = {
  id: 17,
  identity_name: 'joe@example.com:hunter2',
  hash: 'hunter2',
  hash_type: 'unknown',
  domain: 'example.com',
  imported_at: '2026-11-01T12:00:00',
  auth_domains: ['a.example'],
  source: { id: 'combolists', name: 'x', breached_at: '2020-01-01', pii_tags: ['email'] },
}

const kinds = [
  { feed: aFeed({ detail: ['high'] }), sample: item },
  { feed: aCredentialFeed(), sample: credential },
  { feed: aCredentialSearch(), sample: credential },
  { feed: aLegacySearch(), sample: legacy },
]

export function fuzz(data: Uint8Array): void {
  const bytes = bytesOf(data)
  const { feed, sample } = bytes.pick(kinds)
  const isText = bytes.byte() % 3 === 0
  const page = isText
    ? jsonOf(bytes.text())
    : damaged({ items: [sample, sample], next: 'a' }, bytes)
  if (page === undefined) return
  const items = itemsOf(page)
  if (items === undefined) return
  const { events, malformed } = sortPage(items, {
    feed,
    startBoundMs: 0,
    readsBaseline: true,
    plan: () => ({ decisions: [], items: [] }),
    pairDigest: (parts) => parts.join('|'),
    sealSecret: (uid, secret) => `${uid}${secret}`,
  })
  assertThat(events.length + malformed.length === items.length, 'an item is lost', items)
  for (const { event } of events) checkEvent(event)
  for (const { problem } of malformed) {
    assertThat(/^[^\n]{3,300}$/u.test(problem), 'a problem that is no short line', problem)
  }
}

function itemsOf(page: unknown): readonly unknown[] | undefined {
  try {
    const answer = { status: 200, headers: {}, body: JSON.stringify(page), sentAtMs: 0 }
    return readAnswer(answer, wireSearchPage).items
  } catch (error) {
    if (error instanceof UpstreamError && error.reason === 'contract') return undefined
    throw error
  }
}

const limits = { text: 4001, list: 101 }

function checkEvent(event: Record<string, unknown> | object): void {
  for (const [field, value] of Object.entries(event) as [string, unknown][]) {
    if (field.endsWith('Ms')) checkTime(field, value)
    checkSize(field, value)
  }
  const { uid } = event as { uid: string }
  assertThat(uid !== '' && uid.isWellFormed() && !/\p{Cc}/u.test(uid), 'a uid that is no key', uid)
}

function checkTime(field: string, value: unknown): void {
  const isTime = value === null || (typeof value === 'number' && Math.abs(value) <= 8.64e15)
  assertThat(isTime, `${field} is no time`, value)
}

function checkSize(field: string, value: unknown): void {
  if (typeof value === 'string') {
    assertThat(value.length <= limits.text, `${field} is unbounded`, value.length)
  }
  if (Array.isArray(value)) {
    assertThat(value.length <= limits.list, `${field} is unbounded`, value.length)
  }
  if (typeof value !== 'object' || value === null) return
  for (const inner of Object.values(value)) checkSize(field, inner)
}
