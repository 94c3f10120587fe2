import { expect, test } from 'vitest'
import { parseRef } from '../../../src/store/account-ledger.ts'

test.each([
  ['i:251697b2:3:soc', { kind: 'item', recordId: '251697b2', index: 3, sink: 'soc' }],
  ['b:850fefc0:soc', { kind: 'batch', batchId: '850fefc0', sink: 'soc' }],
  ['c:soc', { kind: 'collection', sink: 'soc' }],
  ['c:de42ab95:soc', { kind: 'group', id: 'de42ab95', sink: 'soc' }],
])('%s names a piece of work', (text, ref) => {
  expect(parseRef(text)).toEqual(ref)
})

test.each(['', 'i', 'i:a:soc', 'i:a:1:soc:b', 'b:soc', 'b:a:soc:b', 'c', 'c:a:b:soc', 'x:a:soc'])(
  '"%s" names none',
  (text) => {
    expect(() => parseRef(text)).toThrow(`not a ledger reference: ${text}`)
  },
)
