import { expect, test } from 'vitest'
import { operatorName } from '../../../src/cli/operator.ts'

test('the operator is whom the system says, on one line', () => {
  expect(operatorName({ env: { USER: 'jo' } })).toBe('jo')
  expect(operatorName({ env: { USERNAME: 'Jo Doe' } })).toBe('Jo Doe')
  expect(operatorName({ env: { USER: ' j\u001B[2J\no ' } })).toBe('j[2Jo')
})

test('nobody is made up where the system does not say', () => {
  expect(operatorName({ env: {} })).toBeUndefined()
  expect(operatorName({ env: { USER: ' ' } })).toBeUndefined()
})
