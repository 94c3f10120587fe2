import { expect, test } from 'vitest'
import { localUser, mayAct, nobody, seesAccount } from '../../../../src/page/access/user.ts'

test('a user sees the accounts that are named, or all', () => {
  const user = { name: 'ana', role: 'read', accounts: ['main'] } as const
  expect(['main', 'mai', 'main2', ''].map((account) => seesAccount(user, account))).toEqual([
    true,
    false,
    false,
    false,
  ])
  expect(seesAccount({ ...user, accounts: 'all' }, 'any')).toBe(true)
  expect(seesAccount(nobody, 'main')).toBe(false)
})

test('who acts has the role, and neither nobody nor whoever sits at the machine has', () => {
  const users = [{ ...localUser, role: 'act' as const }, localUser, nobody]
  expect(users.map(mayAct)).toEqual([true, false, false])
})
