/** A run of the demo as it stands: counters of the ledger, messages that arrived, what the feeds have read. */
import type { Config } from '../../config/config.ts'
import { expectPolling } from '../../config/lane-outlook.ts'
import type { FeedConfig } from '../../feeds/config.ts'
import { pendingOf, readAccounting, type Accounting } from '../../ledger/accounting.ts'
import type { Book } from '../../ledger/book.ts'
import { peekFeed, type FeedState } from '../../ledger/feed-state.ts'
import { systemClock } from '../../runtime/clock.ts'
import { demoSinks, sumOf, type Baseline, type Receipt } from './demo-evidence.ts'
import type { DemoSandbox } from './demo-sandbox.ts'
import type { DemoReading, FeedReading, SinkReading } from './demo-view.ts'

export interface Run {
  config: Config
  book: Book
  baseline: Baseline
  sandbox: Pick<DemoSandbox, 'shownAt' | 'credentialsShownAt'>
  received: readonly Receipt[]
  /** By feed: when the last sweep of this run that ended had begun; kept by every reading. */
  sweptAtMs: Map<string, number>
}

export async function readRun(run: Run): Promise<Omit<DemoReading, 'stage'>> {
  const now = await readAccounting(run.book)
  const feeds = await Promise.all(run.config.feeds.map((feed) => readFeed(run, feed)))
  return {
    caughtUpMs: Math.min(...feeds.map(({ state }) => state?.lastCaughtUpMs ?? 0)),
    feeds: feeds.map((feed) => feedReading(run, now, feed)),
    sinks: sinkReadings(run, now),
  }
}

/** Uids of what the service showed to every feed: its tail up to its end, and its last whole sweep. */
export async function shownTo(run: Run): Promise<string[]> {
  const shown = run.config.feeds.map(async (feed) => {
    const { state } = await readFeed(run, feed)
    const atMs = state?.lastCaughtUpMs ?? 0
    if (feed.type === 'credentials') return run.sandbox.credentialsShownAt(atMs)
    if (feed.type !== 'events') return []
    return run.sandbox.shownAt(feed.identifierGroup, atMs, run.sweptAtMs.get(feed.name))
  })
  return (await Promise.all(shown)).flat()
}

interface FeedNow {
  feed: FeedConfig
  nowMs: number
  /** undefined: it never polled. */
  state: FeedState | undefined
}

async function readFeed({ book, sweptAtMs }: Run, feed: FeedConfig): Promise<FeedNow> {
  const nowMs = systemClock.now()
  const state = await peekFeed(book, feed.name, nowMs)
  const { isDone = false, walk } = state?.sweep ?? {}
  if (isDone && walk) sweptAtMs.set(feed.name, walk.startedAtMs)
  return { feed, nowMs, state }
}

function feedReading(
  { baseline, config }: Run,
  now: Accounting,
  { feed: { name, labels }, nowMs, state }: FeedNow,
): FeedReading {
  const caughtUpMs = state?.lastCaughtUpMs
  const since = (word: 'fetched' | 'new' | 'late' | 'duplicate'): number =>
    (now.feeds[name]?.[word] ?? 0) - (baseline.accounting.feeds[name]?.[word] ?? 0)
  return {
    name,
    labels: Object.entries(labels)
      .map(([label, value]) => `${label}=${value}`)
      .join(' '),
    fetched: since('fetched'),
    new: since('new'),
    late: since('late'),
    duplicate: since('duplicate'),
    lagMs: caughtUpMs === undefined ? undefined : Math.max(0, nowMs - caughtUpMs),
    lagObjectiveMs: expectPolling(config).get(name)?.lagObjectiveMs ?? Infinity,
  }
}

function sinkReadings({ received }: Run, now: Accounting): SinkReading[] {
  return demoSinks.map((name) => {
    const account = now.sinks[name]
    const messages = received.filter(({ sink }) => sink === name)
    const collected = (account?.pending['group'] ?? 0) + (account?.pending['digest'] ?? 0)
    return {
      name,
      arrived: sumOf(messages, ({ events }) => events),
      messages: messages.length,
      collected,
      pending: account ? pendingOf(account) - collected : 0,
    }
  })
}
