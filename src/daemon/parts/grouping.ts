/** Builds the flusher, the suppression rules and the silences in force. */
import type { Config } from '../../config/config.ts'
import type { ExpectedPolling } from '../../config/warnings.ts'
import type { Circuit } from '../../delivery/circuit.ts'
import { isBlocked } from '../../delivery/relief/failover.ts'
import { readSilences } from '../../delivery/silences.ts'
import type { Drains } from '../../delivery/drains.ts'
import type { RetryNow } from '../../delivery/relief/reroute.ts'
import type {
  CoverageReading,
  FlushContext,
  SuppressionInput,
  SuppressionRules,
} from '../../grouping/flush-context.ts'
import { createFlusher, type Flusher, type PassControl } from '../../grouping/flusher.ts'
import type { Outlet } from '../../grouping/placement.ts'
import type { Metrics } from '../../lib/metrics/metrics.ts'
import { createPageAddress } from '../../messages/page-links.ts'
import type { DigestFacts } from '../../messages/summary.ts'
import { type InhibitRule, targetKeys } from '../../routing/inhibition.ts'
import { createReach, type FeedFacts } from '../../routing/reach.ts'
import type { RouteNode, Router } from '../../routing/router.ts'
import type { Silence } from '../../routing/silences.ts'
import { allowsAll, decideVerdict } from '../../routing/suppression.ts'
import { sinkTypeOf } from '../../sinks/sink-types.ts'
import type { AccountLedger } from '../../store/account-ledger.ts'
import { readAccounting, sumPending, upstreamFeedNames } from '../../store/accounts.ts'
import { countQuarantined, peekFeed } from '../../store/feed-state.ts'
import type { Suppression } from '../../store/records.ts'
import { areInhibited, removeSilence } from '../../store/silences.ts'
import { createLinkFilter } from '../../upstream/links.ts'
import { type EngineContext, findLedger, leftLedgers, standingOf } from '../context.ts'

export interface FlusherParts {
  outlets: ReadonlyMap<string, Outlet>
  router: Router
  rules: SuppressionRules
  circuit: Circuit
  retryNow: Pick<RetryNow, 'ensureProbe'>
  drains: Pick<Drains, 'announce'>
  /** How far a feed may fall behind. */
  expectedPolling: (feed: string) => Pick<ExpectedPolling, 'lagObjectiveMs'>
}

/** Flushes what is due in groups and digests; the sinks with their grouping settings. */
export interface GroupingParts extends Pick<Flusher, 'noteGroups'> {
  sinks: ReadonlyMap<string, Outlet>
  flushGroupsOnce(control: PassControl): Promise<unknown>
  flushDigestsOnce(control: PassControl): Promise<unknown>
}

export function buildFlusher(context: EngineContext, parts: FlusherParts): GroupingParts {
  const options = buildFlushContext(context, parts)
  const flusher = createFlusher(options)
  return {
    sinks: options.sinks,
    noteGroups: (account) => flusher.noteGroups(account),
    flushGroupsOnce: (control) =>
      flusher.flushGroupsOnce({ ...control, restMs: context.timings.healMs }),
    async flushDigestsOnce(control) {
      await flusher.ensureDigestsOnce()
      await flusher.flushDigestsOnce(control)
    },
  }
}

export function buildFlushContext(context: EngineContext, parts: FlusherParts): FlushContext {
  const { config, clock, logger, metrics, ledgers } = context
  const findSinks = createSinkFinder(config, parts.router.root)
  return {
    ledgers,
    sinks: parts.outlets,
    rules: parts.rules,
    intervalMs: (route) =>
      (route === null ? parts.router.root : parts.router.node(route))?.groupIntervalMs ??
      defaultIntervalMs,
    isBlocked: (name, destination) =>
      isBlocked({ ...parts, clock }, { name, ...parts.outlets.get(name) }, destination),
    standing: standingOf(context),
    readCoverage: () =>
      readCoverage(context, { expectedPolling: parts.expectedPolling, findSinks }),
    serviceLink: createLinkFilter(config.accounts),
    pageAddress: createPageAddress(config.http.publicUrl),
    announce: (account, work) => parts.drains.announce(account, work),
    onSuppressed: (sink, severity, reason) => countSuppressed(metrics, sink, severity, reason),
    clock,
    logger,
  }
}

/** For a group whose route is gone (route of the file, group_interval). */
const defaultIntervalMs = 5 * 60_000

type FeedCoverage = DigestFacts['feeds'][number]

