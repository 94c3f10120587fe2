import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { checkRequest } from '../../../src/upstream/resources/check-request.ts'
import { UpstreamError } from '../../../src/upstream/error.ts'
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

function refusalOf(shape: z.ZodType, request: unknown): UpstreamError {
  try {
    checkRequest(shape, request)
  } catch (error) {
    if (error instanceof UpstreamError) return error
    throw error
  }
  throw new Error('it was let through')
}

/** Each mistake as `place: what is wrong`. */
function toldOf(shape: z.ZodType, request: unknown): string[] {
  return refusalOf(shape, request).details.map(({ loc, msg }) => `${loc}: ${msg}`)
}

const field = (shape: z.ZodType): z.ZodType => z.strictObject({ it: shape })

describe('a mistake', () => {
  const word = z.enum(['asc', 'descending'])
  const cases: [string, z.ZodType, unknown, string][] = [
    ['nothing', z.string(), undefined, 'missing'],
    ['no text', z.string(), 5, 'not a text'],
    ['no number', z.number(), 'five', 'not a number'],
    ['no whole number', z.int(), 1.5, 'not a whole number'],
    ['neither true nor false', z.boolean(), 'yes', 'not true or false'],
    ['no list', z.array(z.string()), 'a', 'not a list'],
    ['no object', z.strictObject({}), [], 'not an object'],
    ['no record', z.record(z.string(), z.unknown()), null, 'not an object'],
    ['too small', z.int().min(3), 2, 'too small; write 3 or more'],
    ['too large', z.number().max(10), 11, 'too large; write 10 or less'],
    ['an empty text', z.string().min(1), '', 'empty; write at least 1 character'],
    ['a short text', z.string().min(2), 'a', 'empty; write at least 2 characters'],
    ['a long text', z.string().max(1), 'ab', 'too long; at most 1 character'],
    ['an empty list', z.array(z.string()).min(1), [], 'empty; write at least 1 entry'],
    ['a long list', z.array(z.string()).max(2), ['a', 'b', 'c'], 'too long; at most 2 entries'],
    ['an odd form', z.string().regex(/^a/), 'b', 'not in a form that the service takes'],
    ['no choice', word, undefined, 'missing; write one of asc, descending'],
    ['nearly a word', word, 'desending', 'not known to the service; did you mean "descending"?'],
    ['no word at all', word, 'q', 'not known to the service; write one of asc, descending'],
    ['no text where words are', word, 7, 'not known to the service; write one of asc, descending'],
    ['a rule of ours', z.string().refine(() => false, 'say so'), 'a', 'say so'],
  ]
  test.each(cases)('that is %s is told in a sentence of its own', (_title, shape, given, said) => {
    expect(toldOf(field(shape), { it: given })).toEqual([`it: ${said}`])
  })

  test('that is a field too many is told by its name, of bounded length', () => {
    const given = { a: 1, [`long${'g'.repeat(200)}`]: 2 }
    expect(toldOf(z.strictObject({ within: z.strictObject({}) }), { within: given })).toEqual([
      `within: unknown: a, long${'g'.repeat(56)}`,
    ])
  })

  test('is one of all, each with its place, in one message', () => {
    const request = { identifier_ids: [1, 0, 'x'], clean_past_events: 'no' }
    const error = refusalOf(policyAssignment, request)
    expect(error).toMatchObject({ reason: 'invalid', status: undefined, serviceCode: undefined })
    expect(error.message).toBe(
      'not sent, the service would refuse it: identifier_ids.1: too small; write 1 or more; ' +
        'identifier_ids.2: not a number; clean_past_events: not true or false',
    )
  })
})

describe('"ad" and "ads"', () => {
  const asset = { name: 'x', type: 'domain', data: {} }

  test.each(['ad', 'ads'])('%s belongs to creation alone', (word) => {
    const given = { ...asset, search_types: ['leak', word] }
    expect(checkRequest(assetCreation, given)).toEqual(given)
    expect(toldOf(assetReplacement, given)).toEqual([
      `search_types.1: "${word}" may be given when an asset is created, not when it is replaced`,
    ])
  })
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
      fc.pre(!shape.safeParse(given).success)
      const { message, details } = refusalOf(shape, given)
      expect(details.length).toBeGreaterThan(0)
      expect(`${message} ${JSON.stringify(details)}`).not.toMatch(/§|987654321/)
    }),
  )
})
