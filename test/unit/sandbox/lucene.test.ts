import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  LuceneError,
  luceneMatcher,
  parseLucene,
  type SearchDocument,
} from '../../../src/sandbox/api/lucene.ts'
import { leastCpuMs } from '../../support/cpu-time.ts'

const post: SearchDocument = {
  text: 'Fresh logs for vpn.example.com, cookies alive\nanna77@example.com\nПродаю доступ к Größe & Söhne\n出售 example.com 的数据库',
  fields: {
    type: ['chat_message'],
    'metadata.severity': ['high'],
    'data.price': ['150', '7.5'],
    'actor.name': ['fin7_old', 'Zé Povinho'],
    balance: ['-5'],
    posted_at: ['2026-03-01T12:00:00'],
    empty: [],
  },
}

function finds(query: string, document = post): boolean {
  return luceneMatcher(parseLucene(query))(document)
}

describe('what is found', () => {
  test.each([
    ['fresh', true],
    ['FRESH', true],
    ['fre', false],
    ['vpn.example.com', true],
    ['example', true],
    ['größe', true],
    ['доступ', true],
    ['数据库', true],
    ['数库', false],
    ['"logs for"', true],
    ['"for logs"', false],
    ['"fresh for"', false],
    ['"fresh for"~1', true],
    ['"LOGS, FOR"', true],
    ['coo*', true],
    ['c?okies', true],
    ['c?kies', false],
    ['*@example.com', true],
    ['a*7', true],
    ['a\\*7', false],
    ['cokies~', true],
    ['coqqqs~', false],
    ['cokeis~1', false],
    ['fresh~0.5', true],
    ['missing^4', false],
    ['fresh^2.5', true],
    ['(fresh missing)^2', true],
    ['*', true],
    ['*:*', true],
    ['&', true],
    ['anna77\\@example.com', true],
    ['type:chat_message', true],
    ['type:chat', false],
    ['TYPE:CHAT*', true],
    ['metadata.severity:(low high)', true],
    ['metadata.severity:(+low +high)', false],
    ['severity:high', false],
    ['actor.name:"zé povinho"', true],
    ['actor.name:Z?\\ P*', true],
    ['type:*', true],
    ['empty:*', false],
    ['_exists_:type', true],
    ['_exists_:missing', false],
    ['data.price:[100 TO 200]', true],
    ['data.price:{150 TO 200]', false],
    ['data.price:[7 TO 8}', true],
    ['data.price:>=150', true],
    ['data.price:>150', false],
    ['data.price:<8', true],
    ['balance:-5', true],
    ['balance:<0', true],
    ['posted_at:[2026-03-01 TO 2026-03-01]', true],
    ['posted_at:{2026-03-01 TO *]', false],
    ['posted_at:[* TO 2026-03-01}', false],
    ['posted_at:["2026-03-01T12:00:00Z" TO *]', true],
    ['actor.name:[a TO g]', true],
    ['constructor:*', false],
    ['__proto__:*', false],
  ])('%s: %s', (query, expected) => {
    expect(finds(query)).toBe(expected)
  })
})

describe('how clauses bind', () => {
  const holding = (text: string): SearchDocument => ({ text, fields: {} })
  test.each([
    ['a b', 'a', true],
    ['a b', 'c', false],
    ['+a b', 'b', false],
    ['+a b', 'a', true],
    ['a -b', 'a', true],
    ['a -b', 'a b', false],
    ['a - b', 'a b', false],
    ['a NOT b', 'a b', false],
    ['a && !b', 'a', true],
    ['a || b', 'b', true],
    ['-a', 'b', true],
    ['-a', 'a', false],
    ['a AND b', 'a', false],
    ['a AND b', 'a b', true],
    ['+(a b) -(c d)', 'a', true],
    ['+(a b) -(c d)', 'a d', false],
    ['a OR b AND c', 'a', false],
    ['a OR b AND c', 'b c', true],
    ['a OR (b AND c)', 'a', true],
    ['a OR NOT b', 'c', false],
    ['a OR (NOT b)', 'c', true],
    ['and or', 'or', true],
    ['ANDROID', 'android', true],
  ])('%s on a document of %s: %s', (query, text, expected) => {
    expect(finds(query, holding(text))).toBe(expected)
  })
})

test.each([
  ['', 'the query ends where a term should follow'],
  ['a AND', 'the query ends where a term should follow'],
  ['AND a', 'a term should stand before AND at character 1'],
  ['a OR AND b', 'a term should stand before AND at character 6'],
  ['a:b:c', 'a term should stand before : at character 4'],
  ['()', 'a term should stand before ) at character 2'],
  ['a)', 'a term should stand before ) at character 2'],
  ['x (a b', 'a parenthesis at character 3 without its end'],
  ['a "b', 'a quotation mark without its end at character 3'],
  ['f:[a b]', 'a range that is not of the form [from TO to] at character 3'],
  ['/a.*/', 'a regular expression, which is not supported (in a term, write \\/) at character 1'],
  ['a\\', 'a backslash with nothing to escape at character 2'],
  ['a }', 'an unexpected } (to mean the sign itself, write \\}) at character 3'],
  ['a^', 'a boost without its number at character 2'],
  ['('.repeat(101), 'more than 100 parentheses within each other at character 101'],
])('%s is refused: %s', (query, message) => {
  expect(() => parseLucene(query)).toThrow(new LuceneError(message))
})

