import { expect, test } from 'vitest'
import { DueAccounts, soonMs, type DueAccount } from '../../../src/delivery/due-accounts.ts'

function hint(value: string): { account: string; sink: string; value: string } {
  return { account: 'a', sink: 'soc', value }
}

function namesOf(accounts: readonly DueAccount[]): string[] {
  return accounts.map(({ account }) => account)
}

/** The one that is looked at. */
function first(due: DueAccounts, nowMs: number): DueAccount {
  const [account] = due.ready(nowMs)
  if (!account) throw new Error('none is ready')
  return account
}

test('the account with the worst is served first, of several the one served longest ago', () => {
  const due = new DueAccounts()
  due.tell('high', {}, 0) // as what says nothing of its severity
  due.tell('low', { rank: 2 }, 0)
  due.tell('also high', { rank: 4 }, 0)
  due.tell('critical', { rank: 5 }, 0)
  expect(namesOf(due.ready(0))).toEqual(['critical', 'high', 'also high', 'low'])
  const served = due.ready(0)[1]!
  due.served(served, { inMs: 0, rank: 4 }, 7)
  expect(namesOf(due.ready(7))).toEqual(['critical', 'also high', 'high', 'low'])
  due.tell('high', { rank: 4 }, 8)
  expect(namesOf(due.ready(8))).toEqual(['critical', 'also high', 'high', 'low'])
})

test('an account is looked at when it was told for, to the millisecond, and the earliest word counts', () => {
  const due = new DueAccounts()
  expect([due.isEmpty, due.nextMs]).toEqual([true, undefined])
  due.tell('a', { inMs: 500 }, 1_000)
  due.tell('b', { inMs: 900 }, 1_000)
  expect([due.isEmpty, due.nextMs]).toEqual([false, 1_500])
  expect(due.ready(1_499)).toEqual([])
  expect(namesOf(due.ready(1_500))).toEqual(['a'])
  due.tell('a', { inMs: 5_000 }, 1_100)
  expect(due.nextMs).toBe(1_500)
  due.tell('a', { inMs: 100 }, 1_100)
  expect(due.nextMs).toBe(1_200)
})

test('the worst that was told of an account counts until it is served, and then what is left', () => {
  const due = new DueAccounts()
  due.tell('a', { rank: 5 }, 0)
  due.tell('a', { rank: 2 }, 0)
  expect(first(due, 0).rank).toBe(5)
  due.served(first(due, 0), { inMs: 0, rank: 2 }, 0)
  expect(first(due, 0).rank).toBe(2)
})

test('an account whose next work is far off is left to its hint, and one soon due is looked at again', () => {
  const due = new DueAccounts()
  due.tell('a', { hint: hint('1') }, 0)
  due.tell('a', {}, 0) // who knows no hint forgets none
  expect(due.served(first(due, 0), { inMs: soonMs, rank: 4 }, 100)).toBeUndefined()
  expect(due.nextMs).toBe(100 + soonMs)
  const again = first(due, 100 + soonMs)
  expect(due.served(again, { inMs: soonMs + 1, rank: 4 }, 200)).toEqual(hint('1'))
  expect(due.isEmpty).toBe(true)
  due.tell('a', { hint: hint('2') }, 0)
  expect(due.served(first(due, 0), { rank: 4 }, 200)).toEqual(hint('2'))
  expect(due.isEmpty).toBe(true)
})

test('what is told while an account is asked is not forgotten with the answer', () => {
  const due = new DueAccounts()
  due.tell('a', { hint: hint('1') }, 0)
  const seen = first(due, 0)
  due.tell('a', { hint: hint('2') }, 1)
  expect(due.served(seen, { rank: 4 }, 2)).toBeUndefined()
  expect(first(due, 2).hint).toEqual(hint('2'))
})

test('whoever takes the hints clears them once, and the accounts are still looked at', () => {
  const due = new DueAccounts()
  due.tell('a', { hint: hint('1') }, 0)
  due.tell('b', {}, 0)
  expect(due.takeHints()).toEqual([hint('1')])
  expect(due.takeHints()).toEqual([])
  expect(namesOf(due.ready(0))).toEqual(['a', 'b'])
})

test('an account without a ledger is looked at no more', () => {
  const due = new DueAccounts()
  due.tell('a', {}, 0)
  due.drop('a')
  expect(due.isEmpty).toBe(true)
})
