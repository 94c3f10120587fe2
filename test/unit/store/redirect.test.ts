import { expect, test } from 'vitest'
import { worstFirst, selectEndedItems } from '../../../src/store/pending-items.ts'
import type { Item, LedgerRecord } from '../../../src/store/records.ts'

const sinceMs = 1_000

test.each<[string, Partial<Item>, boolean]>([
  ['was delivered since', { state: 'delivered', endedAtMs: sinceMs }, true],
  ['was delivered before', { state: 'delivered', endedAtMs: sinceMs - 1 }, false],
  ['went to a fallback', { state: 'diverted', rule: 'fallback to lake' }, true],
  [
    'went to a fallback before',
    { state: 'diverted', rule: 'fallback to lake', endedAtMs: 1 },
    false,
  ],
  ['was moved by somebody', { state: 'diverted', rule: 'ann' }, false],
  ['was moved, nobody knows by whom', { state: 'diverted' }, false],
  ['died', { state: 'dead' }, false],
  ['was suppressed', { state: 'suppressed', rule: 'fallback to lake' }, false],
  ['waits', { state: 'queued', endedAtMs: undefined }, false],
  ['belongs to another sink', { state: 'delivered', sink: 'lake' }, false],
])('an item that %s can be sent again by its sink: %j is %s', (_what, given, isEnded) => {
  const item = { sink: 'soc', index: 2, endedAtMs: sinceMs + 1, ...given } as Item
  const record = { recordId: 'ab', items: [item] } as unknown as LedgerRecord
  expect(selectEndedItems(record, 'soc', sinceMs)).toEqual(
    isEnded ? [{ ref: 'i:ab:2:soc', record, item }] : [],
  )
})

test('what is moved arrives with the worst first', () => {
  const words = ['low', 'critical', 'info', 'no word of the service', 'high']
  const items = words.map((severity) => ({ ref: '', record: { uid: '' }, item: { severity } }))
  expect(items.toSorted(worstFirst).map(({ item }) => item.severity)).toEqual([
    'critical',
    'no word of the service',
    'high',
    'low',
    'info',
  ])
})
