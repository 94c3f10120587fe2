/**
 * Moves items that cannot be sent to a sink to the sink's fallback. Each step is complete in
 * itself: if the process dies between two, the items still belong to the sink and the next pass
 * continues.
 */
import { ownFeed, type Severity } from '../../event.ts'
import {
  deriveMessageId,
  readFrozenRefs,
  type UnfreezeResult,
  unfreezeMessage,
} from '../../grouping/freeze.ts'
import {
  blockedGroups,
  fallbackGroup,
  listMoveTargets,
  type Outlet,
} from '../../grouping/placement.ts'
import { readDueTimers, peekFlush } from '../../grouping/timers.ts'
import type { Clock, Timings } from '../../lib/clock.ts'
import type { Metrics } from '../../lib/metrics/metrics.ts'
import type { Destination } from '../../sinks/sink.ts'
import { type AccountLedger, parseRef } from '../../store/account-ledger.ts'
import {
  worstFirst,
  readMemberRefs,
  rerouteItem,
  type Group,
  type ItemChange,
  type MoveTarget,
  readPendingRefs,
  makeRetriesDue,
  type RetriesWanted,
} from '../../store/pending-items.ts'
import { type FoundItem, readItems } from '../../store/records.ts'
import type { Circuit } from '../circuit.ts'
import { readMessageHead } from '../claims.ts'
import type { WorkAnnouncer } from '../due-accounts.ts'

export interface Rerouter {
  /** Whether the sink has a fallback. */
  hasFallback(sink: string): boolean
  /** Reroutes an item, or all members of a frozen message; returns how many items moved. */
  reroute(ledger: AccountLedger, ref: string, paging?: Paging): Promise<number>
  /** Reroutes items of one sink, the worst first; returns the references of those that moved. */
  rerouteItems(ledger: AccountLedger, refs: readonly string[], paging?: Paging): Promise<string[]>
  /** Unfreezes a message, or continues to. `groups`: default: those of a sink that is blocked. */
  unfreeze(
    ledger: AccountLedger,
    ref: string,
    groups?: Readonly<Record<string, Group>>,
  ): Promise<UnfreezeResult>
}

interface RerouterOptions {
  outlets: ReadonlyMap<string, Outlet>
  ledgers: readonly AccountLedger[]
  drains: Pick<WorkAnnouncer, 'announceChanges'>
  metrics: Metrics
  /** Left out: the daemon's. */
  timings?: Pick<Timings, 'fallbackWaitMs'>
}

/** An attempt that is still open this long after the send timeout died with its process. */
const staleGraceMs = 60_000

const itemsPerStep = 100

const wholePass: Paging = { mayContinue: () => Promise.resolve(true), alive: () => undefined }

export function createRerouter(options: RerouterOptions): Rerouter {
  const { outlets, ledgers } = options

  async function rerouteItems(
    ledger: AccountLedger,
    refs: readonly string[],
    { mayContinue, alive, takes = () => true }: Paging = wholePass,
  ): Promise<string[]> {
    const rerouted: string[] = []
    for (let at = 0; at < refs.length && (await mayContinue()); at += itemsPerStep) {
      const found = await readItems(ledger, refs.slice(at, at + itemsPerStep))
      const candidates = found.filter((item) => !isCanary(item) && takes(item.item.destination))
      rerouted.push(...(await rerouteFound(options, ledger, candidates.toSorted(worstFirst))))
      alive()
    }
    return rerouted
  }

  const unfreeze: Rerouter['unfreeze'] = async (ledger, ref, groups) => {
    const outlet = outlets.get(parseRef(ref).sink)
    return unfreezeMessage(ledger, ref, {
      ledgers,
      staleMs: staleAfterMs(outlet),
      batchWaitMs: outlet?.batchWaitMs,
      groups: groups ?? blockedGroups(outlet),
    })
  }

  return {
    hasFallback: (sink) => outlets.get(sink)?.fallback !== undefined,
    rerouteItems,
    unfreeze,
    async reroute(ledger, ref, paging) {
      const parsed = parseRef(ref)
      if (parsed.kind === 'item') return (await rerouteItems(ledger, [ref], paging)).length
      if (parsed.kind !== 'batch') return 0
      const members = await readMessageRefs(ledgers, ledger, ref, paging?.takes)
      if (members === undefined) return 0
      if ((await unfreeze(ledger, ref)) !== 'open') return 0
      let count = 0
      for (const { holder, refs } of members) {
        count += (await rerouteItems(holder, refs, paging)).length
      }
      return count
    },
  }
}

