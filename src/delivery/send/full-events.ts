/**
 * Fetches the full event of a record once for all sinks, after routing, if its feed asks for it.
 * The record's items wait meanwhile; when the time is up they are sent with the search item, and
 * the message says so. The process that took the record in fetches: if it dies, the time is up.
 */
import { type EventDetail, severityRank, type ThreatEvent, type Victims } from '../../event.ts'
import { type Clock, type Timings, waitAtMost, withTimeout } from '../../lib/clock.ts'
import type { Logger } from '../../lib/logger.ts'
import { withholdIn } from '../../masking/masking.ts'
import { titleOf } from '../../messages/message.ts'
import { readVictims } from '../../messages/types/victims.ts'
import { type AccountLedger, parseRef } from '../../store/account-ledger.ts'
import { type ItemChange, releaseDetail, type SinkBatchWaits } from '../../store/pending-items.ts'
import { type FoundItem, readItems } from '../../store/records.ts'
import { termText } from '../../store/history/terms.ts'
import type { UpstreamClient } from '../../upstream/client.ts'
import { UpstreamError, type UpstreamReason } from '../../upstream/error.ts'

export interface FullEvents {
  /** Fetches and stores the full event of each record with an item that waits for it. */
  fetch(account: string, changes: readonly ItemChange[]): void
  /** Lets what is being fetched end within `finishMs`, then breaks it off. */
  stop(finishMs: number): Promise<void>
}

/** An event as its request names it, and its rank: the most severe comes first. */
export interface WantedEvent {
  uid: string
  rank: number
}

export interface FullEventsOptions {
  findLedger: (account: string) => AccountLedger | undefined
  /** Resolves with 'unavailable' if there is no full event, or none before `signal` aborts. */
  fetchDetail: (
    account: string,
    event: WantedEvent,
    signal: AbortSignal,
  ) => Promise<EventDetail | 'unavailable'>
  batchWaits: SinkBatchWaits
  release: (account: string, made: ItemChange[]) => void
  clock: Clock
  logger: Logger
  timings: Timings
}

/**
 * Full events that one process waits for at the same time; of more, the items wait until their time
 * is up. A fetch that waits for its organization's API slot costs nothing.
 */
const maxFetches = 2_000

export function createFullEvents(options: FullEventsOptions): FullEvents {
  const { findLedger, clock, logger } = options
  const stopping = new AbortController()
  const running = new Set<Promise<void>>()

  async function fetchLogged(
    ledger: AccountLedger,
    reading: Promise<FoundItem[]>,
    ref: string,
  ): Promise<void> {
    try {
      const item = (await reading).find((found) => found.ref === ref)
      if (item) await fetchOne(options, ledger, item, stopping.signal)
    } catch (error) {
      const cause = error instanceof Error ? error.name : 'unknown'
      const about = { cause, list: 'accounts', name: ledger.account } as const
      logger.repeated.warn({ account: ledger.account, err: error }, 'full event not fetched', about)
    }
  }

  return {
    fetch(account, changes) {
      const worstFirst = changes.toSorted((one, other) => other.rk - one.rk)
      const waiting = worstFirst.filter(({ kind }) => kind === 'detail')
      const oneOfEach = new Map(waiting.map(({ ref }) => [parseRecordId(ref), ref]))
      const refs = [...oneOfEach.values()].slice(0, Math.max(0, maxFetches - running.size))
      const ledger = findLedger(account)
      if (!ledger || refs.length === 0 || stopping.signal.aborted) return
      const reading = readItems(ledger, refs)
      for (const ref of refs) {
        const fetching = fetchLogged(ledger, reading, ref).finally(() => running.delete(fetching))
        running.add(fetching)
      }
    },
    async stop(finishMs) {
      await waitAtMost(finishMs, Promise.all(running), clock)
      stopping.abort()
    },
  }
}

async function fetchOne(
  { fetchDetail: fetch, batchWaits, release, timings }: FullEventsOptions,
  ledger: AccountLedger,
  { payload, record }: FoundItem,
  signal: AbortSignal,
): Promise<void> {
  if (!payload) return
  const { event } = payload
  const wanted = { uid: event.uid, rank: severityRank(record.severity) }
  const detail =
    payload.detail ??
    (await withTimeout(timings.detailWaitMs, [signal], (own) => fetch(ledger.account, wanted, own)))
  if (signal.aborted) return
  const changes = await releaseDetail(ledger, record.recordId, batchWaits, {
    detail,
    title: {
      now: titleOf({ feed: record.sightings[0]?.feed ?? '', event, detail }),
      before: record.title,
    },
    victims: findNewVictims(event, detail === 'unavailable' ? null : detail),
  })
  release(ledger.account, changes)
}

/** The machine that only the full event names. Logins are as they matched: intake has noted them. */
function findNewVictims(event: ThreatEvent, detail: EventDetail | null): Victims {
  const known = new Set(readVictims(event).hosts.map(termText))
  const { hosts } = readVictims(event, detail)
  return { logins: [], hosts: hosts.filter((host) => !known.has(termText(host))) }
}

function parseRecordId(ref: string): string {
  const parsed = parseRef(ref)
  return parsed.kind === 'item' ? parsed.recordId : ''
}

/** Errors that a retry does not mend. */
const permanentReasons: ReadonlySet<UpstreamReason> = new Set(['rejected', 'invalid', 'contract'])

/**
 * Fetches the full event and withholds what may hold a secret. Returns 'unavailable' if upstream has none for this
 * type, or none arrives before `signal` aborts; the search item is enough for a message.
 */
export async function fetchDetail(
  client: UpstreamClient,
  { uid, rank }: WantedEvent,
  { signal, clock, timings }: { signal: AbortSignal; clock: Clock; timings: Timings },
): Promise<EventDetail | 'unavailable'> {
  const slot = { kind: 'detail' as const, name: uid, rank, dueSinceMs: clock.now() }
  while (!signal.aborted) {
    try {
      const answer = await client.getEvent({ uid, slot, signal })
      return answer.kind === 'detail' ? withholdIn(answer.data, uid) : 'unavailable'
    } catch (error) {
      if (!(error instanceof UpstreamError)) throw error
      if (permanentReasons.has(error.reason)) return 'unavailable'
      await clock.sleep(Math.max(error.retryAfterMs ?? 0, timings.detailRetryMs), signal)
    }
  }
  return 'unavailable'
}
