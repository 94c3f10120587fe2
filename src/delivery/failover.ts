/**
 * What happens to a sink's backlog while nothing can be sent to it, in order: items for people are
 * grouped into one message, then everything goes to the fallback; beyond `pending_max` the least
 * severe are given up. Any replica may do any step, several at once.
 */
import { severityRank } from '../event.ts'
import type { Clock } from '../lib/clock.ts'
import type { Logger } from '../lib/logger.ts'
import { type AccountLedger, parseRef } from '../store/account-ledger.ts'
import { sumPending, readAccounting } from '../store/accounts.ts'
import {
  groupItems,
  overflowItems,
  scanPendingItems,
  readPendingRefs,
} from '../store/pending-items.ts'
import { isIndexed } from '../store/record-index.ts'
import type { Circuit, CircuitReading } from './circuit.ts'
import type { WorkAnnouncer } from './due-accounts.ts'
import { fallbackFrom } from './fallback.ts'
import {
  rerouteAll,
  type Rerouter,
  forEachPage,
  type Paging,
  type FailoverSink,
  type RetryNow,
} from './reroute.ts'

export interface Failover {
  /** Makes one pass over all sinks. */
  failoverOnce(signal?: AbortSignal, alive?: () => void): Promise<void>
}

export interface FailoverOptions {
  sinks: ReadonlyMap<string, FailoverSink>
  circuit: Pick<Circuit, 'read'>
  rerouter: Rerouter
  drains: Pick<WorkAnnouncer, 'ledgersFor'>
  retryNow: Pick<RetryNow, 'ensureProbe'>
  clock: Clock
  logger: Logger
  /** Called with the number of items that became dead letters. */
  onOverflow: (sink: string, items: number) => void
}

/** During a shorter fault, single messages for people stay single. */
const groupAfterMs = 60_000

export function createFailover(options: FailoverOptions): Failover {
  const { sinks } = options
  const overflow = createOverflow(options)
  return {
    async failoverOnce(signal = new AbortController().signal, alive = () => undefined) {
      const steps: ((sink: FailoverSink, control: PassControl) => Promise<unknown>)[] = [
        (sink) => ensureProbes(options, sink),
        (sink, control) => groupWaiting(options, sink, control),
        (sink, control) => rerouteToFallback(options, sink, control),
        (sink, { signal, alive }) =>
          overflow.enforceLimit(sink, { mayContinue: async () => !signal.aborted, alive }),
      ]
      const failures: unknown[] = []
      for (const sink of sinks.values()) {
        for (const step of steps) {
          if (signal.aborted) return
          await step(sink, { signal, alive }).catch((error: unknown) => failures.push(error))
          alive()
        }
      }
      if (failures.length > 0) throw failures[0] // a step that a full Redis refuses must not stop the others
    },
  }
}

/** A sink, or a destination of its own circuit, whose items all wait for later is tried now. */
async function ensureProbes(
  { retryNow }: FailoverOptions,
  { name, destinations }: FailoverSink,
): Promise<void> {
  await retryNow.ensureProbe(name, destinations)
  for (const { id } of destinations) if (id !== name) await retryNow.ensureProbe(name, [{ id }], id)
}

/** Whether the groups and digests of a sink have to wait. */
export async function isBlocked(
  { circuit, retryNow, clock }: Pick<FailoverOptions, 'circuit' | 'retryNow' | 'clock'>,
  { name, destinations = [] }: { name: string; destinations?: FailoverSink['destinations'] },
): Promise<boolean> {
  const nowMs = clock.now()
  const { state, paused, untriedAtMs = Infinity } = await circuit.read(name, nowMs, destinations)
  if (state === 'disabled' || paused !== undefined) return true
  // a single message failed, and may be to blame: a group is another one
  if (untriedAtMs <= nowMs) return false
  // a single probe message tests whether the sink is back; groups keep waiting
  return state === 'half_open' ? retryNow.ensureProbe(name, destinations) : state === 'open'
}

interface PassControl {
  signal: AbortSignal
  alive: () => void
}

/** Whether the sink has been blocked for longer than `ms`; not while it is half open. */
function isBlockedFor(
  { state, openedAtMs, paused }: CircuitReading,
  nowMs: number,
  ms: number,
): boolean {
  const isOpen = state === 'open' || state === 'disabled'
  const sinceMs = Math.min(isOpen ? (openedAtMs ?? nowMs) : nowMs, paused?.sinceMs ?? nowMs)
  return nowMs - sinceMs > ms
}

async function groupWaiting(
  { drains, circuit, clock }: FailoverOptions,
  { name, blockedGroups, destinations }: FailoverSink,
  { signal, alive }: PassControl,
): Promise<void> {
  if (Object.keys(blockedGroups).length === 0) return
  const nowMs = clock.now()
  if (!isBlockedFor(await circuit.read(name, nowMs, destinations), nowMs, groupAfterMs)) return
  const paging: Paging = { mayContinue: async () => !signal.aborted, alive }
  for (const ledger of drains.ledgersFor(name)) {
    const groupPage = async (refs: readonly string[]): Promise<number> => {
      const singles = refs.filter((ref) => parseRef(ref).kind === 'item')
      return groupItems(ledger, singles, blockedGroups)
    }
    await forEachPage((page) => readPendingRefs(ledger, name, page), groupPage, paging)
  }
}

