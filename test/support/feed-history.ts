/**
 * What may happen to a feed, step by step: turns of replicas that fail, stop and are killed, and time, which
 * is simulated: a history does not depend on how fast the machine is.
 */
import type { PolledFeed } from '../../src/feeds/types/polled-feed.ts'
import type { PollOutcome } from '../../src/feeds/poll-run.ts'
import { systemClock } from '../../src/lib/clock.ts'
import type { AccountLedger } from '../../src/store/account-ledger.ts'
import { openFeed, type Scan } from '../../src/store/feed-state.ts'
import type { UpstreamClient } from '../../src/upstream/client.ts'
import { UpstreamError } from '../../src/upstream/error.ts'
import { committedUid } from './ledger.ts'
import { pollerOf } from './poller.ts'
import { ledgerInTime } from './script-clock.ts'
import {
  createScriptedService,
  type Habits,
  type ScriptedItem,
  type ScriptedService,
} from './scripted-service.ts'

/** How far back the first poll of such a feed begins. */
export const startMs = 3 * 24 * 3_600_000

export type Incident =
  | { what: 'insert'; ageMs: number }
  | { what: 'fail' | 'crash' | 'crash-after-commit' | 'stop' | 'expire' }

type Kind = 'feed' | 'rescan'

export type Step =
  | { do: 'insert'; ages: number[] }
  /** Turns of as many replicas at once; what happens at the so-manieth request from here. */
  | { do: 'turns'; kinds: Kind[]; incidents: [number, Incident][] }
  | { do: 'expire' }
  | { do: 'reorder'; order: Habits['order'] }

/** Of what a feed's type reads; events are pastes. */
const uidPrefixes = [
  ['cookies', 'cookie'],
  ['credential', 'credential'],
] as const

export interface FeedHistory {
  service: ScriptedService
  go(step: Step): Promise<void>
  /**
   * Turns without incident, until a rescan that saw the last insertion and the tail are at their ends.
   * Fails when that takes more requests than it may.
   */
  settle(): Promise<void>
  /** Items that a rescan found first, created before what the tail had taken in when the rescan began. */
  late(): number
  uidOf: (item: ScriptedItem) => string
  /**
   * What an item below the start bound is: `old` if it was there before the reading of all below began,
   * `new` if it came in a step after that ended, `either` in between.
   */
  sightOf(item: ScriptedItem): 'old' | 'new' | 'either'
}

class Killed extends Error {}

/** How long a request takes, ms. */
const requestMs = 20

/** Requests to the end: feeds without order read all with each turn, an item a page at worst. */
function mostRequests(items: number): number {
  return 100 + 40 * items
}

