/** How far the feeds were read, for digests. */
import type { Config } from '../../config/config.ts'
import type { ExpectedPolling } from '../../config/warnings.ts'
import type { CoverageReading } from '../../grouping/flush-context.ts'
import type { DigestFacts } from '../../messages/summary.ts'
import { createReach, type FeedFacts } from '../../routing/reach.ts'
import type { RouteNode } from '../../routing/router.ts'
import type { AccountLedger } from '../../store/account-ledger.ts'
import { readAccounting, sumPending, upstreamFeedNames } from '../../store/accounts.ts'
import { countQuarantined, peekFeed } from '../../store/feed-state.ts'
import { type EngineContext, leftLedgers } from '../context.ts'

type CoverageContext = Pick<EngineContext, 'config' | 'clock' | 'ledgers' | 'foreignAccounts'>

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

/**
 * Reads for every feed when it was last read to its end and what could not be read, for digests.
 * What is asked for a digest alone is what was set aside within its window, where anything was.
 */
export function createCoverage(
  context: CoverageContext,
  root: RouteNode,
  expectedPolling: LagOf,
): () => Promise<CoverageReading> {
  const findSinks = createSinkFinder(context.config, root)
  return () => readCoverage(context, findSinks, expectedPolling)
}

async function readCoverage(
  context: CoverageContext,
  findSinks: ReturnType<typeof createSinkFinder>,
  expectedPolling: LagOf,
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
    const ledger = context.ledgers.find((one) => one.account === account)
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
async function readLeftCoverage(context: CoverageContext, nowMs: number): Promise<ReadFeed[]> {
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
