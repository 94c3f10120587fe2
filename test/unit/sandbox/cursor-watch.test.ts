import { expect, test } from 'vitest'
import { createCursorWatch } from '../../../src/sandbox/api/cursor.ts'

const tail = ['group', { size: 10 }]
const sweep = ['group', { size: 10, until: 'noon' }]

test('a cursor that comes back with other parameters is counted', () => {
  const cursors = createCursorWatch()
  cursors.handOut('place', tail)
  expect(cursors.take('place', tail)).toBe('taken')
  expect(cursors.changedWalks()).toBe(0)
  expect(cursors.take('place', sweep)).toBe('taken')
  expect(cursors.changedWalks()).toBe(1)
})

test('an expired cursor stays so for its walk when another walk is handed the same place', () => {
  const cursors = createCursorWatch()
  cursors.handOut('place', tail)
  cursors.expireAll()
  cursors.handOut('place', sweep)
  expect(cursors.take('place', sweep)).toBe('taken')
  expect(cursors.take('place', tail)).toBe('refused')
  expect(cursors.changedWalks()).toBe(0)
  cursors.handOut('place', tail)
  expect(cursors.take('place', tail)).toBe('taken')
})

test('an expired cursor is refused whoever brings it, after a restart too', () => {
  const cursors = createCursorWatch()
  cursors.handOut('place', tail)
  cursors.expireAll()
  expect(cursors.take('place', sweep)).toBe('refused')
  const again = createCursorWatch()
  again.restore(cursors.snapshot())
  expect(again.take('place', sweep)).toBe('refused')
  again.handOut('place', sweep)
  expect(again.take('place', tail)).toBe('refused')
})
