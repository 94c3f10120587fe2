import fc from 'fast-check'
import { expect, test } from 'vitest'
import { canonicalJson } from '../../../src/feeds/types/field-reader.ts'
import { describeShape } from '../../../src/feeds/malformed.ts'

test.each([
  ['no object', 'joe:Pangolin', 'text of 12'],
  ['a list', ['Pangolin'], 'list of 1'],
  ['nothing', null, null],
  ['a number', 12, 'number'],
  [
    'a credential',
    { id: 12, hash: { P: 'P-1' }, hash_type: null, source: { name: 'Combo', 'P-3': 1 } },
    {
      id: 'number',
      hash: { 'other keys': 1 },
      hash_type: null,
      source: { name: 'text of 5', 'other keys': 1 },
    },
  ],
  [
    'an event',
    { metadata: { uid: 7, type: {} }, highlights: { P: ['x'] }, P: 1 },
    {
      metadata: { uid: 'number', type: 'object of 0' },
      highlights: { 'other keys': 1 },
      'other keys': 1,
    },
  ],
])('of %s the known keys and the kinds of values are kept', (_what, raw, shape) => {
  expect(describeShape(raw)).toEqual(shape)
})

test('no value and no unknown key of a malformed item is kept', () => {
  const secret = fc.stringMatching(/^[a-zA-Z0-9!$%&*+?#~]{12,40}$/)
  const places = fc.constantFrom(
    (hash: string) => ({ identity_name: `joe ${hash}`, domain: hash, auth_domains: [hash] }),
    (hash: string) => ({ hash: [hash], source: { id: hash, name: `list with ${hash}` } }),
    (hash: string) => ({ [hash]: 1, metadata: { [hash]: { password: hash } } }),
    (hash: string) => ({ source: { source: { source: { [hash]: hash } } } }),
  )
  fc.assert(
    fc.property(secret, places, (hash, place) => {
      expect(canonicalJson(describeShape(place(hash)))).not.toContain(hash)
    }),
  )
})
