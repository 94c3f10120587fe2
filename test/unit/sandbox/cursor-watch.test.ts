import { expect, test } from 'vitest'
import { createCursorWatch } from '../../../src/sandbox/api/cursor.ts'

const tail = ['group', { size: 10 }]
const sweep = ['group', { size: 10, until: 'noon' }]

test('a cursor that comes back with other parameters is counted', () => {
  const cursors = createCursorWatch()
  cursors.issue('place', tail)
  expect(cursors.accept('place', tail)).toBe('taken')
  expect(cursors.changedScans()).toBe(0)
  expect(cursors.accept('place', sweep)).toBe('taken')
  expect(cursors.changedScans()).toBe(1)
})

test('an expired cursor stays so for its walk when another walk is handed the same place', () => {
  const cursors = createCursorWatch()
  cursors.issue('place', tail)
  cursors.expireAll()
  cursors.issue('place', sweep)
  expect(cursors.accept('place', sweep)).toBe('taken')
  expect(cursors.accept('place', tail)).toBe('refused')
  expect(cursors.changedScans()).toBe(0)
  cursors.issue('place', tail)
  expect(cursors.accept('place', tail)).toBe('taken')
})

test('an expired cursor is refused whoever brings it, after a restart too', () => {
  const cursors = createCursorWatch()
  cursors.issue('place', tail)
  cursors.expireAll()
  expect(cursors.accept('place', sweep)).toBe('refused')
  const again = createCursorWatch()
  again.restore(cursors.snapshot())
  expect(again.accept('place', sweep)).toBe('refused')
  again.issue('place', sweep)
  expect(again.accept('place', tail)).toBe('refused')
})
