import { ownFeed, type ThreatEvent } from '../event.ts'
import type { Clock } from '../lib/clock.ts'
import type { Book } from '../store/account-ledger.ts'
import { openFeed } from '../store/feed-state.ts'
import { acceptPage, type Page } from '../store/intake.ts'
import type { MadeWork } from '../store/pending-items.ts'
import type { SinkHealth } from './conditions.ts'
import type { NoticesConfig } from './config.ts'

/** How an event of Tocsin's own enters the ledger. */
interface TellerOptions {
  book: Book
  destinationsOf: (sink: string) => readonly string[]
  batchWaitMs: (sink: string) => number | undefined
  /** Queues the work that a commit made; may fail, a slow pass finds it all the same. */
  queue: (account: string, made: MadeWork[]) => Promise<void>
  generation: () => number
  clock: Clock
}

/** Straight to these sinks, past the routing tree. */
interface Way {
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

/** Which sink a notice goes through; pure. */

/** What of a configured sink decides whether it is fit for notices. */
interface WaySink {
  name: string
  type: string
  fallback?: string | undefined
}

/**
 * The sinks that may be told, the first choice first: as the file says; where it names no second, the
 * sink's fallback, then people's before machines', and people's of another type before more of the same:
 * what fails is often all of one type.
 */
export function orderWays({ sink, or }: NoticesConfig, sinks: readonly WaySink[]): string[] {
  if (or !== undefined) return [sink, or]
  const first = sinks.find(({ name }) => name === sink)
  const isMachine = ({ type }: WaySink): boolean => type === 'webhook'
  const rank = (one: WaySink): number => (isMachine(one) ? 2 : Number(one.type === first?.type))
  const others = sinks.toSorted((left, right) => rank(left) - rank(right)).map(({ name }) => name)
  const fallback = first?.fallback === undefined ? [] : [first.fallback]
  return [...new Set([sink, ...fallback, ...others])]
}

/**
 * The first that takes messages, and is not what the notice is about. Where none does, `about` itself
 * if it takes messages after all, and else one where the notice waits; null: there is none.
 */
export function chooseWay(
  order: readonly string[],
  sinks: readonly SinkHealth[],
  about: string | null,
): string | null {
  const takes = (sink: string): boolean => takesMessages(sinks, sink)
  const others = order.filter((sink) => sink !== about)
  const itself = order.filter((sink) => sink === about)
  return others.find(takes) ?? itself.find(takes) ?? others[0] ?? null
}

/** Whether what is sent to it now arrives, as far as is known. */
export function takesMessages(sinks: readonly SinkHealth[], sink: string): boolean {
  const health = sinks.find(({ name }) => name === sink)
  return health === undefined || (health.circuit === 'closed' && health.paused === undefined)
}