describe('for every query', () => {
  type Tree = { word: string } | { not: Tree } | { and: [Tree, Tree] } | { or: [Tree, Tree] }
  const letters = ['a', 'b', 'c', 'd']
  const { tree } = fc.letrec<{ tree: Tree }>((tie) => ({
    tree: fc.oneof(
      { maxDepth: 5, withCrossShrink: true },
      fc.record({ word: fc.constantFrom(...letters) }),
      fc.record({ not: tie('tree') }),
      fc.record({ and: fc.tuple(tie('tree'), tie('tree')) }),
      fc.record({ or: fc.tuple(tie('tree'), tie('tree')) }),
    ),
  }))
  const holding = fc
    .subarray(letters)
    .map((held): SearchDocument => ({ text: held.join(' '), fields: {} }))

  function written(node: Tree): string {
    if ('word' in node) return node.word
    if ('not' in node) return `(NOT ${written(node.not)})`
    const [left, right] = 'and' in node ? node.and : node.or
    return `(${written(left)} ${'and' in node ? 'AND' : 'OR'} ${written(right)})`
  }

  function isTrue(node: Tree, held: string): boolean {
    if ('word' in node) return held.includes(node.word)
    if ('not' in node) return !isTrue(node.not, held)
    if ('and' in node) return node.and.every((part) => isTrue(part, held))
    return node.or.some((part) => isTrue(part, held))
  }

  function attempt(act: () => unknown): unknown {
    try {
      act()
      return null
    } catch (error) {
      return error
    }
  }

  test('with parentheses the operators mean what logic means by them', () => {
    fc.assert(
      fc.property(tree, holding, (node, document) => {
        expect(finds(written(node), document)).toBe(isTrue(node, document.text))
      }),
    )
  })

  test('double negation and De Morgan hold', () => {
    fc.assert(
      fc.property(tree, tree, holding, (one, other, document) => {
        const [a, b] = [written(one), written(other)]
        expect(finds(`NOT (NOT ${a})`, document)).toBe(finds(a, document))
        expect(finds(`NOT (${a} OR ${b})`, document)).toBe(finds(`NOT ${a} AND NOT ${b}`, document))
        expect(finds(`NOT (${a} AND ${b})`, document)).toBe(
          finds(`(NOT ${a}) OR (NOT ${b})`, document),
        )
      }),
    )
  })

  test('a wildcard stands for what a regular expression would find there', () => {
    const pattern = fc.string({ unit: fc.constantFrom('a', 'b', '*', '?'), minLength: 1 })
    const text = fc.string({ unit: fc.constantFrom('a', 'b'), minLength: 1 })
    fc.assert(
      fc.property(pattern, text, (asked, word) => {
        const shape = asked.replaceAll('*', '.*').replaceAll('?', '.')
        const isFound = finds(asked, { text: word, fields: {} })
        expect(isFound).toBe(new RegExp(`^${shape}$`).test(word))
      }),
      { numRuns: 1000 },
    )
  })

  test('nothing but LuceneError is thrown, whatever is asked of whatever text', () => {
    const signs = fc.string({
      unit: fc.constantFrom(...Array.from('ab1 +-!():^[]"{}~*?\\/&|<>='), ' TO ', ' AND '),
    })
    fc.assert(
      fc.property(fc.oneof(signs, fc.string({ unit: 'binary' })), fc.string(), (query, text) => {
        const thrown = attempt(() =>
          luceneMatcher(parseLucene(query))({ text, fields: { a: [text] } }),
        )
        expect(thrown === null || thrown instanceof LuceneError).toBe(true)
      }),
      { numRuns: 2000 },
    )
  })

  test('a sigma is one letter, wherever it stands', () => {
    for (const query of ['ΟΔΟΣ', 'οδος', 'οδοσ', 'ΟΔΟΣ*', '*ΔΟΣ', 'Ο?ΟΣ', '"ΟΔΟΣ"']) {
      for (const text of ['ΟΔΟΣ', 'ΟΔΟΣ, ΟΔΟΣ', 'ΟΔΟΣ.ΑΒ', 'οδος'])
        expect([query, text, finds(query, { text, fields: {} })]).toEqual([query, text, true])
    }
  })

  test('a text with every sign escaped finds itself', () => {
    const text = fc
      .string({ unit: 'grapheme', minLength: 1 })
      .filter((drawn) => drawn.trim() !== '')
    fc.assert(
      fc.property(text, (drawn) => {
        const escaped = drawn.trim().replaceAll(/[\s+\-!():^[\]"{}~*?\\/&|<>=]/g, '\\$&')
        fc.pre(!['AND', 'OR', 'NOT'].includes(escaped))
        expect(finds(escaped, { text: drawn, fields: {} })).toBe(true)
      }),
    )
  })

  test.each([
    ['*a', 5000],
    ['a~ ', 3000],
    ['"', 9999],
    ['(a ', 99],
  ])(
    'a query of many %j on a long text takes no longer than its length asks for',
    (piece, most) => {
      const spentMs = (part: number): number => {
        const document = { text: 'ab '.repeat(3000 * part), fields: {} }
        const query = piece.repeat(most * part)
        return leastCpuMs(() => expect(() => finds(query, document)).not.toThrow(RangeError))
      }
      // both grow fourfold: each word of one may be looked for in all of the other
      expect(spentMs(1)).toBeLessThan(3 * 16 * Math.max(spentMs(1 / 4), 5))
    },
  )
})
