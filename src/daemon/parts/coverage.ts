/** How far the feeds were read, for digests. */
import type { Config } from '../../config/config.ts'
import type { ExpectedPolling } from '../../config/warnings.ts'
import type { CoverageReading } from '../../grouping/flush-context.ts'
import type { DigestFacts } from '../../messages/summary.ts'
import { createReach, type FeedFacts } from '../../routing/reach.ts'
import type { RouteNode } from '../../routing/router.ts'
import { countQuarantined, peekFeed } from '../../store/feed-state.ts'
import type { EngineContext } from '../context.ts'

type CoverageContext = Pick<EngineContext, 'config' | 'clock' | 'ledgers'>

/** How far a feed may fall behind. */
export type LagOf = (feed: string) => Pick<ExpectedPolling, 'lagObjectiveMs'>

type FeedCoverage = DigestFacts['feeds'][number]

/** The sinks that the events of a feed may reach, and what these fall back to. */
function createSinkFinder(
  { sinks }: Pick<Config, 'sinks'>,
  root: RouteNode,
): (feed: FeedFacts) => ReadonlySet<string> {
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

/** Reads for every feed when it was last read to its end and what could not be read, for digests. */
export function createCoverage(
  { config, clock, ledgers }: CoverageContext,
  root: RouteNode,
  expectedPolling: LagOf,
): () => Promise<CoverageReading> {
  const findSinks = createSinkFinder(config, root)
  async function readFeed(
    { name, account }: FeedFacts,
    nowMs: number,
    quarantines: ReadonlyMap<string, Readonly<Record<string, number>>>,
  ): Promise<FeedCoverage> {
    const ledger = ledgers.find((one) => one.account === account)
    const state = ledger && (await peekFeed(ledger, name, nowMs))
    const { lastCaughtUpMs = null, unreadable } = state ?? {}
    const isBehind =
      lastCaughtUpMs === null || nowMs - lastCaughtUpMs > expectedPolling(name).lagObjectiveMs
    const quarantined = quarantines.get(account)?.[name]
    return {
      feed: name,
      lastCaughtUpMs,
      isBehind,
      ...(unreadable && { isUnreadable: true }),
      ...(quarantined && { quarantined }),
    }
  }
  return async () => {
    const nowMs = clock.now()
    const quarantines = new Map(
      await Promise.all(
        ledgers.map(async (ledger) => [ledger.account, await countQuarantined(ledger)] as const),
      ),
    )
    // all at once: one after the other, thousands of feeds take seconds
    const reading = config.feeds.map(async (feed) => ({
      coverage: await readFeed(feed, nowMs, quarantines),
      sinks: findSinks(feed),
    }))
    const feeds = await Promise.all(reading)
    return (sink) => feeds.filter(({ sinks }) => sinks.has(sink)).map(({ coverage }) => coverage)
  }
}
