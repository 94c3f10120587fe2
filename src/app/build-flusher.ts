import type { ExpectedPolling } from '../config/lane-outlook.ts'
import { ensureDigests } from '../digest/digest-turn.ts'
import { createFlusher } from '../digest/flusher.ts'
import type { Gate } from '../digest/gate.ts'
import type { CollectingSink } from '../digest/placement.ts'
import type { TurnOptions } from '../digest/turn-options.ts'
import { readHoldings } from '../ledger/accounts.ts'
import type { Suppression } from '../ledger/records.ts'
import type { Metrics } from '../runtime/metrics.ts'
import { peekFeed } from '../ledger/feed-state.ts'
import { countQuarantined } from '../ledger/quarantine.ts'
import type { DigestFacts } from '../messages/summary.ts'
import type { Router } from '../routing/router.ts'
import { createSchedule } from '../runtime/cron-schedule.ts'
import type { Circuit } from '../delivery/circuit.ts'
import type { Wake } from '../delivery/relief/wake.ts'
import type { Drains } from '../delivery/drains.ts'
import { createServiceLink } from '../service/service-links.ts'
import type { Sink } from '../sinks/sink.ts'
import { findBook, leftBooks, type Shared } from './shared.ts'

export interface FlusherParts {
  sinks: ReadonlyMap<string, Sink>
  router: Router
  gate: Gate
  circuit: Circuit
  wake: Pick<Wake, 'ensureTried'>
  drains: Pick<Drains, 'tell'>
  /** How far a feed may fall behind. */
  expected: (feed: string) => Pick<ExpectedPolling, 'lagObjectiveMs'>
}

/** One pass of everything that waits for company; the form in which sinks collect. */
export interface Collecting {
  sinks: ReadonlyMap<string, CollectingSink>
  flushOnce(): Promise<unknown>
}

export function buildFlusher(shared: Shared, parts: FlusherParts): Collecting {
  const options = buildTurns(shared, parts)
  const flusher = createFlusher(options)
  return {
    sinks: options.sinks,
    async flushOnce() {
      if (shared.generation.isActive) await ensureDigests(options, shared.clock.now())
      await flusher.flushOnce()
    },
  }
}

/** What makes messages of collections works with. */
export function buildTurns(shared: Shared, parts: FlusherParts): TurnOptions {
  const { config, clock, logger, metrics, books, generation } = shared
  return {
    books,
    sinks: collectingSinks(shared, parts.sinks),
    gate: parts.gate,
    intervalMs: (route) =>
      (route === null ? parts.router.root : parts.router.node(route))?.groupIntervalMs ??
      defaultIntervalMs,
    async isBlocked(sink) {
      const { state, paused } = await parts.circuit.read(sink, clock.now())
      const isShut = state === 'open' || state === 'disabled' || paused !== undefined
      // one message tries whether the sink is back: what waits for company goes on waiting
      return isShut || (state === 'half_open' && (await parts.wake.ensureTried(sink)))
    },
    mayHold: () => generation.isActive,
    coverage: (fromMs) => coverageOf(shared, parts.expected, fromMs),
    serviceLink: createServiceLink(config.accounts),
    tell: (account, work) => parts.drains.tell(account, work),
    onSuppressed: (sink, severity, reason) => countSuppressed(metrics, sink, severity, reason),
    clock,
    logger,
  }
}

/** For a group whose route is gone (route of the file, group_interval). */
const defaultIntervalMs = 5 * 60_000

/** The sinks as they collect: people's wait for company. */
export function collectingSinks(
  { config }: Pick<Shared, 'config'>,
  sinks: ReadonlyMap<string, Pick<Sink, 'destinations'>>,
): Map<string, CollectingSink> {
  return new Map(
    config.sinks.map((sink) => {
      const digest = sink.type === 'webhook' ? undefined : sink.digest
      const collecting: CollectingSink = {
        name: sink.name,
        isForPeople: sink.type !== 'webhook',
        destinations: sinks.get(sink.name)?.destinations ?? [],
        digest: digest && {
          schedule: createSchedule(digest),
          timeZone: digest.timeZone,
          immediate: digest.immediate,
          sendsEmpty: digest.sendsEmpty,
          maxItems: digest.maxItems,
        },
      }
      return [sink.name, collecting]
    }),
  )
}

/** Every feed's last time at its end, and what of it could not be read: what a digest cannot know. */
async function coverageOf(
  shared: Shared,
  expected: FlusherParts['expected'],
  fromMs: number,
): Promise<DigestFacts['feeds']> {
  const nowMs = shared.clock.now()
  const feeds: DigestFacts['feeds'] = []
  const quarantines = new Map(
    await Promise.all(
      shared.books.map(async (book) => [book, await countQuarantined(book, fromMs)] as const),
    ),
  )
  for (const { name, account } of shared.config.feeds) {
    const book = findBook(shared, account)
    const state = book && (await peekFeed(book, name, nowMs))
    const quarantined = book && quarantines.get(book)?.[name]
    const lastCaughtUpMs = state?.lastCaughtUpMs ?? null
    const isBehind =
      lastCaughtUpMs === null || nowMs - lastCaughtUpMs > expected(name).lagObjectiveMs
    feeds.push({
      feed: name,
      lastCaughtUpMs,
      isBehind,
      ...(quarantined && { quarantined: { fresh: quarantined.fresh, open: quarantined.open } }),
      ...(state?.unreadable && { isUnreadable: true }),
    })
  }
  return [...feeds, ...(await leftCoverage(shared, nowMs))]
}

/** Feeds of accounts that left, while something of theirs is still to be told: nothing more is read there. */
async function leftCoverage(shared: Shared, nowMs: number): Promise<DigestFacts['feeds']> {
  const feeds: DigestFacts['feeds'] = []
  for (const book of leftBooks(shared)) {
    const holdings = await readHoldings(book)
    for (const name of holdings.pendingTotal > 0 ? holdings.feeds : []) {
      const state = await peekFeed(book, name, nowMs)
      const lastCaughtUpMs = state?.lastCaughtUpMs ?? null
      feeds.push({ feed: name, lastCaughtUpMs, isBehind: false, hasLeft: true })
    }
  }
  return feeds
}

/** An item that was settled without a message. */
export function countSuppressed(
  metrics: Metrics,
  sink: string,
  severity: string,
  reason: Suppression,
): void {
  metrics.suppressedTotal.inc({ sink, severity, reason })
  metrics.itemsSettledTotal.inc({ sink, outcome: 'suppressed' })
}
