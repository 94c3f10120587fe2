/** Puts Tocsin's own events into the ledger, and chooses the sink of a self-alert. */
import { ownFeed, type ThreatEvent } from '../../event.ts'
import type { Clock } from '../../lib/clock.ts'
import type { AccountLedger } from '../../store/account-ledger.ts'
import { acceptPage, type Page } from '../../store/intake.ts'
import type { ItemChange } from '../../store/pending-items.ts'
import type { SelfAlertsConfig } from './config.ts'

interface PublisherOptions {
  ledger: AccountLedger
  destinationsFor: (sink: string) => readonly string[]
  batchWaitMs: (sink: string) => number | undefined
  /** Announces the items of a commit. */
  queue: (account: string, made: ItemChange[]) => void
  /** The title of the event's messages. */
  titleOf: (event: ThreatEvent) => string
  generation: () => number
  clock: Clock
}

/** The sinks that get the event, past the routing tree. */
interface PublishTarget {
  route: 'notices' | 'canary' | 'reports'
  why: string
  sinks: readonly string[]
}

/**
 * Takes the event in; once this resolves, the ledger has it. An event that it already has changes
 * nothing.
 */
export type Publish = (event: ThreatEvent, way: PublishTarget) => Promise<void>

export function createPublisher(options: PublisherOptions): Publish {
  const { ledger, batchWaitMs, queue } = options
  return async (event, target) => {
    const accepted = await acceptPage(ledger, publishedPage(options, event, target), batchWaitMs)
    if (accepted.status !== 'committed') throw new Error(`${event.uid}: ${accepted.status}`)
    if (accepted.changes.length > 0) queue(ledger.account, accepted.changes)
  }
}

function publishedPage(
  { destinationsFor, titleOf, generation, clock }: PublisherOptions,
  event: ThreatEvent,
  { route, why, sinks }: PublishTarget,
): Page {
  const nowMs = clock.now()
  const items = sinks.flatMap((sink) =>
    destinationsFor(sink).map((destination) => ({ sink, destination, routes: [route] })),
  )
  return {
    feed: ownFeed,
    labels: {},
    generation: generation(),
    // A constant fingerprint: which configuration publishes makes no difference to this feed.
    scan: { fingerprint: ownFeed, body: {}, cursor: null, reason: 'first', startedAtMs: nowMs },
    requestedAtMs: nowMs,
    isCaughtUp: true,
    isBackfilling: false,
    events: [
      {
        event,
        title: titleOf(event),
        decisions: [{ route, path: [route], why: [why] }],
        items,
        wantsDetail: false,
      },
    ],
    malformed: [],
  }
}

/** What decides whether a configured sink is fit for self-alerts. */
interface TargetSink {
  name: string
  audience: 'people' | 'machines'
  fallback?: string | undefined
}

/**
 * Orders the sinks for self-alerts, first choice first: as the file says. If it names no second,
 * then the sink's fallback, then all others, sinks for people before webhooks.
 */
export function orderTargets(
  { sink, fallback: named }: Pick<SelfAlertsConfig, 'sink' | 'fallback'>,
  sinks: readonly TargetSink[],
): string[] {
  if (named !== undefined) return [sink, named]
  const { people = [], machines = [] } = Object.groupBy(sinks, ({ audience }) => audience)
  const others = [...people, ...machines].map(({ name }) => name)
  const { fallback = sink } = sinks.find(({ name }) => name === sink) ?? {}
  return [...new Set([sink, fallback, ...others])]
}

/**
 * Returns the first sink that takes messages and is not the subject of the alert. If none does:
 * `about` itself if it takes messages, else another sink where the alert waits; null: there is
 * none.
 */
export function chooseTarget(
  order: readonly string[],
  deafSinks: readonly string[],
  about: string | null,
): string | null {
  const takes = (sink: string): boolean => !deafSinks.includes(sink)
  const others = order.filter((sink) => sink !== about)
  const itself = order.filter((sink) => sink === about)
  return others.find(takes) ?? itself.find(takes) ?? others[0] ?? null
}
