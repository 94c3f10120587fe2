/** What is said of acts on items, and when they are refused. */
import type { Config } from '../../config/config.ts'
import { type ActCounts, findBlockedSink } from '../../delivery/item-acts.ts'
import { openCircuit } from '../../delivery/sink-address.ts'
import type { Refusal } from '../../lib/config/config-fields.ts'
import { redisNow } from '../../redis/scripts.ts'
import { findRemedy } from '../alerts/troubles.ts'
import type { LedgerItem } from '../../store/items.ts'
import type { OpenLedgers } from '../open-ledgers.ts'
import { destinationsBySink } from '../recipients.ts'

/** Why items must not be sent again: their sink takes nothing, and its fallback would get all again. */
export async function findBlocked(
  store: OpenLedgers,
  config: Config,
  items: readonly LedgerItem[],
): Promise<Refusal | undefined> {
  const circuit = openCircuit(store, config)
  const destinations = destinationsBySink(config)
  const nowMs = await redisNow(store)
  const names = new Set(items.flatMap(({ item }) => item?.sink ?? []))
  const circuits = await Promise.all(
    [...names].map(async (name) => {
      return [name, await circuit.read(name, nowMs, destinations.get(name))] as const
    }),
  )
  const blocked = findBlockedSink(config.sinks, items, new Map(circuits))
  if (blocked === undefined) return undefined
  const { name, fallback } = blocked
  const problem = `${name} takes nothing now: what is sent again goes to its fallback ${fallback} again`
  return { problem, remedy: findRemedy('circuit-open', name) }
}

/** Why an item is left as it is. */
export const leftWords: Record<Exclude<keyof ActCounts, 'done'>, string> = {
  busy: 'in a message on its way just now: try again in a minute',
  other: 'changed by somebody else meanwhile',
  no_payload: 'the content is no longer kept (retention.payload)',
  no_recipient: 'the recipient is no longer configured',
}
