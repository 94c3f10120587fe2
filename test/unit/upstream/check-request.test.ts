import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { z } from 'zod'
import { checkPart } from '../../../src/upstream/resources/operation.ts'
import { assetCreation, assetReplacement } from '../../../src/upstream/resources/assets.ts'
import { credentialSearchBody } from '../../../src/upstream/resources/credentials.ts'
import {
  expansion,
  globalSearchBody,
  groupSearchBody,
} from '../../../src/upstream/resources/events.ts'
import { legacySearchParameters } from '../../../src/upstream/resources/legacy-search.ts'
import { policyAssignment, policyCreation } from '../../../src/upstream/resources/policies.ts'
import { tenantCreation } from '../../../src/upstream/resources/tenants.ts'

test('every mistake is told with its place, in the words of zod', () => {
  const given = { identifier_ids: [1, 0, 'x'], clean_past_events: 'no' }
  const told = checkPart(policyAssignment, given)
  const places = 'details' in told ? told.details.map(({ loc }) => loc) : []
  expect(places).toEqual(['identifier_ids.1', 'identifier_ids.2', 'clean_past_events'])
})

const shapes: [string, z.ZodType][] = [
  ['global search', globalSearchBody],
  ['group search', groupSearchBody],
  ['expansion', expansion],
  ['credential search', credentialSearchBody],
  ['legacy search', legacySearchParameters],
  ['asset creation', assetCreation],
  ['asset replacement', assetReplacement],
  ['policy creation', policyCreation],
  ['policy assignment', policyAssignment],
  ['tenant creation', tenantCreation],
]

const known = (
  'query type fqdn secret password username size order from filters severity tags name data ' +
  'search_types risks value keywords types time uid field include identifier_ids industry'
).split(' ')
/** Marked as a value, so that no field and no word of the service looks like it. */
const secret = fc.stringMatching(/^[a-z0-9]{1,12}$/).map((text) => `§${text}§`)
const leaf = fc.oneof(
  secret,
  fc.constantFrom('secret', 'domain', 'credentials', 'INCLUDED_KEYWORDS', 'LUCENE_QUERY'),
  fc.constantFrom(null, true, 0, 987_654_321),
)
const { request } = fc.letrec((tie) => ({
  value: fc.oneof({ maxDepth: 4 }, leaf, fc.array(tie('value'), { maxLength: 3 }), tie('request')),
  request: fc.dictionary(fc.constantFrom(...known), tie('value'), { maxKeys: 6 }),
}))

test.each(shapes)('no value of a %s ever stands in its refusal', (_name, shape) => {
  fc.assert(
    fc.property(request, (given) => {
      const told = checkPart<unknown>(shape, given)
      fc.pre('details' in told)
      expect(JSON.stringify(told)).not.toMatch(/§|987654321/)
    }),
  )
})
