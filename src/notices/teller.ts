import type { ThreatEvent } from '../events/threat-event.ts'
import { acceptPage, type Page } from '../intake/intake.ts'
import type { Book } from '../ledger/book.ts'
import type { MadeWork } from '../ledger/collecting.ts'
import { openFeed } from '../ledger/feed-state.ts'
import { ownFeed } from '../events/own-feed.ts'
import type { Clock } from '../runtime/clock.ts'

/** How an event of Tocsin's own enters the ledger. */
export interface TellerOptions {
  book: Book
  destinationsOf: (sink: string) => readonly string[]
  batchWaitMs: (sink: string) => number | undefined
  /** Queues the work that a commit made; may fail, a slow pass finds it all the same. */
  queue: (account: string, made: MadeWork[]) => Promise<void>
  generation: () => number
  clock: Clock
}

/** Straight to these sinks, past the routing tree. */
export interface Way {
  route: 'notices' | 'canary' | 'reports'
  why: string
  sinks: readonly string[]
}

/** Takes the event in; once it returns, the ledger has it. One that it has already changes nothing. */
export type Tell = (event: ThreatEvent, way: Way) => Promise<void>

/** Other replicas tell too: so many may come between reading the fence and the commit. */
const maxTries = 10

export function createTeller(options: TellerOptions): Tell {
  const { book, batchWaitMs, queue } = options
  return async (event, way) => {
    for (let tries = 0; tries < maxTries; tries += 1) {
      const { sequence } = await openFeed(book, ownFeed, 0)
      const accepted = await acceptPage(
        book,
        pageOf(options, { event, way, sequence }),
        batchWaitMs,
      )
      if (accepted.status !== 'committed') continue
      if (accepted.made.length > 0) await queue(book.account, accepted.made)
      return
    }
    throw new Error(`${event.uid} was not taken in: others were first ${maxTries} times`)
  }
}

function pageOf(
  { destinationsOf, generation, clock }: TellerOptions,
  { event, way, sequence }: { event: ThreatEvent; way: Way; sequence: number },
): Page {
  const { route, why, sinks } = way
  const nowMs = clock.now()
  const items = sinks.flatMap((sink) =>
    destinationsOf(sink).map((destination) => ({ sink, destination, routes: [route] })),
  )
  return {
    feed: ownFeed,
    labels: {},
    sequence,
    generation: generation(),
    // never another fingerprint: which configuration tells makes no difference to this feed
    walk: { fingerprint: ownFeed, body: {}, cursor: null, reason: 'first', startedAtMs: nowMs },
    requestedAtMs: nowMs,
    isCaughtUp: true,
    isBackfilling: false,
    events: [
      { event, decisions: [{ route, path: [route], why: [why] }], items, wantsDetail: false },
    ],
    malformed: [],
  }
}
