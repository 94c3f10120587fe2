/** The repair after an audit: takes in the events and malformed items that it found missing. */
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
  /** How long a sink collects a batch; undefined if it sends singly. */
  batchWaitMs: (sink: string) => number | undefined
  /** Makes sinks look at the items that were made; if it fails, a slow pass finds them. */
  queue: (account: string, made: ItemChange[]) => Promise<void>
}

const eventsAtOnce = 50
/** How often the fence is read again because another repair was first. */
const maxTries = 10

/**
 * Takes in what an audit found missing, by the same commit as a page of the feed, whose scans stay
 * where they are. Malformed items go to the quarantine. Resolves with what is still missing, which
 * is not empty if more than a thousand were missing.
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
    // planned at each try: the group that an item joins depends on the time
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
    generation: 0, // never superseded: repairs have one scan for all configurations
    scan: { fingerprint: 'repair', body: {}, cursor: null, reason: 'again', startedAtMs: nowMs },
    isRepair: true,
    requestedAtMs: nowMs,
    isCaughtUp: false,
    isBackfilling: false,
    ...items,
  }
}
