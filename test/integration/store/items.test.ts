/** Items by what they are and by their ids, in a ledger that has one in every state. */
import { expect, test } from 'vitest'
import { type State, stateWords } from '../../../src/store/item-states.ts'
import {
  findItems,
  type ItemFilter,
  type LedgerItem,
  listItems,
  orderOf,
  scanItems,
} from '../../../src/store/items.ts'
import { deliveryId } from '../../../src/store/records.ts'
import { aLedgerScene } from '../../golden/ledger-scene.ts'
import { redisForTests, routed, takeIn } from '../../support/ledger.ts'

const tests = redisForTests()

async function scan(ledger: LedgerItem['ledger'], filter: ItemFilter): Promise<LedgerItem[]> {
  const found: LedgerItem[] = []
  for await (const item of scanItems(ledger, filter)) found.push(item)
  return found
}

const refsOf = (items: readonly LedgerItem[]): string[] =>
  items.map(({ ref, state }) => `${state} ${ref}`).toSorted((a, b) => (a < b ? -1 : 1))

test('what a scan of some states finds is what a scan of all has in these states, each once', async () => {
  const { ledger } = await aLedgerScene(tests)
  const all = await scan(ledger, {})
  expect(new Set(refsOf(all)).size).toBe(all.length)
  expect(new Set(all.map(({ state }) => state))).toEqual(new Set(stateWords))
  const choices: State[][] = [
    ...stateWords.map((state) => [state]),
    ['dead', 'retrying'],
    ['queued', 'frozen'],
    ['dead', 'delivered', 'quarantined'],
  ]
  for (const states of choices) {
    const expected = all.filter(({ state }) => states.includes(state))
    expect(refsOf(await scan(ledger, { states: new Set(states) }))).toEqual(refsOf(expected))
  }
})

test('an item of several that died for one sink comes once each', async () => {
  const scene = await aLedgerScene(tests)
  await scene.show(['oncall'], [{ uid: 'leak/two/1', severity: 'critical' }])
  await scene.attempt('oncall', { outcome: 'dead' })
  const dead = await scan(scene.ledger, { states: new Set(['dead']), sink: 'oncall' })
  expect(dead.map(({ uid }) => uid)).toEqual(['leak/two/1', 'leak/two/1'])
})

test('a filter takes what fits in every respect', async () => {
  const { ledger } = await aLedgerScene(tests)
  const uidsOf = async (filter: ItemFilter): Promise<(string | null)[]> =>
    (await scan(ledger, filter)).map(({ uid }) => uid)
  const lake = await uidsOf({ sink: 'lake' })
  const high = await uidsOf({ sink: 'lake', severity: 'high' })
  expect(lake.filter((uid) => !high.includes(uid))).toEqual(['leak/site/dead-too'])
  expect(await uidsOf({ sink: 'lake', toMs: 1 })).toEqual([])
})

test('a list is bounded, and has the first in its order', async () => {
  const { ledger } = await aLedgerScene(tests)
  for (const states of [new Set<State>(['queued']), new Set<State>(['delivered', 'dead'])]) {
    const order = orderOf({ states }, false)
    const whole = await listItems([ledger], { states }, { limit: 1_000, order })
    const some = await listItems([ledger], { states }, { limit: 2, order })
    expect(some.items.map(({ ref }) => ref)).toEqual(whole.items.slice(0, 2).map(({ ref }) => ref))
    expect([whole.hasMore, some.hasMore]).toEqual([false, true])
  }
})

test('items are found by uid, by the id of an item or message, and by that of the quarantine', async () => {
  const { ledger, second } = await aLedgerScene(tests)
  await takeIn(second, [routed({ uid: 'leak/site/dead' }, ['lake'])])
  const ledgers = [ledger, second]
  const both = await findItems(ledgers, 'leak/site/dead')
  expect(both.map(({ ledger: { account }, state }) => [account, state])).toEqual([
    ['main', 'dead'],
    ['second', 'queued'],
  ])
  expect(await findItems(ledgers, both[0]!.item!.id)).toHaveLength(1)
  const [frozen] = await scan(ledger, { states: new Set(['frozen']) })
  expect(await findItems(ledgers, deliveryId(frozen!.item!))).toHaveLength(2)
  const [entry] = await findItems(ledgers, 'paste/site/bad')
  expect(await findItems(ledgers, entry!.ref)).toMatchObject([{ ref: entry!.ref }])
  expect(await findItems(ledgers, 'leak/site/unknown')).toEqual([])
})
