/**
 * What happens to a backlog while nothing can be sent to its sink or destination, in order: items
 * for people are grouped into one message, then everything goes to the fallback; beyond
 * `pending_max` of the sink the least severe are given up. Any replica may do any step, several at
 * once, for the destinations of its configuration.
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
import type { Circuit, CircuitReading } from './circuit.ts'
import type { WorkAnnouncer } from './due-accounts.ts'
import { fallbackFrom } from './fallback.ts'
import {
  rerouteAll,
  type Rerouter,
  forEachPage,
  type Paging,
  type PassEnd,
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
  const ends: PassControl['ends'] = {}
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
          await step(sink, { signal, alive, ends }).catch((error: unknown) => failures.push(error))
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

/** Whether the groups and digests of a sink's destination have to wait. */
export async function isBlocked(
  { circuit, retryNow, clock }: Pick<FailoverOptions, 'circuit' | 'retryNow' | 'clock'>,
  { name, destinations = [] }: { name: string; destinations?: FailoverSink['destinations'] },
  id: string,
): Promise<boolean> {
  const nowMs = clock.now()
  const { state, paused, untriedAtMs = Infinity } = await circuit.read(name, nowMs, [{ id }])
  if (state === 'disabled' || paused !== undefined) return true
  // a single message failed, and may be to blame: a group is another one
  if (untriedAtMs <= nowMs) return false
  if (state !== 'half_open') return state === 'open'
  // a single probe message tests whether it is back; groups keep waiting
  if (await retryNow.ensureProbe(name, destinations)) return true
  return id !== name && retryNow.ensureProbe(name, [{ id }], id)
}

interface PassControl {
  signal: AbortSignal
  alive: () => void
  /** By list: where the last pass over it ended. */
  ends: Record<string, PassEnd>
}

/** Whether sends have been blocked for longer than `ms`; not while the circuit is half open. */
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
  { signal, alive, ends }: PassControl,
): Promise<void> {
  if (Object.keys(blockedGroups).length === 0) return
  const nowMs = clock.now()
  const blocked = (await readEach(circuit, { name, destinations }, nowMs))
    .filter((reading) => isBlockedFor(reading, nowMs, groupAfterMs))
    .map(({ id }) => id)
  const groups = Object.fromEntries(
    Object.entries(blockedGroups).filter(([id]) => blocked.includes(id)),
  )
  if (Object.keys(groups).length === 0) return
  const paging: Paging = { mayContinue: async () => !signal.aborted, alive }
  for (const ledger of drains.ledgersFor(name)) {
    const groupPage = async (refs: readonly string[]): Promise<number> => {
      const singles = refs.filter((ref) => parseRef(ref).kind === 'item')
      return groupItems(ledger, singles, groups)
    }
    const end = (ends[`group ${ledger.account} ${name}`] ??= { offset: 0 })
    await forEachPage((page) => readPendingRefs(ledger, name, page), groupPage, paging, end)
  }
}

async function rerouteToFallback(
  options: FailoverOptions,
  sink: FailoverSink,
  { signal, alive, ends }: PassControl,
): Promise<void> {
  const { drains, rerouter, clock, logger } = options
  let blocked: ReadonlySet<string> = new Set()
  const mayContinue = async (): Promise<boolean> => {
    blocked = await findReroutable(options, sink)
    return !signal.aborted && blocked.size > 0
  }
  if (!(await mayContinue())) return
  const takes = (destination: string): boolean => blocked.has(destination)
  let items = 0
  for (const ledger of drains.ledgersFor(sink.name)) {
    const end = (ends[`reroute ${ledger.account} ${sink.name}`] ??= { offset: 0 })
    const context = { ledger, sink: sink.name, rerouter, nowMs: clock.now(), end }
    items += await rerouteAll(context, { mayContinue, alive, takes })
  }
  const fields = { sink: sink.name, fallback: sink.fallback, items }
  if (items > 0) logger.warn(fields, 'nothing is taken: items go to the fallback')
}

/**
 * Finds the destinations whose items may go to the fallback now. A paused sink keeps its items: the
 * pause is the operator's decision. They also stay while the circuit is half open, and while the
 * fallback takes nothing either.
 */
async function findReroutable(
  { circuit, clock, sinks }: FailoverOptions,
  { name, fallback, fallbackAfterMs, destinations }: FailoverSink,
): Promise<ReadonlySet<string>> {
  if (fallback === undefined) return new Set()
  const nowMs = clock.now()
  const [each, other] = await Promise.all([
    readEach(circuit, { name, destinations }, nowMs),
    circuit.read(fallback, nowMs, sinks.get(fallback)?.destinations),
  ])
  const found = each.filter((own) => {
    const from = fallbackFrom(own, fallbackAfterMs, other)
    return typeof from === 'number' && from <= nowMs
  })
  return new Set(found.map(({ id }) => id))
}

/** Reads for each destination the circuit that keeps its messages: the sink's, else its own. */
async function readEach(
  circuit: FailoverOptions['circuit'],
  { name, destinations }: Pick<FailoverSink, 'name' | 'destinations'>,
  nowMs: number,
): Promise<(CircuitReading & { id: string })[]> {
  const own = await circuit.read(name, nowMs)
  if (own.state !== 'closed') return destinations.map(({ id }) => ({ id, ...own }))
  return Promise.all(
    destinations.map(async ({ id }) => ({ id, ...(await circuit.read(name, nowMs, [{ id }])) })),
  )
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
      const least = (await findWaiting(ledgers, sink, paging))
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

/**
 * Returns the sink's pending items, except those in a message or being sent, and those for
 * destinations that only another configuration knows.
 */
async function findWaiting(
  ledgers: readonly AccountLedger[],
  { name, destinations }: FailoverSink,
  { alive }: Paging,
): Promise<WaitingItem[]> {
  const found: WaitingItem[] = []
  for (const ledger of ledgers) {
    for await (const { ref, item } of scanPendingItems(ledger, name)) {
      alive()
      if (item.state === 'sending' || item.state === 'batch') continue
      if (!destinations.some(({ id }) => id === item.destination)) continue
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
