/** Builds the flusher, the suppression rules and the silences in force. */
import type { Circuit } from '../../delivery/circuit.ts'
import { isBlocked } from '../../delivery/relief/failover.ts'
import { readSilences } from '../../delivery/silences.ts'
import type { Drains } from '../../delivery/drains.ts'
import type { RetryNow } from '../../delivery/relief/reroute.ts'
import type { SuppressionInput, SuppressionRules } from '../../grouping/flush-context.ts'
import { createFlusher, type Flusher, type PassControl } from '../../grouping/flusher.ts'
import type { Outlet } from '../../grouping/placement.ts'
import type { Metrics } from '../../lib/metrics/metrics.ts'
import { createPageAddress } from '../../messages/page-links.ts'
import { type InhibitRule, targetKeys } from '../../routing/inhibition.ts'
import type { Router } from '../../routing/router.ts'
import type { Silence } from '../../routing/silences.ts'
import { allowsAll, decideVerdict } from '../../routing/suppression.ts'
import { sinkTypeOf } from '../../sinks/sink-types.ts'
import type { AccountLedger } from '../../store/account-ledger.ts'
import type { Suppression } from '../../store/records.ts'
import { areInhibited, removeSilence } from '../../store/silences.ts'
import { type EngineContext, standingOf } from '../context.ts'
import { createCoverage, type LagOf } from './coverage.ts'

interface FlusherParts {
  outlets: ReadonlyMap<string, Outlet>
  router: Router
  rules: SuppressionRules
  circuit: Circuit
  retryNow: Pick<RetryNow, 'ensureProbe'>
  drains: Pick<Drains, 'announce'>
  expectedPolling: LagOf
}

/** Flushes what is due in groups and digests; the sinks with their grouping settings. */
export interface GroupingParts extends Pick<Flusher, 'noteGroups'> {
  sinks: ReadonlyMap<string, Outlet>
  flushGroupsOnce(control: PassControl): Promise<unknown>
  flushDigestsOnce(control: PassControl): Promise<unknown>
}

export function buildFlusher(context: EngineContext, parts: FlusherParts): GroupingParts {
  const { config, clock, metrics, timings } = context
  const { router, outlets } = parts
  const flusher = createFlusher({
    ...context,
    sinks: outlets,
    rules: parts.rules,
    intervalMs: (route) =>
      (route === null ? router.root : router.node(route))?.groupIntervalMs ?? defaultIntervalMs,
    isBlocked: (name, destination) =>
      isBlocked({ ...parts, clock }, { name, ...outlets.get(name) }, destination),
    standing: standingOf(context),
    readCoverage: createCoverage(context, router.root, parts.expectedPolling),
    pageAddress: createPageAddress(config.http.publicUrl),
    announce: (account, work) => parts.drains.announce(account, work),
    onSuppressed: (sink, severity, reason) => countSuppressed(metrics, sink, severity, reason),
  })
  return {
    sinks: outlets,
    noteGroups: (account) => flusher.noteGroups(account),
    flushGroupsOnce: (control) => flusher.flushGroupsOnce({ ...control, restMs: timings.healMs }),
    async flushDigestsOnce(control) {
      await flusher.ensureDigestsOnce()
      await flusher.flushDigestsOnce(control)
    },
  }
}

/** For a group whose route is gone (route of the file, group_interval). */
const defaultIntervalMs = 5 * 60_000

/** Counts an item that was settled without a message. */
export function countSuppressed(
  metrics: Metrics,
  sink: string,
  severity: string,
  reason: Suppression,
): void {
  metrics.suppressedTotal.inc({ sink, severity, reason })
  metrics.itemsSettledTotal.inc({ sink, outcome: 'suppressed' })
}

export function buildSuppressionRules(
  { config, clock }: Pick<EngineContext, 'config' | 'clock'>,
  router: Router,
  silences: () => readonly Silence[],
): SuppressionRules {
  const { inhibitRules, timeIntervals } = config
  const isForPeople = (name: string): boolean => {
    const sink = config.sinks.find((one) => one.name === name)
    return sink === undefined || sinkTypeOf(sink).audience === 'people'
  }
  const setup = { router, inhibitRules, timeIntervals, silences, isForPeople }
  return {
    async decide(ledger, items) {
      const nowMs = clock.now()
      const inhibiting = await readInhibiting(inhibitRules, { ledger, nowMs }, items)
      return items.map((item, i) =>
        decideVerdict(setup, { ...item, inhibitedBy: inhibiting[i] }, nowMs),
      )
    },
    allowsAll: (sink) => allowsAll(setup, sink),
  }
}

/** Resolves with the rule that inhibits each item, if any. */
async function readInhibiting(
  inhibitRules: readonly InhibitRule[],
  { ledger, nowMs }: { ledger: AccountLedger; nowMs: number },
  items: readonly SuppressionInput[],
): Promise<(string | undefined)[]> {
  const targets = items.flatMap(({ recordId, event }, place) =>
    targetKeys(inhibitRules, event).map((target) => ({ ...target, place, recordId })),
  )
  const answers = await areInhibited(ledger, targets, nowMs)
  return items.map((_item, at) => targets.find(({ place }, i) => place === at && answers[i])?.rule)
}

export interface LiveSilences {
  /** Silences of the file and those made by command, as of the last refresh. */
  current(): readonly Silence[]
  /** Reads the silences again; one that cannot be read silences nothing and is logged once. */
  refreshOnce(): Promise<void>
}

/** How long an ended silence stays listed. */
const keepEndedMs = 7 * 86_400_000

export function createLiveSilences({
  config,
  redis,
  keys,
  clock,
  logger,
}: Pick<EngineContext, 'config' | 'redis' | 'keys' | 'clock' | 'logger'>): LiveSilences {
  let commandSilences: Silence[] = []
  const unreadable = new Set<string>()

  function warnUnreadable(id: string): void {
    if (!unreadable.has(id))
      logger.warn({ silence: id }, 'silence cannot be read: it silences nothing')
    unreadable.add(id)
  }

  return {
    current: () => [...config.silences, ...commandSilences],
    async refreshOnce() {
      const found = await readSilences(redis, keys)
      found.unreadable.forEach(warnUnreadable)
      commandSilences = found.silences
      for (const { id, endsAtMs } of commandSilences) {
        if (endsAtMs < clock.now() - keepEndedMs) await removeSilence(redis, keys, id)
      }
    },
  }
}