function staleAfterMs(outlet: Outlet | undefined): number {
  return (outlet?.sendTimeoutMs ?? 0) + staleGraceMs
}

/** Canaries are not rerouted: a test of one sink says nothing about another. */
function isCanary({ record, item }: FoundItem): boolean {
  return record.type === 'canary' && record.sightings[item.sighting]?.feed === ownFeed
}

/** Undefined: the message is for a destination that is not meant. */
async function readMessageRefs(
  ledgers: readonly AccountLedger[],
  lead: AccountLedger,
  ref: string,
  takes: Paging['takes'] = () => true,
): Promise<{ holder: AccountLedger; refs: string[] }[] | undefined> {
  const { destination, refs: inBatch } = await readMessageHead(lead, ref)
  if (destination !== undefined && !takes(destination)) return undefined
  if (inBatch.length > 0) return [{ holder: lead, refs: inBatch }]
  const messageId = ref.split(':')[1] ?? ''
  return Promise.all(
    ledgers.map(async (holder) => ({ holder, refs: await readFrozenRefs(holder, messageId) })),
  )
}

async function rerouteFound(
  { outlets, drains, metrics, timings }: RerouterOptions,
  ledger: AccountLedger,
  found: readonly FoundItem[],
): Promise<string[]> {
  const rerouted: string[] = []
  const changes: ItemChange[] = []
  for (const item of found) {
    const { sink: name, severity } = item.item
    const outlet = outlets.get(name)
    if (outlet?.fallback === undefined) continue
    const fallback = outlets.get(outlet.fallback)
    const from = { from: name, severity }
    const result = await rerouteItem(ledger, item, {
      to: outlet.fallback,
      targets: fallback ? fallbackTargets(fallback, from, timings) : [],
      staleMs: staleAfterMs(outlet),
    })
    if (result.status !== 'done') continue
    rerouted.push(item.ref)
    changes.push(...result.made)
    metrics.sinkFallbacksTotal.inc({ sink: name })
    metrics.itemsSettledTotal.inc({ sink: name, outcome: 'diverted' })
  }
  for (const { k } of changes) metrics.itemsCreatedTotal.inc({ sink: k })
  drains.announceChanges(ledger.account, changes)
  return rerouted
}

function fallbackTargets(
  fallback: Outlet,
  from: { from: string; severity: Severity },
  timings: RerouterOptions['timings'],
): MoveTarget[] {
  return listMoveTargets(fallback, (destination) =>
    fallbackGroup(fallback, { ...from, destination }, timings),
  )
}

export interface RerouteContext {
  ledger: AccountLedger
  sink: string
  rerouter: Rerouter
  nowMs: number
}

/** Timers of a sink that takes nothing are postponed again and again, by no more than this. */
const maxPostponeMs = 15_000

/** Reroutes everything that waits for one sink, in whatever form; returns how many items moved. */
export async function rerouteAll(context: RerouteContext, paging: Paging): Promise<number> {
  const counts = [await rerouteDue(context, paging)]
  for (const timer of await readSinkTimers(context)) {
    counts.push(await rerouteGroup(context, timer, paging))
  }
  return counts.reduce((sum, count) => sum + count, 0)
}

/** Reroutes single items, frozen messages, and what waits in the sink's batch. */
async function rerouteDue(context: RerouteContext, paging: Paging): Promise<number> {
  const { ledger, sink, rerouter } = context
  let items = 0
  async function reroutePage(refs: readonly string[]): Promise<number> {
    const kinds = Map.groupBy(refs, (ref) => parseRef(ref).kind)
    const rerouted = await rerouter.rerouteItems(ledger, kinds.get('item') ?? [], paging)
    items += rerouted.length
    let unfrozen = 0
    for (const ref of kinds.get('batch') ?? []) {
      const count = await rerouter.reroute(ledger, ref, paging)
      items += count
      unfrozen += count > 0 ? 1 : 0
    }
    return rerouted.length + unfrozen
  }
  await forEachPage((page) => readPendingRefs(ledger, sink, page), reroutePage, paging)
  return items + (await rerouteMembers(context, sink, paging))
}

/** Returns the sink's due timers: of groups, digests and muted items. */
async function readSinkTimers({ ledger, sink, nowMs }: RerouteContext): Promise<string[]> {
  const count = 10_000
  const timers = await readDueTimers(ledger, { nowMs: nowMs + maxPostponeMs, count })
  return timers.filter((timer) => parseRef(timer).sink === sink)
}

/**
 * Reroutes a group's members, and first those in a message whose flush was interrupted while
 * freezing.
 */
