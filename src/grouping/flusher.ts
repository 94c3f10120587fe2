/**
 * Turns due groups into messages. When a group's timer is due, the flusher applies the suppression
 * rules to its members, freezes them and hands the message to delivery. It sends nothing itself.
 * Any replica may do any flush; a flush that a crash interrupted is resumed under the same message
 * id. Digests read all accounts and feeds, which takes seconds in a large installation. They have a
 * pass of their own, so that no group waits for them.
 */
import { type AccountLedger, parseRef } from '../store/account-ledger.ts'
import type { FlushContext } from './flush-context.ts'
import { type DigestReading, ensureDigests, flushDigest, readForDigests } from './digest-flush.ts'
import { deriveMessageId } from './freeze.ts'
import { flushGroups } from './group-flush.ts'
import { digestGroupId } from './placement.ts'
import {
  claimFlush,
  readDestinations,
  readDueTimers,
  readEarliestTimerMs,
  postponeTimers,
  type Flush,
  makeHeldDue,
} from './timers.ts'

export interface Flusher {
  /**
   * One pass over the due groups of all accounts. Throws the first failure once all others are
   * flushed.
   */
  flushGroupsOnce(control?: PassControl): Promise<{ messages: number }>
  /** Members have joined groups of an account: the next pass reads when they are due. */
  noteGroups(account: string): void
  /**
   * Sets the timers that digests lack: at the first call while this configuration is active, then
   * once a minute.
   */
  ensureDigestsOnce(): Promise<void>
  /** One pass over the due digests, one after the other. Throws as `flushGroupsOnce`. */
  flushDigestsOnce(control?: PassControl): Promise<{ messages: number }>
}

export interface PassControl {
  signal: AbortSignal
  /** Called as the pass gets on. */
  alive: () => void
  /**
   * How long an account is left alone of which no group is due, as far as this process knows, ms.
   * Left out: every pass reads every account.
   */
  restMs?: number
}

const wholePass: PassControl = { signal: new AbortController().signal, alive: () => undefined }

/** Accounts whose groups are flushed at the same time. */
const ledgersAtOnce = 20

/** How often the timers of all digests are looked for. */
const ensureEveryMs = 60_000

/** Timers read at once. */
const pageLength = 200

/** Due timers among which a pass looks for digests. */
const maxDueTimers = 10_000

/** Flushes of one ledger in one pass; their leases outlast all of them. */
const maxFlushes = 2_000

/** Pages of one pass: enough to postpone ten thousand groups of a blocked sink. */
const maxPages = 100

/** How long the flushes of a sink that is blocked or gone are postponed. */
const blockedMs = 15_000

/**
 * Limit on messages of groups to one destination: a burst of `burstSize`, then one every
 * `refillMs`. Groups beyond it share one message.
 */
const burstSize = 8
const refillMs = 10_000

export function createFlusher(options: FlushContext): Flusher {
  const digestTimers = readDigestTimers(options.sinks)
  return {
    ...createGroupPasses(options, digestTimers),
    ...createDigestPasses(options, digestTimers),
  }
}

function createGroupPasses(
  options: FlushContext,
  digestTimers: ReadonlySet<string>,
): Pick<Flusher, 'flushGroupsOnce' | 'noteGroups'> {
  const { ledgers, clock } = options
  const hasReleasedHeld = new Set<AccountLedger>()
  /** By account: when its groups are looked at next, monotonic ms; without: in the next pass. */
  const nextLookMs = new Map<string, number>()

  /**
   * Reads when the account's first group is due, and flushes what is. The next look is at that time,
   * and after `restMs` at the latest: other processes make groups, too.
   */
  async function lookAtLedger(ledger: AccountLedger, restMs: number): Promise<number> {
    const { account } = ledger
    nextLookMs.set(account, -Infinity) // deleted if members join meanwhile
    if (!hasReleasedHeld.has(ledger) && options.standing.isActive) {
      // A mute of the previous configuration may be over, or end at another time now.
      await makeHeldDue(ledger, clock.now())
      hasReleasedHeld.add(ledger)
    }
    const inMs = ((await readEarliestTimerMs(ledger)) ?? Infinity) - clock.now()
    if (inMs > 0) {
      const restedMs = clock.monotonic() + Math.min(inMs, restMs)
      if (nextLookMs.has(account)) nextLookMs.set(account, restedMs)
      return 0
    }
    // a digest in any other ledger is only put off: the lead's covers it
    return flushGroupsOf(options, ledger, ledger === ledgers[0] ? digestTimers : new Set())
  }

  return {
    async flushGroupsOnce({ signal, alive, restMs = 0 } = wholePass) {
      const results: PromiseSettledResult<number>[] = []
      const nowMs = clock.monotonic()
      const due = ledgers.filter(
        ({ account }) =>
          !options.standing.isForeign(account) && (nextLookMs.get(account) ?? nowMs) <= nowMs,
      )
      for (let at = 0; at < due.length && !signal.aborted; at += ledgersAtOnce) {
        const batch = due.slice(at, at + ledgersAtOnce)
        const looks = batch.map((ledger) => lookAtLedger(ledger, restMs))
        results.push(...(await Promise.allSettled(looks)))
        alive()
      }
      return { messages: sumMessages(results) }
    },
    noteGroups: (account) => void nextLookMs.delete(account),
  }
}

