import type { ThreatEvent } from '../event.ts'
import type { PolledFeed, Quota } from '../feed-types/feed-type.ts'
import type { Clock } from '../lib/clock.ts'
import type { Logger } from '../lib/logger.ts'
import type { Metrics } from '../lib/metrics.ts'
import type { AccountLedger } from '../store/account-ledger.ts'
import type { RoutedEvent } from '../store/intake.ts'
import type { ItemChange } from '../store/pending-items.ts'
import type { Capabilities } from '../upstream/capabilities.ts'
import type { UpstreamClient } from '../upstream/client.ts'
import type { UpstreamReason } from '../upstream/error.ts'
import type { RescanBudget } from './rescan-plan.ts'

export interface PollerOptions {
  client: (account: string) => UpstreamClient
  ledger: (account: string) => AccountLedger
  /**
   * Fixes an event's way: pure. `isBacklog`: what the feed's first walk finds, to come as a summary;
   * `isFresh`: found by the tail on its way, neither then nor by a rescan.
   */
  plan: (
    event: ThreatEvent,
    feed: PolledFeed,
    about: { isBacklog: boolean; isFresh: boolean },
  ) => Pick<RoutedEvent, 'decisions' | 'items' | 'inhibits'>
  batchWaitMs: (sink: string) => number | undefined
  /** Queues the work that a commit made; may fail, a slow pass finds it all the same. */
  queue: (account: string, made: ItemChange[]) => Promise<void>
  generation: () => number
  /** Whether the ledger may grow: what is not taken in stays at the service. */
  hasRoom: () => Promise<boolean>
  /** What an account has left of its searches; undefined where no answer has said so. */
  readQuota?: ((account: string) => Promise<Quota | undefined>) | undefined
  /** Names what a leaked credential is recognised by, under a key that Redis does not have. */
  pairDigest?: ((account: string, parts: readonly string[]) => string | undefined) | undefined
  /** Encrypts a leaked secret for sinks that reveal; left out where none does. */
  sealSecret?: ((account: string, uid: string, secret: string) => string | undefined) | undefined
  /** What an account's server can beyond its description; left out: nothing. */
  capabilities?: ((account: string) => Pick<Capabilities, 'read' | 'note' | 'demote'>) | undefined
  /** How the feeds of a tier share the budget of rescans; left out: as if each were alone. */
  rescanBudget?: RescanBudget | undefined
  clock: Clock
  logger: Logger
  metrics: Metrics
}

/** One turn of one feed at the service. */
export interface PollRun extends PollRequest {
  feed: PolledFeed
  dueSinceMs: number
  shortPages: ShortPages
  /** Of the feed's tail. */
  lastPage: ShortPage
  /** Cursors that the service refused in this turn. */
  refusals: { count: number }
}

export interface PollRequest {
  kind: 'feed' | 'sweep'
  signal: AbortSignal
  /** Since when the turn is owed, wall clock ms; undefined: since now. */
  dueSinceMs?: number | undefined
  /** Nobody knows when the tail was last read: what the ledger says of that counts. */
  isForgotten?: boolean | undefined
  /** A page's request waits for its slot, and for nothing else. */
  onJoin?: (() => void) | undefined
  /** The slot of a page's request has come. */
  onSlot?: (() => void) | undefined
  /** A page was taken in. */
  onPage?: ((page: AcceptedPage) => void) | undefined
  /** Pages that earlier turns have read, where these take turns among a feed's rescans; left out: none. */
  pagesBefore?: number | undefined
  /** Whether the run goes on with the next page, after so many; left out: it does. */
  mayContinue?: ((pages: number) => Promise<boolean>) | undefined
}

/** A page of a tail that was taken in, as the polling rule counts it. */
interface AcceptedPage {
  newEvents: number
  /** Of the new ones, those that are critical or high, or of unknown severity. */
  urgentEvents: number
  hasMore: boolean
  /** What the feed's first walk found. */
  isBacklog: boolean
  /** The feed may have to be read again sooner than was known: its request or start is another one. */
  isNewWalk?: boolean | undefined
}

export type PollOutcome =
  | { status: 'caught_up' | 'more' | 'stopped' | Obstacle }
  /**
   * Nothing is before `untilMs`, wall clock; undefined, of rescans: before the feed was read to its end once.
   * `readAtMs`: of a forgotten tail, when its ledger says that it was read to its end.
   */
  | { status: 'not_due'; untilMs: number | undefined; readAtMs?: number | undefined }
  | { status: 'failed'; reason: UpstreamReason; retryAfterMs: number | undefined }

/** Why nothing is asked just now. */
export type Obstacle = 'paused' | 'superseded' | 'refused' | 'quota' | 'full'

/**
 * Whether a short page ends a feed, learned by endpoint. The service gives a `next` with nearly every page that
 * has items, also with the last one; following it costs a request that finds nothing. Where an empty page has
 * followed a short one three times, a short page counts as the end. One short page in twenty is followed all
 * the same; as soon as one is followed by items that were there before, nothing is taken for granted any more.
 */
interface ShortPages {
  /** The last page of a feed's tail, for a turn that begins now; the turn changes it. */
  last(feed: { account: string; name: string }): ShortPage
  /** Whether the feed counts as read to its end after a short page that has a `next`. */
  isEnd(endpoint: string): boolean
  /** Notes what followed a short page. */
  noteFollowing(endpoint: string, following: Following): void
}

/** Nothing, items that came meanwhile, or older ones. */
export type Following = 'nothing' | 'newer' | 'older'

/** The last page of a tail that this process took in. */
export interface ShortPage {
  /** undefined: it was not short. */
  last:
    | {
        /** When it was asked for, by the service's clock as far as that is known. */
        askedAtMs: number
        /** Where it left the walk: who begins elsewhere sees what was there before, as it should. */
        cursor: string
        /** When its walk began. */
        walkBegunMs: number
      }
    | undefined
  /** Whether it was read in this turn. */
  isOfTurn: boolean
}

export function noLastPage(): ShortPage {
  return { last: undefined, isOfTurn: true }
}

const confirmationsNeeded = 3
const followOneIn = 20

export function createShortPages(): ShortPages {
  const confirmed = new Map<string, number>()
  const shortPageCounts = new Map<string, number>()
  const lastPages = new Map<string, ShortPage>()
  return {
    last({ account, name }) {
      const id = `${account}/${name}`
      const page = lastPages.get(id) ?? noLastPage()
      lastPages.set(id, page)
      page.isOfTurn = false
      return page
    },
    isEnd(endpoint) {
      if ((confirmed.get(endpoint) ?? 0) < confirmationsNeeded) return false
      const count = ((shortPageCounts.get(endpoint) ?? 0) + 1) % followOneIn
      shortPageCounts.set(endpoint, count)
      return count !== 0
    },
    noteFollowing(endpoint, following) {
      if (following === 'newer') return
      confirmed.set(endpoint, following === 'nothing' ? (confirmed.get(endpoint) ?? 0) + 1 : 0)
    },
  }
}
