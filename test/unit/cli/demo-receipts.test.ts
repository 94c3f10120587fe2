import { describe, expect, test } from 'vitest'
import type { Evidence, Receipt } from '../../../src/cli/demo/evidence.ts'
import { compareMessages } from '../../../src/cli/demo/account.ts'
import type { Item, LedgerRecord } from '../../../src/store/records.ts'

const beganMs = 1_000

function anItem(id: string, sealedIn?: string): Item {
  const delivered = { state: 'delivered', endedAtMs: beganMs + 1 } as const
  return { id, messageId: sealedIn, sink: 'slack', ...delivered } as Partial<Item> as Item
}

function aRecord(uid: string, ...items: Item[]): LedgerRecord {
  return { uid, items } as Partial<LedgerRecord> as LedgerRecord
}

/** `one` and `two` went in a message together, `three` by itself. */
const records = [
  aRecord('one', anItem('e1', 'g')),
  aRecord('two', anItem('e2', 'g')),
  aRecord('three', anItem('e3')),
]

const group: Receipt = {
  sink: 'slack',
  id: 'bg',
  form: 'group',
  events: 2,
  items: [],
  uids: ['one'],
  isComplete: false,
  mayBeRepeat: false,
}
const single: Receipt = {
  ...group,
  id: 'e3',
  form: 'single',
  events: 1,
  items: ['e3'],
  uids: ['three'],
}

const nameless: Receipt = { ...single, id: '', items: [], uids: [] }

function differencesIn(received: Receipt[], known: LedgerRecord[] = records): string[] {
  const evidence = { records: known, received, baseline: { atMs: beganMs } } as unknown
  return compareMessages(evidence as Evidence, 'slack')
    .filter(({ count }) => count !== 0)
    .map(({ count, what }) => `${count} ${what}`)
}

test('a message about several events stands for what the ledger has in it', () => {
  expect(differencesIn([group, single])).toEqual([])
})

test('a message that lists all its events agrees with the ledger', () => {
  const whole = { ...group, uids: ['two', 'one'], isComplete: true }
  expect(differencesIn([whole, single])).toEqual([])
})

test('a repeat that says so is no difference', () => {
  expect(differencesIn([group, { ...group, mayBeRepeat: true }, single])).toEqual([])
})

test('a digest may list what its reader was sent before, and an empty one stands for nothing', () => {
  const sent = { ...group, form: 'digest' as const, uids: ['one', 'three'] }
  const empty = { ...sent, id: 'bempty', events: 0, uids: [] }
  expect(differencesIn([sent, single, empty])).toEqual([])
})

describe('a difference is', () => {
  const doubled = 'items that arrived twice unannounced'
  const number = 'items by which messages that arrived and the ledger differ'

  test.each<[string, Receipt[], string[]]>([
    ['a message of several that never arrived', [single], ['2 delivered items that never arrived']],
    ['a message that stands for fewer events', [{ ...group, events: 1 }, single], [`1 ${number}`]],
    ['a message that stands for more events', [{ ...group, events: 3 }, single], [`1 ${number}`]],
    [
      'a message that the ledger never made',
      [group, single, { ...group, id: 'bx', uids: [] }],
      [`2 ${number}`],
    ],
    [
      'each message that names nothing of the ledger',
      [group, single, nameless, { ...nameless }],
      [`2 ${number}`],
    ],
    ['a message that came twice', [group, group, single], [`2 ${doubled}`]],
    [
      'an event that came in a message of several and by itself',
      [group, single, { ...single, id: 'e1', items: ['e1'], uids: ['one'] }],
      [`1 ${doubled}`],
    ],
    [
      'an event shown by a message that it does not belong to',
      [{ ...group, uids: ['one', 'three'] }, single],
      ['1 events shown by a message that the ledger has not in it'],
    ],
    [
      'an event that no digest could know',
      [{ ...group, form: 'digest', uids: ['four'] }, single],
      ['1 events shown by a message that the ledger has not in it'],
    ],
    [
      'an event missing in a list that has all',
      [{ ...group, isComplete: true }, single],
      ['1 events left out of a message that shows all'],
    ],
  ])('%s', (_what, received, differences) => {
    expect(differencesIn(received)).toEqual(differences)
  })

  test('an event that the ledger has in a message too few', () => {
    const three = [...records.slice(0, 2), aRecord('three', anItem('e3', 'g'))]
    expect(differencesIn([group], three)).toEqual([`1 ${number}`])
  })
})
