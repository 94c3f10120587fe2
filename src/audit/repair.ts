import type { PolledFeed } from '../feed-types/feed-type.ts'
import type { SortOptions } from '../feeds/page.ts'
import { acceptPage, type MalformedItem, type Page, type RoutedEvent } from '../store/intake.ts'
import type { AccountLedger } from '../store/account-ledger.ts'
import type { ItemChange } from '../store/pending-items.ts'
import { openFeed } from '../store/feed-state.ts'
import type { Clock } from '../lib/clock.ts'
import { filterUnknown } from './audit-feed.ts'
import type { AuditResult, Finding } from './pages.ts'

export interface RepairOptions extends Pick<SortOptions, 'plan'> {
  ledger: AccountLedger
  clock: Clock
  /** How long a sink collects a batch; undefined where it sends singly. */
  batchWaitMs: (sink: string) => number | undefined
  /** Queues the work that a commit made; may fail, a slow pass finds it all the same. */
  queue: (account: string, made: ItemChange[]) => Promise<void>
}

const eventsAtOnce = 50
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
  for (let at = 0; at < events.length; at += eventsAtOnce) {
    await acceptItems(options, feed, { events: events.slice(at, at + eventsAtOnce), malformed: [] })
  }
  if (malformed.length > 0) await acceptItems(options, feed, { events: [], malformed })
  return filterUnknown(options.ledger, feed.name, missing)
}

async function acceptItems(
  options: RepairOptions,
  feed: PolledFeed,
  items: { events: RoutedEvent[]; malformed: MalformedItem[] },
): Promise<void> {
  const { ledger, batchWaitMs, queue, plan } = options
  for (let tries = 0; tries < maxTries; tries += 1) {
    const { repairSequence } = await openFeed(ledger, feed.name, feed.startMs)
    // planned now: where an item waits for company depends on the time
    const events = items.events.map((routed) => ({ ...routed, ...plan(routed.event) }))
    const page = repairPage(options, feed, { ...items, events }, repairSequence)
    const accepted = await acceptPage(ledger, page, batchWaitMs)
    if (accepted.status !== 'committed') continue
    await queue(ledger.account, accepted.changes)
    if (!accepted.isBrokenOff) return
  }
  throw new Error(`feed ${feed.name}: others were first ${maxTries} times`)
}

function repairPage(
  { clock }: RepairOptions,
  { name, labels }: PolledFeed,
  items: Pick<Page, 'events' | 'malformed'>,
  sequence: number,
): Page {
  const nowMs = clock.now()
  return {
    feed: name,
    labels,
    sequence,
    generation: 0, // never superseded: it is the same walk for every configuration
    scan: { fingerprint: 'repair', body: {}, cursor: null, reason: 'again', startedAtMs: nowMs },
    isRepair: true,
    requestedAtMs: nowMs,
    isCaughtUp: false,
    isBackfilling: false,
    ...items,
  }
}
