import type { PolledFeed } from '../feed-types/feed-type.ts'
import type { Sorting } from '../feeds/page.ts'
import { acceptPage, type MalformedItem, type Page, type RoutedEvent } from '../store/intake.ts'
import type { Book } from '../store/account-ledger.ts'
import type { MadeWork } from '../store/pending-items.ts'
import { openFeed } from '../store/feed-state.ts'
import type { Clock } from '../lib/clock.ts'
import { stillUnknown } from './audit-feed.ts'
import type { AuditResult, Finding } from './pages.ts'

export interface RepairOptions extends Pick<Sorting, 'plan'> {
  book: Book
  clock: Clock
  /** How long a sink collects a batch; undefined where it sends singly. */
  batchWaitMs: (sink: string) => number | undefined
  /** Queues the work that a commit made; may fail, a slow pass finds it all the same. */
  queue: (account: string, made: MadeWork[]) => Promise<void>
}

const atOnce = 50
/** Another repair may have been first: so many times the fence is read anew. */
const maxTries = 10

/**
 * Takes in what an audit found missing, by the same commit as a page of the feed, whose walks stay where
 * they are; what is malformed goes to the quarantine. What is missing still: more than a thousand were.
 */
export async function repair(
  options: RepairOptions,
  feed: PolledFeed,
  { missing, malformed }: Pick<AuditResult, 'missing' | 'malformed'>,
): Promise<Finding[]> {
  const events = missing.flatMap(({ routed }) => (routed ? [routed] : []))
  for (let at = 0; at < events.length; at += atOnce) {
    await takeIn(options, feed, { events: events.slice(at, at + atOnce), malformed: [] })
  }
  if (malformed.length > 0) await takeIn(options, feed, { events: [], malformed })
  return stillUnknown(options.book, feed.name, missing)
}

async function takeIn(
  options: RepairOptions,
  feed: PolledFeed,
  some: { events: RoutedEvent[]; malformed: MalformedItem[] },
): Promise<void> {
  const { book, batchWaitMs, queue, plan } = options
  for (let tries = 0; tries < maxTries; tries += 1) {
    const { repairSequence } = await openFeed(book, feed.name, feed.startMs)
    // planned now: where an item waits for company depends on the time
    const events = some.events.map((routed) => ({ ...routed, ...plan(routed.event) }))
    const page = pageOf(options, feed, { ...some, events }, repairSequence)
    const accepted = await acceptPage(book, page, batchWaitMs)
    if (accepted.status !== 'committed') continue
    await queue(book.account, accepted.made)
    if (!accepted.isBrokenOff) return
  }
  throw new Error(`feed ${feed.name}: others were first ${maxTries} times`)
}

function pageOf(
  { clock }: RepairOptions,
  { name, labels }: PolledFeed,
  some: Pick<Page, 'events' | 'malformed'>,
  sequence: number,
): Page {
  const nowMs = clock.now()
  return {
    feed: name,
    labels,
    sequence,
    generation: 0, // never superseded: it is the same walk for every configuration
    walk: { fingerprint: 'repair', body: {}, cursor: null, reason: 'again', startedAtMs: nowMs },
    isRepair: true,
    requestedAtMs: nowMs,
    isCaughtUp: false,
    isBackfilling: false,
    ...some,
  }
}