async function rerouteToFallback(
  options: FailoverOptions,
  sink: FailoverSink,
  { signal, alive }: PassControl,
): Promise<void> {
  const { drains, rerouter, clock, logger } = options
  const mayContinue = async (): Promise<boolean> =>
    !signal.aborted && (await mayReroute(options, sink))
  if (!(await mayContinue())) return
  let items = 0
  for (const ledger of drains.ledgersFor(sink.name)) {
    const context = { ledger, sink: sink.name, rerouter, nowMs: clock.now() }
    items += await rerouteAll(context, { mayContinue, alive })
  }
  const fields = { sink: sink.name, fallback: sink.fallback, items }
  if (items > 0) logger.warn(fields, 'the sink takes nothing: its items go to the fallback')
}

async function mayReroute(
  { circuit, clock, sinks }: FailoverOptions,
  { name, fallback, fallbackAfterMs, destinations }: FailoverSink,
): Promise<boolean> {
  if (fallback === undefined) return false
  const nowMs = clock.now()
  const own = await circuit.read(name, nowMs, destinations)
  const other = await circuit.read(fallback, nowMs, sinks.get(fallback)?.destinations)
  const from = fallbackFrom(own, fallbackAfterMs, other)
  return typeof from === 'number' && from <= nowMs
}

interface Overflow {
  /**
   * Compares the counters with the limit; only if there are too many, scans all pending records, at
   * most once per `betweenScansMs`.
   */
  enforceLimit(sink: FailoverSink, paging: Paging): Promise<void>
}

interface OverflowOptions {
  drains: Pick<WorkAnnouncer, 'ledgersFor'>
  rerouter: Rerouter
  clock: Clock
  logger: Logger
  /** Called with the number of items that became dead letters. */
  onOverflow: (sink: string, items: number) => void
}

/** A scan of all pending records takes seconds. */
const betweenScansMs = 60_000

const itemsPerStep = 100

interface WaitingItem {
  ledger: AccountLedger
  ref: string
  rank: number
  createdAtMs: number
}

export function createOverflow(options: OverflowOptions): Overflow {
  const { drains, clock } = options
  const lastScanMs = new Map<string, number>()
  return {
    async enforceLimit(sink, paging) {
      const ledgers = drains.ledgersFor(sink.name)
      const pending = await countPendingByLedger(ledgers, sink.name)
      const excess = sumCounts(pending.values()) - sink.pendingMax
      const nowMs = clock.now()
      if (excess <= 0 || nowMs - (lastScanMs.get(sink.name) ?? -Infinity) < betweenScansMs) return
      lastScanMs.set(sink.name, nowMs)
      // the least severe items may be missing from the index while an upgrade still fills it
      if (!(await Promise.all(ledgers.map(isIndexed))).every(Boolean)) return
      const least = (await findWaiting(ledgers, sink.name, paging))
        .toSorted((a, b) => a.rank - b.rank || a.createdAtMs - b.createdAtMs)
        .slice(0, excess)
      for (const [ledger, items] of Map.groupBy(least, (waiting) => waiting.ledger)) {
        const refs = items.map(({ ref }) => ref)
        const keep = (pending.get(ledger) ?? 0) - refs.length
        await giveUp(options, sink, { ledger, refs, keep }, paging)
      }
    },
  }
}

async function countPendingByLedger(
  ledgers: readonly AccountLedger[],
  sink: string,
): Promise<Map<AccountLedger, number>> {
  const counts = ledgers.map(async (ledger) => {
    const account = (await readAccounting(ledger)).sinks[sink]
    return [ledger, account === undefined ? 0 : sumPending(account)] as const
  })
  return new Map(await Promise.all(counts))
}

function sumCounts(counts: Iterable<number>): number {
  return [...counts].reduce((sum, count) => sum + count, 0)
}

/** Returns the sink's pending items, except those in a message or being sent. */
async function findWaiting(
  ledgers: readonly AccountLedger[],
  sink: string,
  { alive }: Paging,
): Promise<WaitingItem[]> {
  const found: WaitingItem[] = []
  for (const ledger of ledgers) {
    for await (const { ref, item } of scanPendingItems(ledger, sink)) {
      alive()
      if (item.state === 'sending' || item.state === 'batch') continue
      const { severity, createdAtMs } = item
      found.push({ ledger, ref, rank: severityRank(severity), createdAtMs })
    }
  }
  return found
}

interface Excess {
  ledger: AccountLedger
  refs: string[]
  /** How many items must remain, so that two replicas at once do not give up too many. */
  keep: number
}

async function giveUp(
  { rerouter, logger, onOverflow }: OverflowOptions,
  { name, fallback, pendingMax }: FailoverSink,
  { ledger, refs, keep }: Excess,
  paging: Paging,
): Promise<void> {
  const fields = { sink: name, pendingMax }
  if (fallback !== undefined) {
    const { length: items } = await rerouter.rerouteItems(ledger, refs, paging)
    logger.warn(
      { ...fields, fallback, items },
      'more than pending_max wait: items go to the fallback',
    )
    return
  }
  let items = 0
  for (let at = 0; at < refs.length && (await paging.mayContinue()); at += itemsPerStep) {
    paging.alive()
    items += await overflowItems(ledger, refs.slice(at, at + itemsPerStep), { sink: name, keep })
  }
  onOverflow(name, items)
  logger.warn({ ...fields, items }, 'more than pending_max wait: the least severe are dead letters')
}