function createDigestPasses(
  options: FlushContext,
  digestTimers: ReadonlySet<string>,
): Pick<Flusher, 'flushDigestsOnce' | 'ensureDigestsOnce'> {
  const { ledgers, clock } = options
  let ensureAtMs = -Infinity
  return {
    async ensureDigestsOnce() {
      if (!options.standing.isActive) ensureAtMs = -Infinity
      else if (clock.monotonic() >= ensureAtMs) {
        await ensureDigests(options, clock.now())
        ensureAtMs = clock.monotonic() + ensureEveryMs
      }
    },
    async flushDigestsOnce({ signal, alive } = wholePass) {
      const [lead] = ledgers
      // another configuration may have another schedule
      if (!lead || digestTimers.size === 0 || !options.standing.isActive) return { messages: 0 }
      const due = await readDueTimers(lead, { nowMs: clock.now(), count: maxDueTimers })
      const results: PromiseSettledResult<number>[] = []
      let reading: Promise<DigestReading> | undefined
      const read = (): Promise<DigestReading> => (reading ??= readForDigests(options))
      for (const timer of due.filter((one) => digestTimers.has(one))) {
        if (signal.aborted) break
        const [result] = await Promise.allSettled([flushDueDigest(options, lead, { timer, read })])
        if (result.status === 'rejected') reading = undefined
        results.push(result)
        alive()
      }
      return { messages: sumMessages(results) }
    },
  }
}

/** The timers of all digests of the configuration, in the lead ledger. */
function readDigestTimers(sinks: FlushContext['sinks']): ReadonlySet<string> {
  const timers = [...sinks.values()].flatMap(({ name, digest, destinations }) =>
    digest ? destinations.map(({ id }) => `c:${digestGroupId(id)}:${name}`) : [],
  )
  return new Set(timers)
}

/** Adds the messages up; throws the first failure. */
function sumMessages(results: readonly PromiseSettledResult<number>[]): number {
  let messages = 0
  for (const result of results) {
    if (result.status === 'rejected') throw result.reason
    messages += result.value
  }
  return messages
}

/** Claimed right before its turn: the lease does not cover the digests before it. */
async function flushDueDigest(
  options: FlushContext,
  ledger: AccountLedger,
  { timer, read }: { timer: string; read: () => Promise<DigestReading> },
): Promise<number> {
  const { sink } = parseRef(timer)
  const [flush] = await claimFlushes(options, ledger, { sink, timers: [timer] })
  return flush ? flushDigest(options, flush, read) : 0
}

async function flushGroupsOf(
  options: FlushContext,
  ledger: AccountLedger,
  excluded: ReadonlySet<string>,
): Promise<number> {
  const flushes = await claimDueFlushes(options, ledger, excluded)
  let messages = 0
  for (const flush of flushes.filter(({ kind }) => kind === 'digest')) {
    messages += await flushDigest(options, flush)
  }
  const byDestination = Map.groupBy(
    flushes.filter(({ kind }) => kind !== 'digest'),
    ({ about }) => about.destination,
  )
  for (const [destination, due] of byDestination) {
    messages += await flushDestination(options, destination, due)
  }
  return messages
}

