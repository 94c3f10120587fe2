/**
 * What happens to a backlog while nothing can be sent to its sink or destination, in order. Items
 * for people are grouped into one message, then everything goes to the fallback. Any replica may do
 * any step, several at once, for the destinations of its configuration.
 */
import { blockedGroups, type Outlet } from '../../grouping/placement.ts'
import type { Clock } from '../../lib/clock.ts'
import type { Logger } from '../../lib/logger.ts'
import { parseRef } from '../../store/account-ledger.ts'
import { groupItems, readPendingRefs } from '../../store/pending-items.ts'
import type { Circuit, CircuitReading } from '../circuit.ts'
import type { WorkAnnouncer } from '../due-accounts.ts'
import { fallbackFrom } from './fallback.ts'
import { rerouteAll, type Rerouter, forEachPage, type Paging, type RetryNow } from './reroute.ts'

export interface Failover {
  /** Makes one pass over all sinks. */
  failoverOnce(signal?: AbortSignal, alive?: () => void): Promise<void>
}

export interface FailoverOptions {
  outlets: ReadonlyMap<string, Outlet>
  circuit: Pick<Circuit, 'read'>
  rerouter: Rerouter
  drains: Pick<WorkAnnouncer, 'ledgersFor'>
  retryNow: Pick<RetryNow, 'ensureProbe'>
  clock: Clock
  logger: Logger
}

/** During a shorter fault, single messages for people stay single. */
const groupAfterMs = 60_000

export function createFailover(options: FailoverOptions): Failover {
  const { outlets } = options
  return {
    async failoverOnce(signal = new AbortController().signal, alive = () => undefined) {
      const steps: ((sink: Outlet, control: PassControl) => Promise<unknown>)[] = [
        (sink) => ensureProbes(options, sink),
        (sink, control) => groupWaiting(options, sink, control),
        (sink, control) => rerouteToFallback(options, sink, control),
      ]
      const failures: unknown[] = []
      for (const sink of outlets.values()) {
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
  { name, destinations }: Outlet,
): Promise<void> {
  await retryNow.ensureProbe(name, destinations)
  for (const { id } of destinations) if (id !== name) await retryNow.ensureProbe(name, [{ id }], id)
}

/** Whether the groups and digests of a sink's destination have to wait. */
export async function isBlocked(
  { circuit, retryNow, clock }: Pick<FailoverOptions, 'circuit' | 'retryNow' | 'clock'>,
  { name, destinations = [] }: { name: string; destinations?: Outlet['destinations'] },
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
  outlet: Outlet,
  { signal, alive }: PassControl,
): Promise<void> {
  const { name, destinations } = outlet
  const all = Object.entries(blockedGroups(outlet))
  if (all.length === 0) return
  const nowMs = clock.now()
  const blocked = (await readEach(circuit, { name, destinations }, nowMs))
    .filter((reading) => isBlockedFor(reading, nowMs, groupAfterMs))
    .map(({ id }) => id)
  const groups = Object.fromEntries(all.filter(([id]) => blocked.includes(id)))
  if (Object.keys(groups).length === 0) return
  const paging: Paging = { mayContinue: async () => !signal.aborted, alive }
  for (const ledger of drains.ledgersFor(name)) {
    const groupPage = async (refs: readonly string[]): Promise<number> => {
      const singles = refs.filter((ref) => parseRef(ref).kind === 'item')
      return groupItems(ledger, singles, groups)
    }
    await forEachPage((page) => readPendingRefs(ledger, name, page), groupPage, paging)
  }
}

async function rerouteToFallback(
  options: FailoverOptions,
  sink: Outlet,
  { signal, alive }: PassControl,
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
    const context = { ledger, sink: sink.name, rerouter, nowMs: clock.now() }
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
  { circuit, clock, outlets }: FailoverOptions,
  { name, fallback, fallbackAfterMs, destinations }: Outlet,
): Promise<ReadonlySet<string>> {
  if (fallback === undefined) return new Set()
  const nowMs = clock.now()
  const [each, other] = await Promise.all([
    readEach(circuit, { name, destinations }, nowMs),
    circuit.read(fallback, nowMs, outlets.get(fallback)?.destinations),
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
  { name, destinations }: Pick<Outlet, 'name' | 'destinations'>,
  nowMs: number,
): Promise<(CircuitReading & { id: string })[]> {
  const own = await circuit.read(name, nowMs)
  if (own.state !== 'closed') return destinations.map(({ id }) => ({ id, ...own }))
  return Promise.all(
    destinations.map(async ({ id }) => ({ id, ...(await circuit.read(name, nowMs, [{ id }])) })),
  )
}
