import { expect, test } from 'vitest'
import { DueAccounts, type DueAccount } from '../../../src/delivery/due-accounts.ts'

/** In the order of their turns, while those before them are looked at. */
function order(due: DueAccounts, nowMs: number, isOldest = false): DueAccount[] {
  const busy = new Set<string>()
  const turns: DueAccount[] = []
  for (;;) {
    const turn = due.choose(nowMs, { isOldest, isBusy: (account) => busy.has(account) })
    if (!turn) return turns
    turns.push(turn)
    busy.add(turn.account)
  }
}

function names(due: DueAccounts, nowMs: number, isOldest = false): string[] {
  return order(due, nowMs, isOldest).map(({ account }) => account)
}

/** The one that is looked at. */
function first(due: DueAccounts, nowMs: number): DueAccount {
  const turn = due.choose(nowMs)
  if (!turn) throw new Error('none is ready')
  return turn
}

test('the account with the worst is served first, of several the one served longest ago', () => {
  const due = new DueAccounts()
  due.note('high', {}, 0) // as what says nothing of its severity
  due.note('low', { rank: 2 }, 0)
  due.note('also high', { rank: 4 }, 0)
  due.note('critical', { rank: 5 }, 0)
  expect(names(due, 0)).toEqual(['critical', 'high', 'also high', 'low'])
  const served = order(due, 0)[1]!
  due.noteServed(served, { inMs: 0, rank: 4 }, 7)
  expect(names(due, 7)).toEqual(['critical', 'also high', 'high', 'low'])
  due.note('high', { rank: 4 }, 8)
  expect(names(due, 8)).toEqual(['critical', 'also high', 'high', 'low'])
})

test('an account of which something more is told keeps its place behind those that wait longer', () => {
  const due = new DueAccounts()
  for (const [servedMs, account] of ['waits', 'told'].entries()) {
    due.note(account, {}, 0)
    const one = order(due, 0).find((found) => found.account === account)!
    due.noteServed(one, { inMs: 0, rank: 4 }, 7 + servedMs)
  }
  due.note('told', {}, 9)
  expect(names(due, 9)).toEqual(['waits', 'told'])
})

test('the turn of the longest waiting is its own, whatever the others have', () => {
  const due = new DueAccounts()
  for (const rank of [2, 5, 4]) due.note(String(rank), { rank }, 0)
  for (const [servedMs, rank] of [5, 4, 2].entries()) {
    const one = order(due, 9).find((found) => found.rank === rank)!
    due.noteServed(one, { inMs: 0, rank }, servedMs)
  }
  expect(names(due, 9, true)).toEqual(['5', '4', '2'])
  due.noteServed(first(due, 9), { inMs: 0, rank: 5 }, 9)
  expect(names(due, 9)).toEqual(['5', '4', '2'])
  expect(names(due, 9, true)).toEqual(['4', '2', '5'])
})

test('only what is known to be worse counts where nothing else may be claimed', () => {
  const due = new DueAccounts()
  due.note('unknown', {}, 0)
  due.note('high', { rank: 4 }, 0)
  due.note('later', { rank: 5, inMs: 9 }, 0)
  expect(due.choose(0, { leastKnown: 4 })?.account).toBe('high')
  expect(due.choose(0, { leastKnown: 5 })).toBeUndefined()
  expect(due.nextMs({ leastKnown: 5 })).toBe(9)
  const high = due.choose(0, { leastKnown: 4 })!
  due.noteServed(high, { inMs: 0, rank: 4, knownRank: 4 }, 1)
  expect(due.choose(1, { leastKnown: 4 })?.account).toBe('high')
  due.noteServed(due.choose(1, { leastKnown: 4 })!, { inMs: 0, rank: 4 }, 2)
  expect(due.choose(2, { leastKnown: 4 })).toBeUndefined()
  expect(due.nextMs({ leastKnown: 6 })).toBeUndefined()
})

test('an account is looked at when it was told for, to the millisecond, and the earliest word counts', () => {
  const due = new DueAccounts()
  expect([due.isEmpty, due.nextMs()]).toEqual([true, undefined])
  due.note('a', { inMs: 500 }, 1_000)
  due.note('b', { inMs: 900 }, 1_000)
  expect([due.isEmpty, due.nextMs()]).toEqual([false, 1_500])
  expect(names(due, 1_499)).toEqual([])
  expect(names(due, 1_500)).toEqual(['a'])
  due.note('a', { inMs: 5_000 }, 1_100)
  expect(due.nextMs()).toBe(1_500)
  due.note('a', { inMs: 100 }, 1_100)
  expect(due.nextMs()).toBe(1_200)
})

test('the worst that was told of an account counts until it is served, and then what is left', () => {
  const due = new DueAccounts()
  due.note('a', { rank: 5 }, 0)
  due.note('a', { rank: 2 }, 0)
  expect(first(due, 0).rank).toBe(5)
  due.noteServed(first(due, 0), { inMs: 0, rank: 2 }, 0)
  expect(first(due, 0).rank).toBe(2)
})

test('an account whose next work is far off is left to the slow pass, and one soon due is not', () => {
  const due = new DueAccounts()
  due.note('a', {}, 0)
  due.noteServed(first(due, 0), { inMs: 30_000, rank: 4 }, 100)
  expect(due.nextMs()).toBe(30_100)
  due.noteServed(first(due, 30_100), { inMs: 30_001, rank: 4 }, 200)
  due.note('a', { inMs: 30_001 }, 0)
  expect(due.isEmpty).toBe(true)
})

test('work that is told while an account is asked is not forgotten with the answer', () => {
  const due = new DueAccounts()
  due.note('a', {}, 0)
  const seen = first(due, 0)
  due.note('a', {}, 1)
  due.noteServed(seen, { inMs: Infinity, rank: 4 }, 2)
  expect(due.isEmpty).toBe(false)
})

test('an account without a ledger is looked at no more', () => {
  const due = new DueAccounts()
  due.note('a', {}, 0)
  due.drop('a')
  expect(due.isEmpty).toBe(true)
})

test('the next probe is of the account of which none was for the longest time, whatever its rank', () => {
  const due = new DueAccounts()
  due.note('sick', { rank: 5 }, 0)
  due.note('well', { rank: 2 }, 0)
  const next = (): string | undefined => due.choose(0, { isProbe: true })?.account
  due.noteProbed('sick', 1)
  expect(next()).toBe('well')
  due.noteProbed('well', 2)
  expect(next()).toBe('sick')
})