async function rerouteGroup(
  context: RerouteContext,
  timer: string,
  paging: Paging,
): Promise<number> {
  const { ledger, sink, rerouter, nowMs } = context
  const ref = parseRef(timer)
  if (ref.kind !== 'group') return 0
  const flush = await peekFlush(ledger, { id: ref.id, nowMs })
  if (paging.takes?.(flush.destination) === false) return 0
  const cutOff = await rerouter.reroute(ledger, `b:${deriveMessageId(flush)}:${sink}`, paging)
  return cutOff + (await rerouteMembers(context, ref.id, paging))
}

async function rerouteMembers(
  { ledger, rerouter }: RerouteContext,
  id: string,
  paging: Paging,
): Promise<number> {
  let items = 0
  async function reroutePage(refs: readonly string[]): Promise<number> {
    const rerouted = await rerouter.rerouteItems(ledger, refs, paging)
    items += rerouted.length
    return rerouted.length
  }
  await forEachPage((page) => readMemberRefs(ledger, id, page), reroutePage, paging)
  return items
}

/**
 * Makes retries due that wait because their sink failed. It is one while the circuit is half open
 * and nothing else probes it, all once it has closed. Their own times may be hours away.
 */
export interface RetryNow {
  /**
   * Ensures that a sink with a half-open circuit is tried within seconds. Returns false if the
   * circuit is not half open, the sink is paused, or nothing for these destinations is due or waits
   * for a retry. With `circuitName`: the same of the circuit of one destination, which is the only
   * one then.
   */
  ensureProbe(
    sink: string,
    destinations: readonly Pick<Destination, 'id'>[],
    circuitName?: string,
  ): Promise<boolean>
  retryAll(sink: string): Promise<void>
}

interface RetryNowOptions {
  circuit: Pick<Circuit, 'read'>
  drains: Pick<WorkAnnouncer, 'announce' | 'ledgersFor'>
  clock: Clock
}

/** Where nothing waits for a probe, none is looked for again so soon, unless its circuit opens anew. */
const lookAgainMs = 900_000

/** Most retries that are made due before it is said. */
const retriesPerStep = 500

export function createRetryNow(options: RetryNowOptions): RetryNow {
  const { drains, circuit, clock } = options
  /** By circuit: until when it was open, and when it is looked at again, ms. */
  const idle = new Map<string, { untilMs: number | undefined; againMs: number }>()
  return {
    async ensureProbe(sink, destinations, circuitName = sink) {
      const nowMs = clock.now()
      const { state, paused, untilMs } = await circuit.read(circuitName, nowMs)
      if (state !== 'half_open' || paused !== undefined) return false
      const last = idle.get(circuitName)
      if (last?.untilMs === untilMs && nowMs < (last?.againMs ?? 0)) return false
      const only = destinations.map(({ id }) => id)
      for (const ledger of drains.ledgersFor(sink))
        if ((await retryInLedger(options, ledger, sink, { max: 1, only })) > 0) return true
      idle.set(circuitName, { untilMs, againMs: nowMs + lookAgainMs })
      return false
    },
    async retryAll(sink) {
      for (const ledger of drains.ledgersFor(sink)) {
        const step = { max: retriesPerStep }
        while ((await retryInLedger(options, ledger, sink, step)) === retriesPerStep);
      }
    },
  }
}

async function retryInLedger(
  { drains }: RetryNowOptions,
  ledger: AccountLedger,
  sink: string,
  wanted: RetriesWanted,
): Promise<number> {
  const refs = await makeRetriesDue(ledger, sink, wanted)
  if (refs.length > 0) drains.announce(ledger.account, [{ sink }])
  return refs.length
}

/** Lets long work run in pages, so that it can be interrupted and reports progress. */
export interface Paging {
  /** Checked before each page. */
  mayContinue: () => Promise<boolean>
  /** Called after each page. */
  alive: () => void
  /** Whose items are meant, as of the last `mayContinue`; left out: everybody's. */
  takes?: (destination: string) => boolean
}

const pageLength = 200

/**
 * Pages through a list that shrinks as it is handled; `handlePage` returns how many of the page
 * left it.
 */
export async function forEachPage(
  read: (page: { offset: number; count: number }) => Promise<string[]>,
  handlePage: (refs: readonly string[]) => Promise<number>,
  { mayContinue, alive }: Paging = wholePass,
): Promise<void> {
  for (let offset = 0; await mayContinue(); alive()) {
    const refs = await read({ offset, count: pageLength })
    offset += refs.length - (await handlePage(refs))
    if (refs.length < pageLength) return
  }
}
