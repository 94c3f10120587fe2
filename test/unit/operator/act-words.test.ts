import { expect, test } from 'vitest'
import { actWords } from '../../../src/operator/acts/act-words.ts'
import { acts } from '../../../src/page/tables.ts'

test('every act of the page and of commands is told in words, with what it touches', () => {
  const ofCommands = [
    '/items/move',
    '/silences/:id',
    '/feeds/:name/rewind',
    '/accounts/:name/discard',
  ]
  for (const path of [...acts.map((row) => row.path), ...ofCommands]) {
    const said = actWords(path.replaceAll(/:\w+/g, 'x7'), 3)
    expect(said).toMatch(/^[a-z][^/]+$/)
    expect([path, said.includes('x7')]).toEqual([path, path.includes(':')])
    expect([path, said.includes('3 items')]).toEqual([path, path.startsWith('/items')])
  }
})

test.each([
  ['/silences/sfe79a48c/expire', 0, 'end silence sfe79a48c'],
  ['/items/resend', 1, 'send 1 item again'],
  ['/feeds/brand/pause', 0, 'pause feed brand'],
  ['/of/tomorrow', 0, '/of/tomorrow'],
])('%s is %s', (act, items, words) => {
  expect(actWords(act, items)).toBe(words)
})
