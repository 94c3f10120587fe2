import fc from 'fast-check'
import { expect, test } from 'vitest'
import { type Answer, readSearchesRemaining } from '../../../src/upstream/failures.ts'

function remainingIn(headers: Answer['headers']): number | undefined {
  return readSearchesRemaining({ status: 200, headers, body: '', sentAtMs: 0 })
}

test('the header counts whatever its prefix and in any case', () => {
  const prefix = fc.stringMatching(/^[A-Za-z-]{0,20}$/)
  fc.assert(
    fc.property(prefix, fc.boolean(), fc.nat(), (start, isLower, count) => {
      const name = `${start}Global-Searches-Remaining`
      const headers = { [isLower ? name.toLowerCase() : name]: String(count) }
      expect(remainingIn(headers)).toBe(count)
    }),
  )
})

test('of several headers the least counts', () => {
  const headers = { 'x-global-searches-remaining': ['7', '3'], 'y-global-searches-remaining': '5' }
  expect(remainingIn(headers)).toBe(3)
})

test.each([
  ['no header', {}],
  ['another header', { 'x-global-searches-remaining-later': '3', 'x-searches-remaining': '4' }],
  ['no value', { 'x-global-searches-remaining': undefined }],
  ['an empty value', { 'x-global-searches-remaining': ' ' }],
  ['words', { 'x-global-searches-remaining': 'many' }],
  ['a number below zero', { 'x-global-searches-remaining': '-1' }],
  ['a fraction', { 'x-global-searches-remaining': '1.5' }],
  ['more digits than a number holds', { 'x-global-searches-remaining': '9'.repeat(16) }],
])('%s says nothing', (_what, headers) => {
  expect(remainingIn(headers)).toBeUndefined()
})
