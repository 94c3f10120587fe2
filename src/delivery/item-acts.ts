/**
 * What an operator does with items: sends them again, moves them to another sink, gives them up. Each
 * item changes in one script, so an interrupted run loses none.
 */
import { listMoveTargets, movedGroup } from '../grouping/placement.ts'
import { redisNow } from '../redis/scripts.ts'
import { listDestinations } from '../sinks/destinations.ts'
import type { SinkConfig } from '../sinks/sink-types.ts'
import { closeQuarantined } from '../store/feed-state.ts'
import { pendingWords, type State, wentToFallback } from '../store/item-states.ts'
import { type LedgerItem, needyStates, worstFirst } from '../store/items.ts'
import { discardItem, moveItem, type RedirectStatus, resendItem } from '../store/pending-items.ts'
import { outletsOf } from './outlets.ts'

/**
 * `busy`: it is in a message on its way; `other`: it is in another state by now; `no_payload`:
 * retention dropped what would be sent; `no_recipient`: its destination is no longer configured.
 */
export type ActStatus = RedirectStatus | 'no_recipient'

export type ActCounts = Record<ActStatus, number>

export interface ItemAct {
  /** The states that are meant where nobody names any. */
  usual: ReadonlySet<State>
  /** Whether the item is in a state in which it can be done. */
  takes(item: LedgerItem): boolean
  perform(item: LedgerItem): Promise<ActStatus>
}

const resendable: ReadonlySet<State> = new Set(['dead', 'delivered', 'discarded'])

/** Sends items again under their ids. */
export function resendAct(sinks: readonly SinkConfig[], by: string): ItemAct {
  const configured = new Map(sinks.map((sink) => [sink.name, sink]))
  const known = new Set(sinks.flatMap((sink) => listDestinations(sink).map(({ id }) => id)))
  return {
    usual: new Set(['dead']),
    takes: ({ state, item }) =>
      resendable.has(state) || (item !== undefined && wentToFallback(item)),
    async perform({ ledger, ref, item }) {
      if (item === undefined) return 'other'
      if (!known.has(item.destination)) return 'no_recipient'
      const batchWaitMs = configured.get(item.sink)?.batch?.waitMs
      const about = { batchWaitMs, by: `resent by ${by}`, was: item.state }
      return resendItem(ledger, ref, about)
    },
  }
}

/** Of what waits, and is not on its way. */
export const movableStates: ReadonlySet<State> = new Set(['queued', 'held', 'grouped', 'retrying'])

/** Moves what waits to another sink; what that had already is not sent to it again. */
export function moveAct(sinks: readonly SinkConfig[], to: string, by: string): ItemAct {
  const target = outletsOf(sinks).get(to)
  return {
    usual: pendingWords,
    takes: ({ state, item }) => movableStates.has(state) && item?.sink !== to,
    async perform({ ledger, ref, uid, item }) {
      if (!item || !target) return 'other'
      const nowMs = await redisNow(ledger)
      const targets = listMoveTargets(target, (destination) =>
        movedGroup(target, { destination, severity: item.severity, from: item.sink }, nowMs),
      )
      const placed = { ref, record: { uid: uid ?? '' }, item }
      return moveItem(ledger, placed, targets, `to ${to}, by ${by}`)
    },
  }
}

/** Gives up what waits, and closes what needs somebody: dead letters and quarantined items. */
export function discardAct(by: string): ItemAct {
  return {
    usual: new Set([...pendingWords, ...needyStates]),
    takes: ({ state }) => movableStates.has(state) || needyStates.has(state),
    async perform({ ledger, ref, entry }) {
      if (entry) return (await closeQuarantined(ledger, entry)) ? 'done' : 'other'
      return discardItem(ledger, ref, `by ${by}`)
    },
  }
}

/** Performs the act on each item, the worst first. */
export async function actOn(
  items: readonly LedgerItem[],
  act: ItemAct,
  onProgress: (done: number) => void,
): Promise<ActCounts> {
  const counts: ActCounts = { done: 0, busy: 0, other: 0, no_payload: 0, no_recipient: 0 }
  for (const [index, item] of items.toSorted(worstFirst).entries()) {
    onProgress(index)
    counts[await act.perform(item)] += 1
  }
  return counts
}