export function createHistory({
  ledger: inRealTime,
  feed,
  habits,
}: {
  ledger: AccountLedger
  feed: PolledFeed
  habits: Habits
}): FeedHistory {
  let nowMs = Date.UTC(2026, 10, 2)
  const clock = { ...systemClock, now: () => nowMs }
  const ledger = ledgerInTime(inRealTime, clock.now)
  const service = createScriptedService(habits, clock.now)
  const watched = watchCommits(ledger)
  const uidOf = ({ id }: ScriptedItem): string =>
    `${uidPrefixes.find(([word]) => feed.type.includes(word))?.[1] ?? 'paste/x'}/${id}`

  const inserted = new Map<number, number>()
  let step = 0
  let learningAt = Infinity
  let learnedAt = Infinity

  function insert(ageMs: number): void {
    service.insert(nowMs - ageMs)
    inserted.set(service.items.at(-1)!.id, step)
  }

  async function turns(
    kinds: Kind[],
    incidents: [number, Incident][] = [],
  ): Promise<PollOutcome[]> {
    const stopping = new AbortController()
    const due = new Map(incidents)
    let requests = 0
    let isKilled = false
    function happen(): void {
      nowMs += requestMs
      const incident = due.get((requests += 1))
      if (incident?.what === 'insert') insert(incident.ageMs)
      if (incident?.what === 'expire') service.expireCursors()
      if (incident?.what === 'stop') stopping.abort()
      if (incident?.what === 'crash-after-commit') isKilled = true
      if (incident?.what === 'crash') throw new Killed()
      if (incident?.what === 'fail') throw new UpstreamError('unavailable', 'the script fails')
    }
    const queue = (): Promise<void> => (isKilled ? Promise.reject(new Killed()) : Promise.resolve())
    const client = struckBy(happen, service.client)
    const poller = pollerOf({ ledger: watched.ledger, client, queue }, { clock })
    nowMs += requestMs
    const asked = { signal: stopping.signal }
    const ended = await Promise.allSettled(
      kinds.map((kind) => poller.pollOnce(feed, { kind, ...asked })),
    )
    return ended.flatMap((turn) => {
      if (turn.status === 'fulfilled') return [turn.value]
      if (turn.reason instanceof Killed) return []
      throw turn.reason
    })
  }

  async function settle(): Promise<void> {
    // a tail may stand behind what is dated within its second, and no rescan reads ahead of now
    const soonMs = nowMs + 1_000
    const soon = service.items.map(({ createdMs }) => createdMs).filter((ms) => ms <= soonMs)
    nowMs = Math.max(nowMs, ...soon)
    const sinceMs = nowMs + 1 // what began in the millisecond of an insertion may not have seen it
    const before = service.requests.length
    const most = before + mostRequests(service.items.length)
    while (service.requests.length < most) {
      await turns(['feed'])
      await turns(['rescan'])
      const state = await openFeed(ledger, feed.name, feed.startMs)
      const { whole, lastCaughtUpMs = 0 } = state
      const { scan, isDone } = whole
      const isWhole = scan?.notes?.['kind'] === 'whole'
      const isRescanned = isWhole && isDone && scan.startedAtMs >= sinceMs
      if (!isRescanned || lastCaughtUpMs < sinceMs) continue
      // what is dated ahead of now is read a page with each poll
      const ahead = service.items.filter(({ createdMs }) => createdMs > nowMs)
      for (const _item of ahead) await turns(['feed'])
      return
    }
    throw new Error(`not at its end after ${service.requests.length - before} requests`)
  }

  return {
    service,
    async go(given) {
      step += 1
      if (given.do === 'insert') for (const ageMs of given.ages) insert(ageMs)
      if (given.do === 'expire') service.expireCursors()
      if (given.do === 'reorder') service.habits.order = given.order
      if (given.do === 'turns') await turns(given.kinds, given.incidents)
      if (watched.learns()) learningAt = Math.min(learningAt, step)
      if (watched.hasLearned()) learnedAt = Math.min(learnedAt, step)
    },
    sightOf(item) {
      const at = inserted.get(item.id) ?? 0
      if (at < learningAt) return 'old'
      return at > learnedAt ? 'new' : 'either'
    },
    settle,
    late: () => watched.late(service.items, uidOf),
    uidOf,
  }
}

/** The same client, whose every answer something may happen to. */
function struckBy(happen: () => void, client: UpstreamClient): UpstreamClient {
  const call: UpstreamClient['call'] = async (operation, request, asked) => {
    const answer = await client.call(operation, request, asked)
    happen()
    return answer
  }
  return { ...client, call }
}

/** A ledger that notes what each committed page of a rescan brought. */
function watchCommits(ledger: AccountLedger): {
  ledger: AccountLedger
  late: (items: ScriptedItem[], uidOf: FeedHistory['uidOf']) => number
  /** Whether a rescan has begun to read, or has read to the end, what the tail left behind it. */
  learns: () => boolean
  hasLearned: () => boolean
} {
  const found: { uid: string; beforeMs: number }[] = []
  let learns = false
  let hasLearned = false

  async function ask<T>(script: string, ...args: (string | number)[]): Promise<T> {
    const answer = await ledger.runJson<T>(script, ...args)
    const { fresh = [] } = answer as { fresh?: number[] }
    const page = JSON.parse(String(args[0])) as {
      of: string
      at_end: string[]
    }
    const { ended } = answer as { ended?: boolean }
    learns ||= page.at_end.includes('snapshot_of')
    hasLearned ||= ended === true && page.at_end.includes('snapshot_of')
    const { notes } = JSON.parse(String(args[1])) as Scan
    const beforeMs = Number(notes?.['lateBeforeMs'] ?? -Infinity)
    if (page.of === '') return answer
    found.push(...fresh.map((place) => ({ uid: committedUid(args, place), beforeMs })))
    return answer
  }

  return {
    ledger: { ...ledger, runJson: ask },
    learns: () => learns,
    hasLearned: () => hasLearned,
    late: (items, uidOf) => {
      const created = new Map(items.map((item) => [uidOf(item), item.createdMs]))
      return found.filter(({ uid, beforeMs }) => (created.get(uid) ?? Infinity) < beforeMs).length
    },
  }
}
