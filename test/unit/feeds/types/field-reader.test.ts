import { describe, expect, test } from 'vitest'
import {
  createFieldReader,
  firstPresent,
  readId,
  toJsonObject,
  type FieldReader,
} from '../../../../src/feeds/types/field-reader.ts'

/** What a read gives, and whether it noted that the field cannot be read. */
function readingOf<T>(read: (reader: FieldReader) => T): [value: T, isUnread: boolean] {
  const reader = createFieldReader()
  const value = read(reader)
  return [value, reader.unread().unread !== undefined]
}

test.each([
  ['a text', 'a text', false],
  ['', '', false],
  [7, '7', false],
  [-0.5, '-0.5', false],
  [Number.NaN, null, true],
  [null, null, false],
  [undefined, null, false],
  [true, null, true],
  [['only'], null, true],
  [{ name: 'its name' }, null, true],
])('the text of %j is %j; noted as unread: %j', (value, text, isUnread) => {
  expect(readingOf((reader) => reader.text('notes', value))).toEqual([text, isUnread])
})

test.each([
  [['a', 7, null], ['a', '7'], false],
  [['a', true, 'b'], ['a', 'b'], true],
  ['alone', ['alone'], false],
  [null, [], false],
  [['1', '2', '3', '4', '5'], ['1', '2', '3', '4'], false],
  [['1', '2', '3', '4', true], ['1', '2', '3', '4'], false],
])('the texts of %j, at most four, are %j; noted as unread: %j', (value, texts, isUnread) => {
  expect(readingOf((reader) => reader.texts('tags', value, 4))).toEqual([texts, isUnread])
})

const at = Date.UTC(2026, 10, 1, 12)

test.each([
  ['2026-11-01T12:00:00Z', at, false],
  ['2026-11-01T12:00:00', at, false],
  ['1990-01-01T00:00:00Z', Date.UTC(1990, 0, 1), false],
  ['1989-12-31T23:59:59Z', null, true],
  ['0001-01-01T00:00:00Z', null, true],
  ['soon', null, true],
  [at, null, true],
  [String(at), null, true],
  [{}, null, true],
  ['', null, false],
  [' ', null, false],
  [null, null, false],
  [[], null, false],
])('the time of %j is %j; noted as unread: %j', (value, atMs, isUnread) => {
  expect(readingOf((reader) => reader.time('matched_at', value))).toEqual([atMs, isUnread])
})

test.each([
  [{ a: 1 }, { a: 1 }, false],
  [[{ a: 1 }], {}, true],
  [[], {}, false],
  ['', {}, false],
  [null, {}, false],
  ['text', {}, true],
  [7, {}, true],
])('the members of %j are %j; noted as unread: %j', (value, members, isUnread) => {
  expect(readingOf((reader) => reader.object('header', value))).toEqual([members, isUnread])
})

test.each([
  [' High ', 'high', true],
  ['dire', 'dire', true],
  [3, null, false],
  ['4.5', null, false],
  [true, null, false],
  ['', null, true],
  [null, null, true],
  [[], null, true],
])('a severity of %j is %j; readable: %j', (value, word, isReadable) => {
  expect(readingOf((reader) => reader.severity(value))).toEqual([{ word, isReadable }, !isReadable])
})

test('what could not be read is named in the order of the alphabet, each field once', () => {
  const reader = createFieldReader()
  expect(reader.unread()).toEqual({})
  for (const field of ['tags', 'notes', 'tags'] as const) reader.note(field)
  expect(reader.unread()).toEqual({ unread: ['notes', 'tags'] })
})

describe('of several places', () => {
  test('the first that holds something counts', () => {
    expect(firstPresent(undefined, null, '', ' ', [], 0, 'later')).toBe(0)
    expect(firstPresent(null, false)).toBe(false)
    expect(firstPresent(' ', {})).toEqual({})
    expect(firstPresent(null, '')).toBeUndefined()
  })

  test('only an object has members', () => {
    expect(toJsonObject({ a: 1 })).toEqual({ a: 1 })
    for (const other of [[1], 'a', null, undefined]) expect(toJsonObject(other)).toEqual({})
  })
})

const uuid = '0f8fad5b-d9cb-469f-a165-70867728950e'

test.each([
  [0, '0'],
  [12, '12'],
  [Number.MAX_SAFE_INTEGER, '9007199254740991'],
  [Number.MAX_SAFE_INTEGER + 1, null],
  [-1, null],
  [1.5, null],
  ['0', '0'],
  [' 12 ', '12'],
  ['012', null],
  [`1${'0'.repeat(39)}`, `1${'0'.repeat(39)}`],
  [`1${'0'.repeat(40)}`, null],
  [uuid.toUpperCase(), uuid],
  [`${uuid}0`, null],
  [`x${uuid}`, null],
  [uuid.replaceAll('-', ''), null],
  ['hunter22', null],
  [true, null],
])('the id in %j is %j', (value, id) => {
  expect(readId(value)).toBe(id)
})
