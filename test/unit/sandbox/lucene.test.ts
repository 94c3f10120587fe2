import { expect, test } from 'vitest'
import { parseLucene, toDocument } from '../../../src/sandbox/api/query.ts'
import { Refusal } from '../../../src/sandbox/api/routes.ts'
import { createGenerator } from '../../../src/sandbox/history/generator.ts'

const group = { id: 1, name: 'one', tenantId: 1, identifiers: [{ id: 5, name: 'example.com' }] }
const document = toDocument(
  createGenerator(1).make(group, 0, {
    type: 'paste',
    uid: 'paste/site/1',
    highlights: { content: ['a <mark>Fresh</mark> log of acme.test'] },
    data: { content: 'cookies alive', actor: { name: 'n0va' }, port: 22 },
    tags: ['private'],
  }),
)

test.each([
  ['fresh', true],
  ['fres', false],
  ['fres*', true],
  ['*', true],
  ['stale fresh', true],
  ['stale OR fresh', true],
  ['stale AND fresh', false],
  ['fresh AND NOT stale', true],
  ['fresh AND -cookies', false],
  ['NOT stale', true],
  ['+fresh', true],
  ['"fresh log"', true],
  ['"log fresh"', false],
  ['(stale OR fresh) AND cookies', true],
  ['stale OR fresh AND stale', false],
  ['type:paste', true],
  ['type:leak', false],
  ['actor.name:n0va', true],
  ['name:"n0va"', true],
  ['port:22', true],
  ['content:n0va', false],
  ['acme.test', true],
  ['private', false],
])('%s: %s', (query, isFound) => {
  expect(parseLucene(query)(document)).toBe(isFound)
})

test.each(['', ' ', '(a', 'a)', '()', 'a AND', 'AND a', 'a OR OR b', '"a', 'NOT', '('.repeat(200)])(
  '%j is refused',
  (query) => {
    expect(() => parseLucene(query)).toThrow(Refusal)
  },
)
