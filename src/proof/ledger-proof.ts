/** What a look at the ledger itself found; empty lists and no differences: every event is where it should be. */
import type { Accounting } from '../ledger/accounting.ts'
import type { ItemState } from '../ledger/records.ts'

/** Of one account's book. */
export interface BookProof {
  account: string
  /** When the counters stood so, by Redis' clock; ms. */
  atMs: number
  accounting: Accounting
  /** How many records the index has. */
  records: number
  /** How many records that were made it does not have; below 0: how many it has too many. */
  unfiled: number
  /** Up to where settled records were compared with the index, by when they were settled, ms; 0: to its end. */
  settledToMs: number
  differences: SinkDifference[]
  stranded: StrandedItem[]
  dangling: DanglingRef[]
  /** There are more stranded items or references than are named. */
  hasMore: boolean
}

/** Counters and records say different numbers of pending items, and did so a second time. */
export interface SinkDifference {
  sink: string
  /** By the counters. */
  counted: number
  /** In the records. */
  found: number
}

/** A pending item that nothing would ever move. */
export interface StrandedItem {
  ref: string
  uid: string
  sink: string
  state: ItemState
  heldFor: string | undefined
  lacks: Lack
}

/**
 * Where it is not, though what moves it looks there: its time, the orphans of its sink, its collection, that
 * collection's timer, its sealed message, that message's time.
 */
export type Lack = 'due' | 'orphans' | 'collection' | 'timer' | 'message' | 'message_due'

/**
 * A reference to something that is gone, or in a state in which it does not belong there, or whose record is
 * not in the index. In the index itself it is a record's id, and of no sink.
 */
export interface DanglingRef {
  ref: string
  sink: string
  place: DanglingPlace
  why: 'gone' | 'other_state' | 'unfiled'
}

export type DanglingPlace = 'due' | 'timers' | 'orphans' | 'dead' | 'collect' | 'records'

/** By sink: how many things are wrong with it. Every sink of the books is there; '': wrong with the index. */
export function discrepanciesOf(proofs: readonly BookProof[]): Record<string, number> {
  const sums = new Map<string, number>()
  const add = (sink: string, count: number): void =>
    void sums.set(sink, (sums.get(sink) ?? 0) + Math.abs(count))
  for (const { accounting, unfiled, differences, stranded, dangling } of proofs) {
    if (unfiled !== 0) add('', unfiled)
    for (const [sink, { unaccounted }] of Object.entries(accounting.sinks)) add(sink, unaccounted)
    for (const { sink, counted, found } of differences) add(sink, counted - found)
    for (const { sink } of [...stranded, ...dangling]) add(sink, 1)
  }
  return Object.fromEntries(sums)
}

/** Whether all adds up: feeds, sinks, the records, and what moves them. */
export function isWhole(proof: BookProof): boolean {
  const { accounting, unfiled, differences, stranded, dangling } = proof
  const accounts = [...Object.values(accounting.feeds), ...Object.values(accounting.sinks)]
  const isBalanced = unfiled === 0 && accounts.every(({ unaccounted }) => unaccounted === 0)
  return isBalanced && differences.length + stranded.length + dangling.length === 0
}
