/** What is written is checked; what is read may hold words and fields of later versions. */
import { describe, expect, test } from 'vitest'
import type { z } from 'zod'
import {
  assetCreation,
  assetReplacement,
  wireAssetAnswer,
} from '../../../src/upstream/resources/assets.ts'
import {
  credentialSearchBody,
  wireCredential,
} from '../../../src/upstream/resources/credentials.ts'
import {
  assetTypes,
  eventSeverities,
  expandFields,
  orders,
} from '../../../src/upstream/resources/enumerations.ts'
import {
  expansion,
  globalSearchBody,
  groupSearchBody,
  wireExpandedCookie,
  wireExpandedCredential,
  wireFullEvent,
  wireSearchItem,
} from '../../../src/upstream/resources/events.ts'
import {
  legacySearchParameters,
  wireLegacyPage,
} from '../../../src/upstream/resources/legacy-search.ts'
import {
  wireSearchPage,
  wireTokenGrant,
  wireTokenTest,
} from '../../../src/upstream/resources/page.ts'
import {
  policyAssignment,
  policyCreation,
  wirePolicy,
  wirePolicyAssignment,
} from '../../../src/upstream/resources/policies.ts'
import { wireReportAnswer, wireReportRequest } from '../../../src/upstream/resources/reports.ts'
import { tenantCreation, wireTenant } from '../../../src/upstream/resources/tenants.ts'

const later = 'a_word_of_tomorrow'
const more = { a_field_of_tomorrow: { deep: [1] } }
const policy = { uuid: 'u', name: 'x', policy_type: later, value: { any: 1 }, ...more }
const severity = { original: later, override: later, ...more }

const readings: Record<string, [z.ZodType, unknown]> = {
  'a page': [wireSearchPage, { items: [later, 1, null], next: null, ...more }],
  'a legacy page': [wireLegacyPage, { items: [later], search_after: 'c', ...more }],
  'a search item': [
    wireSearchItem,
    {
      metadata: { uid: 'x', type: later, severity: later, ...more },
      tenant_metadata: { severity, tags: [later], ...more },
      identifiers: [{ id: 2 ** 40, name: 'x', ...more }],
      ...more,
    },
  ],
  'a full event': [wireFullEvent, { event_type: later, metadata: more, data: more, ...more }],
  'an expanded credential': [wireExpandedCredential, { url: null, ...more }],
  'an expanded cookie': [wireExpandedCookie, { host_key: null, ...more }],
  'a credential': [
    wireCredential,
    { id: 1, hash_type: later, source: { id: 5, name: null, ...more }, ...more },
  ],
  'an asset': [
    wireAssetAnswer,
    {
      asset: { id: 1, name: '', type: later, search_types: [later], source: later, ...more },
      ...more,
    },
  ],
  'a policy': [wirePolicy, policy],
  'an assignment': [wirePolicyAssignment, { matching_policy: policy, ...more }],
  'a report': [
    wireReportAnswer,
    { report: { id: 1, format_type: later, intel_type: later, ...more }, ...more },
  ],
  'the state of a report': [wireReportRequest, { status: later, report: null, ...more }],
  'a tenant': [
    wireTenant,
    { id: 1, name: 'x', type: later, industry: later, permissions: [later], ...more },
  ],
  'a token': [wireTokenGrant, { token: 't', ...more }],
  'a token’s test': [wireTokenTest, { scopes: [later], tenant_id: null, ...more }],
}

test.each(Object.entries(readings))(
  '%s is read with all that is new in it',
  (_name, [shape, given]) => {
    expect(shape.parse(given)).toEqual(given)
  },
)

test('an id beyond 2^53 is none, since two of them would read as one', () => {
  expect(wireCredential.safeParse({ id: 2 ** 53 }).success).toBe(false)
  expect(wireCredential.safeParse({ id: 2 ** 53 - 1 }).success).toBe(true)
})

test.each([
  [{ items: null }, []],
  [{ items: { metadata: { uid: 'x' } } }, [{ metadata: { uid: 'x' } }]],
  [{ items: [1], next: 7 }, [1]],
])('a page of %j is read', (given, items) => {
  expect(wireSearchPage.parse(given)).toMatchObject({
    items,
    ...('next' in given && { next: '7' }),
  })
})

test.each([
  {},
  { results: [] },
  { items: 'none' },
  { items: { 0: 'not a list' } },
  { items: [], next: { page: 2 } },
  { items: [], next: 2 ** 60 },
])('a page of %j is an error of the service, so that nobody takes it for the end', (given) => {
  expect(wireSearchPage.safeParse(given).success).toBe(false)
})

type Writing = (word: string) => unknown

const search = { query: { type: 'domain', fqdn: 'x' }, size: 1, order: 'asc' }
const creation = { name: 'x', type: 'domain', search_types: [], data: {} }
const writings: [string, readonly string[], z.ZodType, Writing][] = [
  ['an asset’s type', assetTypes, assetCreation, (type) => ({ ...creation, type })],
  ['a replaced asset’s type', assetTypes, assetReplacement, (type) => ({ ...creation, type })],
  [
    'a severity',
    eventSeverities,
    globalSearchBody,
    (word) => ({ ...search, filters: { severity: [word] } }),
  ],
  [
    'a least severity',
    eventSeverities,
    groupSearchBody,
    (word) => ({ ...search, filters: { severity: word } }),
  ],
  ['an order', orders, globalSearchBody, (order) => ({ ...search, order })],
  ['an order of credentials', orders, credentialSearchBody, (order) => ({ ...search, order })],
  ['an expanded field', expandFields, expansion, (field) => ({ uid: 'x', size: 1, field })],
  ['a legacy order', orders, legacySearchParameters, (order) => ({ order })],
]

describe('what is written', () => {
  test.each(writings)('is %s of its list and no other', (_name, words, shape, requestWith) => {
    for (const word of words) expect(shape.safeParse(requestWith(word)).success).toBe(true)
    for (const word of [later, '', words[0]!.toUpperCase() + 'x', 5 as never]) {
      expect(shape.safeParse(requestWith(word)).success).toBe(false)
    }
  })

  test.each([
    ['a global search', globalSearchBody, search],
    ['a group’s search', groupSearchBody, search],
    ['a credential search', credentialSearchBody, search],
    ['an expansion', expansion, { uid: 'x', field: 'cookies', size: 1 }],
    ['a legacy search', legacySearchParameters, {}],
    ['a new asset', assetCreation, creation],
    ['a new policy', policyCreation, { name: 'x', type: 'LUCENE_QUERY', value: { query: 'x' } }],
    ['an assignment', policyAssignment, { identifier_ids: [1] }],
    ['a new tenant', tenantCreation, { name: 'x' }],
  ])('as %s has no field that nobody knows', (_name, shape: z.ZodType, given) => {
    expect(shape.parse(given)).toEqual(given)
    expect(shape.safeParse({ ...given, ...more }).success).toBe(false)
  })

  test('may be a type of events that no list has, and fields of a replaced asset', () => {
    const filters = { type: [later] }
    expect(globalSearchBody.parse({ ...search, filters })).toEqual({ ...search, filters })
    expect(assetReplacement.parse({ ...creation, ...more })).toEqual({ ...creation, ...more })
  })
})
