import { expect, test } from 'vitest'
import { operatorName } from '../../../src/cli/open/open-store.ts'

const system = (): string => 'daemon'
const nobody = (): string => {
  throw new Error('uv_os_get_passwd returned ENOENT')
}

test('the operator is whom the environment says, on one line', () => {
  expect(operatorName({ env: { USER: 'jo' } }, {}, system)).toBe('jo')
  expect(operatorName({ env: { USERNAME: 'Jo Doe' } }, {}, system)).toBe('Jo Doe')
  expect(operatorName({ env: { USER: ' j\u001B[2J\no ' } }, {}, system)).toBe('j[2Jo')
})

test('--by goes before all, and the system knows where the environment does not', () => {
  expect(operatorName({ env: { USER: 'jo' } }, { by: 'kim' }, system)).toBe('kim')
  expect(operatorName({ env: {} }, {}, system)).toBe('daemon')
  expect(operatorName({ env: { USER: ' ' } }, {}, system)).toBe('daemon')
})

test('nobody is made up where the system does not say', () => {
  expect(operatorName({ env: {} }, {}, nobody)).toBeUndefined()
})