async function claimDueFlushes(
  options: FlushContext,
  ledger: AccountLedger,
  excluded: ReadonlySet<string>,
): Promise<Flush[]> {
  const { clock } = options
  const flushes: Flush[] = []
  const remembering = { ...options, isBlocked: memoize(options.isBlocked) }
  let skipped = 0 // timers that stay due: `excluded`, and of sinks that only another configuration knows
  for (let page = 0; page < maxPages && flushes.length < maxFlushes; page += 1) {
    const due = { nowMs: clock.now(), offset: skipped, count: pageLength }
    const timers = await readDueTimers(ledger, due)
    const ours = timers.filter((timer) => !excluded.has(timer))
    skipped += timers.length - ours.length
    for (const [sink, sinkTimers] of Map.groupBy(ours, (timer) => parseRef(timer).sink)) {
      const isKnown = options.sinks.has(sink)
      if (!isKnown && !(await options.standing.checkNewest())) skipped += sinkTimers.length
      else if (!isKnown) await postponeTimers(ledger, sinkTimers, clock.now() + blockedMs)
      else flushes.push(...(await claimFlushes(remembering, ledger, { sink, timers: sinkTimers })))
    }
    if (timers.length < pageLength) break
  }
  return flushes
}

function memoize(isBlocked: FlushContext['isBlocked']): FlushContext['isBlocked'] {
  const answers = new Map<string, Promise<boolean>>()
  return (sink, destination) => {
    const place = `${sink} ${destination}`
    const answer = answers.get(place) ?? isBlocked(sink, destination)
    answers.set(place, answer)
    return answer
  }
}

/** Claims one sink's flushes; those of destinations to which nothing can be sent are postponed. */
async function claimFlushes(
  { clock, isBlocked }: FlushContext,
  ledger: AccountLedger,
  { sink, timers }: { sink: string; timers: string[] },
): Promise<Flush[]> {
  const destinations = await readDestinations(ledger, timers)
  const free: string[] = []
  for (const [destination, own] of Map.groupBy(timers, (_timer, i) => destinations[i] ?? '')) {
    if (!(await isBlocked(sink, destination))) free.push(...own)
    else await postponeTimers(ledger, own, clock.now() + blockedMs)
  }
  const claimed = await Promise.all(free.map((timer) => claimFlush(ledger, timer, clock.now())))
  return claimed.filter((flush) => flush !== undefined)
}

async function flushDestination(
  options: FlushContext,
  destination: string,
  flushes: Flush[],
): Promise<number> {
  const { cutOff, idle, ...sorted } = await sortFlushes(flushes)
  let messages = 0
  // Interrupted flushes have passed the rate limit already, and idle ones send nothing.
  for (const flush of [...cutOff, ...idle]) messages += await flushGroups(options, [flush])
  // Rerouted items get a message of their own: one per interval.
  const [rerouted, full] = partition(sorted.full)
  for (const flush of rerouted) messages += await flushGroups(options, [flush])
  const [lead] = full
  if (!lead) return messages
  const { ledger } = lead
  const answer = await ledger.run('take-flush', destination, full.length, burstSize, refillMs)
  const [granted, waitMs] = answer as [number, number]
  if (granted === 0) {
    const timers = full.map(({ timer }) => timer)
    await postponeTimers(ledger, timers, options.clock.now() + waitMs)
    return messages
  }
  if (granted < full.length) return messages + (await flushGroups(options, full))
  for (const flush of full) messages += await flushGroups(options, [flush])
  return messages
}

function partition(flushes: Flush[]): [diverted: Flush[], others: Flush[]] {
  const isRerouted = ({ about }: Flush): boolean => about.divertedFrom !== undefined
  return [flushes.filter(isRerouted), flushes.filter((flush) => !isRerouted(flush))]
}

interface SortedFlushes {
  /**
   * Interrupted by a crash after some members were frozen: the message may hold members of other
   * groups too.
   */
  cutOff: Flush[]
  /** Nothing arrived since their last message. */
  idle: Flush[]
  full: Flush[]
}

async function sortFlushes(flushes: Flush[]): Promise<SortedFlushes> {
  const sorted: SortedFlushes = { cutOff: [], idle: [], full: [] }
  const places = flushes.map(async (flush) => {
    const { ledger, id } = flush
    const frozenKeys = await ledger.redis.exists(ledger.key('members', deriveMessageId(flush)))
    if (frozenKeys === 1) return 'cutOff'
    return (await ledger.redis.exists(ledger.key('collect', id))) === 1 ? 'full' : 'idle'
  })
  for (const [at, place] of (await Promise.all(places)).entries()) {
    const flush = flushes[at]
    if (flush) sorted[place].push(flush)
  }
  return sorted
}
