/** Builds the flusher of groups and digests. */
import type { Circuit } from '../../delivery/circuit.ts'
import { isBlocked } from '../../delivery/relief/failover.ts'
import type { Drains } from '../../delivery/drains.ts'
import type { RetryNow } from '../../delivery/relief/reroute.ts'
import { countSuppressed, type SuppressionRules } from '../../grouping/suppression-rules.ts'
import { createFlusher, type Flusher, type PassControl } from '../../grouping/flusher.ts'
import type { Outlet } from '../../grouping/placement.ts'
import { createPageAddress } from '../../messages/page-links.ts'
import type { Router } from '../../routing/router.ts'
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
