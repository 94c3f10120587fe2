/**
 * The daemon's poller and audit on one book, turn by turn: pages are asked for, routed and committed as
 * ever; nothing is queued or sent.
 */
import { buildAuditParts } from '../../src/app/build-audits.ts'
import { collectingSinks } from '../../src/app/build-flusher.ts'
import { buildPlanner } from '../../src/app/build-planner.ts'
import { buildSecrets } from '../../src/app/build-secrets.ts'
import { buildService, type Service } from '../../src/app/build-service.ts'
import { buildSink } from '../../src/app/build-sinks.ts'
import { polledFeeds } from '../../src/app/polled-feeds.ts'
import type { Shared } from '../../src/app/shared.ts'
import { auditFeed, type AuditOptions } from '../../src/audit/audit-feed.ts'
import { auditWindow } from '../../src/audit/audit-window.ts'
import type { AuditResult } from '../../src/audit/finding.ts'
import type { LoadedConfig } from '../../src/config/load.ts'
import type { PolledFeed } from '../../src/feeds/polled-feed.ts'
import { createPoller, type Poller, type PollOutcome } from '../../src/feeds/poller.ts'
import { readAccounting } from '../../src/ledger/accounting.ts'
import type { Book } from '../../src/ledger/book.ts'
import { openFeed } from '../../src/ledger/feed-state.ts'
import { hasRoom } from '../../src/redis/safety.ts'
import { createRouter } from '../../src/routing/router.ts'
import { readQuota } from '../../src/service/quota.ts'
import { sharedOf } from './daemons.ts'

export interface Reading {
  pages: number
  items: number
}

export interface Reader {
  /** As they are configured, in the file's order. */
  feeds: readonly PolledFeed[]
  /** Reads and commits on this book from now on. */
  use(book: Book): void
  /** At most fifty pages. */
  turn(feed: PolledFeed, kind: 'feed' | 'sweep'): Promise<PollOutcome>
  /** Throws where it does not come to the end. */
  toEnd(feed: PolledFeed, kind: 'feed' | 'sweep'): Promise<Reading>
  audit(feed: PolledFeed, backMs: number): Promise<AuditResult & Pick<Reading, 'pages'>>
  close(): Promise<void>
}

const { signal } = new AbortController()

export function createReader(loaded: LoadedConfig): Reader {
  const shared = sharedOf(loaded)
  const { config, redis } = shared
  const service = buildService(shared)
  const sinks = new Map(config.sinks.map((sink) => [sink.name, buildSink(sink, shared)]))
  const plans = {
    router: createRouter(config.route),
    collecting: { sinks: collectingSinks(shared, sinks) },
    secrets: buildSecrets(shared),
  }
  let pages = 0
  const poller = pollerOf(shared, service, { ...plans, onPage: () => (pages += 1) })
  const auditParts = buildAuditParts(shared, service, plans)
  const turn: Reader['turn'] = (feed, kind) => poller.pollOnce(feed, { kind, signal })

  return {
    feeds: polledFeeds(config),
    use: (book) => void shared.books.splice(0, Infinity, book),
    turn,
    async toEnd(feed, kind) {
      const before = { pages, items: await itemsOf(bookOf(shared), feed) }
      let outcome = await turn(feed, kind)
      while (outcome.status === 'more') outcome = await turn(feed, kind)
      if (outcome.status !== 'caught_up') throw new Error(`not read to its end: ${outcome.status}`)
      const items = (await itemsOf(bookOf(shared), feed)) - before.items
      return { pages: pages - before.pages, items }
    },
    audit: (feed, backMs) => audit(auditParts(feed), feed, backMs),
    async close() {
      await service.close()
      for (const sink of sinks.values()) await sink.close()
      redis.disconnect()
    },
  }
}

type Plans = Parameters<typeof buildAuditParts>[2]

function pollerOf(
  shared: Shared,
  service: Service,
  { router, collecting, secrets, onPage }: Plans & { onPage: () => void },
): Poller {
  const { redis, keys, clock, logger, metrics } = shared
  return createPoller({
    client: (account) => service.client(account),
    book: () => bookOf(shared),
    plan: buildPlanner(shared, router, collecting.sinks),
    batchWaitMs: () => undefined,
    queue: () => Promise.resolve(),
    generation: () => 1,
    hasRoom: () => hasRoom(redis),
    quotaOf: (account) => readQuota(redis, keys, account),
    pairIdOf: secrets.pairId,
    clock,
    logger,
    metrics: { ...metrics, feedPagesTotal: { inc: onPage } },
  })
}

function bookOf({ books: [book] }: Shared): Book {
  if (!book) throw new Error('no book is in use')
  return book
}

async function itemsOf(book: Book, { name }: PolledFeed): Promise<number> {
  return (await readAccounting(book)).feeds[name]?.fetched ?? 0
}

async function audit(
  parts: AuditOptions,
  feed: PolledFeed,
  backMs: number,
): Promise<AuditResult & Pick<Reading, 'pages'>> {
  const { book } = parts
  const window = auditWindow(book, feed, await openFeed(book, feed.name, feed.startMs), backMs)
  if (typeof window === 'string') throw new Error(`there is nothing to audit: ${window}`)
  const steps = auditFeed(parts, feed, window, { kind: 'sweep', signal })
  for (let pages = 0; ; pages += 1) {
    const step = await steps.next()
    if (step.done) return { ...step.value, pages }
  }
}
