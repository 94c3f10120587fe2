/** Pauses and resumes of sinks and feeds; nothing is lost meanwhile. */
import type { Config } from '../../config/config.ts'
import type { CircuitReading } from '../../delivery/circuit.ts'
import { openCircuit } from '../../delivery/sink-address.ts'
import { pluralize } from '../../lib/errors.ts'
import { formatUtcTime } from '../../lib/time-zone.ts'
import { cleanLine } from '../../messages/sanitize.ts'
import { redisNow } from '../../redis/scripts.ts'
import type { AccountLedger } from '../../store/account-ledger.ts'
import { openFeed, pauseFeed as writePause, peekFeed } from '../../store/feed-state.ts'
import { makeRetriesDue } from '../../store/pending-items.ts'
import type { OpenLedgers } from '../open-ledgers.ts'
import { destinationsBySink } from '../recipients.ts'

/** Returns since when it is paused, ms: one that was paused already stays so since then. */
export async function pauseSink(
  store: OpenLedgers,
  config: Config,
  { name, reason }: { name: string; reason: string },
): Promise<number> {
  const circuit = openCircuit(store, config)
  const nowMs = await redisNow(store)
  const { paused } = await circuit.read(name, nowMs)
  const sinceMs = paused?.sinceMs ?? nowMs
  await circuit.pause(name, { reason, sinceMs })
  return sinceMs
}

/** How a sink was that was resumed. */
export interface ResumedSink {
  before: CircuitReading
  /** Messages that waited for another try, and are due now. */
  retries: number
}

/**
 * Ends a pause, and makes due what waits for another try; a disabled sink, and one whose circuit is
 * open, is tried again.
 */
export async function resumeSink(
  store: OpenLedgers,
  config: Config,
  name: string,
): Promise<ResumedSink> {
  const circuit = openCircuit(store, config)
  const destinations = destinationsBySink(config).get(name)
  const before = await circuit.read(name, await redisNow(store), destinations)
  await circuit.pause(name, undefined, destinations)
  let retries = 0
  for (const ledger of store.ledgers) {
    retries += (await makeRetriesDue(ledger, name, { max: Number.MAX_SAFE_INTEGER, all: true }))
      .length
  }
  return { before, retries }
}

export function resumedLine(name: string, { before, retries }: ResumedSink): string {
  const { paused, disabled, state, openedAtMs = 0 } = before
  if (disabled) {
    return `${name} is tried again; it was disabled since ${formatUtcTime(disabled.sinceMs)}: ${cleanLine(disabled.reason, 300)}`
  }
  if (state === 'open') {
    return `${name} is tried again within seconds; its circuit has been open since ${formatUtcTime(openedAtMs)}`
  }
  if (paused) return `${name} is resumed; a running daemon sends what was kept within seconds`
  const due = `; ${pluralize(retries, 'retry', 'retries')} due now`
  return `${name} was not paused${retries > 0 ? due : ''}`
}

/** As `pauseSink`. Works before the first poll too: it fixes the feed's start bound, as a daemon would. */
export async function pauseFeed(
  ledger: AccountLedger,
  { name, startMs }: { name: string; startMs: number },
  reason: string,
): Promise<number> {
  const { paused, nowMs } = await openFeed(ledger, name, startMs)
  const sinceMs = paused?.sinceMs ?? nowMs
  await writePause(ledger, name, { reason, sinceMs })
  return sinceMs
}

/** Returns whether it was paused. */
export async function resumeFeed(ledger: AccountLedger, name: string): Promise<boolean> {
  const state = await peekFeed(ledger, name, 0)
  await writePause(ledger, name, undefined)
  return state?.paused !== undefined
}