/** The sinks that the events of a feed may reach, and what these fall back to. */
function createSinkFinder(
  { sinks }: Pick<Config, 'sinks'>,
  root: RouteNode,
): CoverageParts['findSinks'] {
  const reach = createReach(root)
  const fallbacks = new Map(sinks.map(({ name, fallback }) => [name, fallback]))
  const known = new Map<string, ReadonlySet<string>>()
  return (feed) => {
    let found = known.get(feed.name)
    if (!found) {
      const all = new Set(reach(feed))
      for (const sink of all) {
        const next = fallbacks.get(sink)
        if (next !== undefined) all.add(next)
      }
      known.set(feed.name, (found = all))
    }
    return found
  }
}

interface CoverageParts {
  expectedPolling: FlusherParts['expectedPolling']
  /** The sinks that a feed's events may reach. */
  findSinks: (feed: FeedFacts) => ReadonlySet<string>
}

/**
 * Reads for every feed when it was last read to its end and what could not be read, for digests.
 * What is asked for a digest alone is what was set aside within its window, where anything was.
 */
async function readCoverage(
  context: EngineContext,
  { expectedPolling, findSinks }: CoverageParts,
): Promise<CoverageReading> {
  const nowMs = context.clock.now()
  const quarantines = new Map(
    await Promise.all(
      context.ledgers.map(async (ledger) => [ledger, await countQuarantined(ledger)] as const),
    ),
  )
  // all at once: one after the other, thousands of feeds take seconds
  const reading = context.config.feeds.map(async (feed) => {
    const { name, account } = feed
    const ledger = findLedger(context, account)
    const state = ledger && (await peekFeed(ledger, name, nowMs))
    const lastCaughtUpMs = state?.lastCaughtUpMs ?? null
    const isBehind =
      lastCaughtUpMs === null || nowMs - lastCaughtUpMs > expectedPolling(name).lagObjectiveMs
    const unreadable = state?.unreadable ? { isUnreadable: true } : {}
    const coverage: FeedCoverage = { feed: name, lastCaughtUpMs, isBehind, ...unreadable }
    return { ledger, coverage, sinks: findSinks(feed) }
  })
  const feeds = [...(await Promise.all(reading)), ...(await readLeftCoverage(context, nowMs))]
  return async (sink, fromMs) => {
    const counts = await countFresh(quarantines, fromMs)
    return feeds
      .filter(({ sinks }) => sinks.has(sink))
      .map(({ ledger, coverage }) => {
        const count = ledger && counts.get(ledger)?.[coverage.feed]
        if (!count) return coverage
        const fresh = count.newestMs >= fromMs ? count.fresh : 0
        return { ...coverage, quarantined: { fresh, open: count.open } }
      })
  }
}

type QuarantineCounts = ReadonlyMap<AccountLedger, Awaited<ReturnType<typeof countQuarantined>>>

/** Counts as fresh what was set aside at `fromMs` or later, in the accounts where anything was. */
async function countFresh(known: QuarantineCounts, fromMs: number): Promise<QuarantineCounts> {
  const counting = [...known].map(async ([ledger, counts]) => {
    const hasFresh = Object.values(counts).some(({ newestMs }) => newestMs >= fromMs)
    return [ledger, hasFresh ? await countQuarantined(ledger, fromMs) : counts] as const
  })
  return new Map(await Promise.all(counting))
}

interface ReadFeed {
  ledger?: AccountLedger | undefined
  coverage: FeedCoverage
  /** Whose digests say so. */
  sinks: ReadonlySet<string>
}

/**
 * Feeds of accounts that left, for the sinks that items of theirs still wait for. They are not read
 * any more.
 */
async function readLeftCoverage(context: EngineContext, nowMs: number): Promise<ReadFeed[]> {
  const left: ReadFeed[] = []
  for (const ledger of leftLedgers(context)) {
    const { feeds, sinks: counts } = await readAccounting(ledger)
    const waiting = Object.entries(counts).filter(([, sink]) => sumPending(sink) > 0)
    if (waiting.length === 0) continue
    const sinks = new Set(waiting.map(([name]) => name))
    for (const feed of upstreamFeedNames(feeds)) {
      const state = await peekFeed(ledger, feed, nowMs)
      const lastCaughtUpMs = state?.lastCaughtUpMs ?? null
      left.push({ coverage: { feed, lastCaughtUpMs, isBehind: false, hasLeft: true }, sinks })
    }
  }
  return left
}

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
