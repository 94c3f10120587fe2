import { expect, test } from 'vitest'
import { discardAct, moveAct, resendAct } from '../../../src/delivery/item-acts.ts'
import { stateOf } from '../../../src/store/item-states.ts'
import type { LedgerItem } from '../../../src/store/items.ts'
import { worstFirst } from '../../../src/store/pending-items.ts'
import type { Item } from '../../../src/store/records.ts'

const acts = {
  resend: resendAct([], 'ann'),
  move: moveAct([], 'lake', 'ann'),
  discard: discardAct('ann'),
}

test.each<[Partial<Item>, (keyof typeof acts)[]]>([
  [{ state: 'queued' }, ['move', 'discard']],
  [{ state: 'held' }, ['move', 'discard']],
  [{ state: 'group' }, ['move', 'discard']],
  [{ state: 'digest' }, ['move', 'discard']],
  [{ state: 'retrying' }, ['move', 'discard']],
  [{ state: 'queued', sink: 'lake' }, ['discard']],
  [{ state: 'batch' }, []],
  [{ state: 'sending' }, []],
  [{ state: 'delivered' }, ['resend']],
  [{ state: 'dead' }, ['resend', 'discard']],
  [{ state: 'discarded' }, ['resend']],
  [{ state: 'diverted', rule: 'fallback to lake' }, ['resend']],
  [{ state: 'diverted', rule: 'to lake, by ann' }, []],
  [{ state: 'diverted' }, []],
  [{ state: 'suppressed', rule: 'fallback to lake' }, []],
])('what an operator can do with an item that is %j: %j', (given, expected) => {
  const item = { sink: 'soc', ...given } as Item
  const found = { state: stateOf(item), item } as LedgerItem
  expect(Object.keys(acts).filter((act) => acts[act as keyof typeof acts].takes(found))).toEqual(
    expected,
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
