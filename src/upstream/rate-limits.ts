/** Sends one account's requests, each in its slot. A 429 closes the tier for every replica. */
import { type Clock, systemClock, withTimeout } from '../lib/clock.ts'
import { parseHttpDate } from '../lib/config/web-address.ts'
import type { Redis } from '../redis/client.ts'
import type { Keys } from '../redis/keys.ts'
import { runScript } from '../redis/scripts.ts'
import type { AccountConfig, Tier } from './config.ts'
import { notBegun, UpstreamError } from './error.ts'
import { type Answer, errorFromAnswer, readHeader, readSearchesRemaining } from './failures.ts'
import type { Lane, Organizations } from './access/organizations.ts'
import type { RequestKind, SlotRequest, TakeOptions } from './request.ts'
import type { Transport, TransportRequest } from './transport.ts'

export type { RequestKind, SlotRequest, TakeOptions } from './request.ts'

/** One request that was sent, whether or not an answer came. */
export interface RequestInfo {
  tier: Tier
  /** HTTP status; `none` if no answer came. */
  code: number | 'none'
  waitedMs: number
}

export interface PacedRequest extends TakeOptions {
  slot: SlotRequest
  tier: Tier
  /** Secrets of this request that must not appear in any message, besides the account's own. */
  secrets?: readonly string[]
  /** Called right before the request is written: from now on it may reach the API. */
  onSend?: () => void
}

/** Sends a request once its slot has come; one that cannot begin in time waits for another slot. */
export interface Pacer {
  /** Returns any answer except a 429, which throws UpstreamError `rate_limited`. */
  send(request: TransportRequest, paced: PacedRequest): Promise<Answer>
  /** How far the API's clock is ahead of ours by its last answer, ms. */
  clockSkewMs(): number | undefined
}

interface PacerOptions {
  account: AccountConfig
  organizations: Organizations
  slots: ApiSlots
  transport: Transport
  clock: Clock
  /** Secrets that must not appear in any message. */
  secrets: () => string[]
  onRequest?: ((info: RequestInfo) => void) | undefined
  /** Called with the month's remaining global searches whenever an answer states them. */
  onQuota?: ((remaining: number) => void) | undefined
  random?: (() => number) | undefined
}

export function createPacer(options: PacerOptions): Pacer {
  const { account, organizations, slots, transport, clock, random = Math.random } = options
  let clockSkewMs: number | undefined

  async function pauseTier(
    answer: Answer,
    lane: Lane,
    paced: PacedRequest,
  ): Promise<UpstreamError> {
    const failure = errorFromAnswer(answer, [...options.secrets(), ...(paced.secrets ?? [])])
    // Adds up to a tenth, so that replicas that were told the same do not all return at once.
    await slots.pause(lane, (failure.retryAfterMs ?? 0) * (1 + 0.1 * random()))
    return failure
  }

  function noteClock(answer: Answer): void {
    const serverMs = parseHttpDate(readHeader(answer, 'date'))
    if (serverMs !== undefined) clockSkewMs = serverMs - (answer.sentAtMs + clock.now()) / 2
  }

  function noteQuota(answer: Answer): void {
    const remaining = readSearchesRemaining(answer)
    if (remaining !== undefined) options.onQuota?.(remaining)
  }

  return {
    async send(request, paced) {
      const lane = organizations.laneFor(account.name, paced.tier)
      const taken = await slots.take(paced.slot, lane, paced)
      const info: RequestInfo = { tier: paced.tier, code: 'none', waitedMs: taken.waitedMs }
      try {
        const answer = await sendInSlot(transport, request, taken, paced.onSend)
        info.code = answer.status
        noteClock(answer)
        noteQuota(answer)
        if (answer.status === 429) throw await pauseTier(answer, lane, paced)
        return answer
      } finally {
        options.onRequest?.(info)
      }
    },
    clockSkewMs: () => clockSkewMs,
  }
}

async function sendInSlot(
  transport: Transport,
  request: TransportRequest,
  taken: TakenSlot,
  onSend: PacedRequest['onSend'],
): Promise<Answer> {
  let refusal: { reason: unknown } | undefined
  function mayBegin(): boolean {
    if (!taken.mayBegin()) return false
    try {
      onSend?.()
      return true
    } catch (reason) {
      refusal = { reason }
      return false
    }
  }
  try {
    return await transport.request({ ...request, mayBegin })
  } catch (error) {
    if (refusal) throw refusal.reason
    if (error !== notBegun) throw error
  }
  return sendInSlot(transport, request, await taken.again(), onSend)
}

/**
 * Gives the slots of the rate limits to waiting requests. Which request gets a slot is decided only
 * when the slot comes; a slot that nobody wants any more goes unused.
 */
export interface ApiSlots {
  /** Resolves when the slot has come. Throws UpstreamError `timeout` if none comes in time. */
  take(request: SlotRequest, lane: Lane, options?: TakeOptions): Promise<TakenSlot>
  /** Called after a 429: no replica gets a slot of the lane for `ms`. */
  pause(lane: Lane, ms: number): Promise<void>
  /** Share of the lane's rate that this process used in the last minute, 0 to 1. */
  utilization(lane: Lane): number
  close(): void
}

export function createApiSlots(options: { limiter: TierLimiter; clock?: Clock }): ApiSlots {
  const { limiter, clock = systemClock } = options
  const queues = new Map<string, SlotQueue>()
  const closing = new AbortController()

  function ensureQueue(lane: Lane): SlotQueue {
    const name = `${lane.organization}:${lane.tier}`
    const known = queues.get(name)
    const queue = known ?? createSlotQueue({ lane, limiter, clock, closing: closing.signal })
    queues.set(name, queue)
    return queue
  }

  function offer({ slot, waitedMs }: Joined, lane: Lane, limits: WaitLimits): TakenSlot {
    return {
      waitedMs,
      mayBegin: () => clock.monotonic() <= slot.untilMs,
      async again() {
        const leftMs = limits.deadlineMs - clock.monotonic()
        const parents = [limits.signal, closing.signal]
        const next = await withTimeout(leftMs, parents, (signal) =>
          limiter.slotAgain(lane, slot, signal),
        )
        if (!next) throw noSlotError()
        return offer({ slot: next, waitedMs }, lane, limits)
      },
    }
  }

  return {
    async take(request, lane, takeOptions = {}) {
      const { signal, maxWaitMs = Infinity } = takeOptions
      if (signal?.aborted || closing.signal.aborted) throw noSlotError()
      const limits = { signal, deadlineMs: clock.monotonic() + maxWaitMs }
      return offer(await ensureQueue(lane).join(request, takeOptions), lane, limits)
    },
    pause: (lane, ms) => limiter.pause(lane, ms),
    utilization: (lane) =>
      Math.min(1, ensureQueue(lane).usedInMinute() / (60 * limiter.limitFor(lane))),
    close: () => closing.abort(),
  }
}

interface WaitLimits extends Pick<TakeOptions, 'signal'> {
  deadlineMs: number
}

interface TakenSlot {
  waitedMs: number
  /** Whether the request may begin at this moment. */
  mayBegin: () => boolean
  /** For a request that did not begin. Throws UpstreamError `timeout` if none comes in time. */
  again(): Promise<TakenSlot>
}

interface Joined {
  slot: Slot
  waitedMs: number
}

interface SlotQueue {
  join(request: SlotRequest, options: TakeOptions): Promise<Joined>
  /** Number of slots used in the last minute. */
  usedInMinute(): number
}

interface SlotQueueOptions {
  lane: Lane
  limiter: TierLimiter
  clock: Clock
  closing: AbortSignal
}

interface Waiter extends SlotRequest {
  taken: PromiseWithResolvers<Joined>
  sinceMs: number
}

const minuteMs = 60_000

function createSlotQueue({ lane, limiter, clock, closing }: SlotQueueOptions): SlotQueue {
  const waiting = new Set<Waiter>()
  let recentKinds: RequestKind[] = []
  const usedAtMs: number[] = []
  let isServing = false

  async function serve(): Promise<void> {
    if (isServing) return
    isServing = true
    try {
      while (waiting.size > 0) {
        const slot = await limiter.nextSlot(lane, closing, () => isPatient(waiting))
        if (slot === undefined) throw noSlotError()
        assignSlot(slot)
      }
    } catch (error) {
      for (const waiter of waiting) waiter.taken.reject(error)
    } finally {
      isServing = false
    }
  }

  /** The slot goes unused if no request waits any more. */
  function assignSlot(slot: Slot): void {
    const chosen = pickNext(waiting, recentKinds)
    if (!chosen) return
    waiting.delete(chosen)
    const nowMs = clock.monotonic()
    recentKinds = [...recentKinds, chosen.kind].slice(1 - patientSlotEvery)
    usedAtMs.push(nowMs)
    while ((usedAtMs[0] ?? nowMs) <= nowMs - minuteMs) usedAtMs.shift()
    chosen.onSlot?.()
    chosen.taken.resolve({ slot, waitedMs: nowMs - chosen.sinceMs })
  }

  return {
    async join(request, { signal, maxWaitMs }) {
      const taken = Promise.withResolvers<Joined>()
      const waiter = { ...request, taken, sinceMs: clock.monotonic() }
      const settled = new AbortController()
      const giveUp = (): void => taken.reject(noSlotError())
      signal?.addEventListener('abort', giveUp, { once: true })
      if (maxWaitMs !== undefined)
        void clock.sleep(maxWaitMs, settled.signal).then(() => settled.signal.aborted || giveUp())
      waiting.add(waiter)
      request.onJoin?.()
      void serve()
      try {
        return await taken.promise
      } finally {
        waiting.delete(waiter)
        settled.abort('settled') // without a reason, each would be an error with a stack
        signal?.removeEventListener('abort', giveUp)
      }
    },
    usedInMinute: () => usedAtMs.filter((at) => at > clock.monotonic() - minuteMs).length,
  }
}

/** Rescans and commands also give way to the feeds of other processes. */
function isPatient(waiting: ReadonlySet<SlotRequest>): boolean {
  for (const { kind } of waiting) if (kind !== 'command' && kind !== 'rescan') return false
  return true
}

function noSlotError(): UpstreamError {
  return new UpstreamError('timeout', 'no API slot came in time under the rate limit')
}

/**
 * The rate limit of one organization's tier, held in Redis for all replicas and measured by Redis'
 * clock. Slots have a fixed spacing and allow no burst. Without Redis there are no slots, hence no
 * requests.
 *
 * A claim says that one request begins within `slotValidMs` from now. `limit` slots take 1,050 ms.
 * `slotValidMs` of the 50 ms are for requests that begin late, and 20 ms for networks that delay
 * one request more than the next.
 */
export interface TierLimiter {
  /**
   * Resolves when a slot has come; the request must begin at once. Returns undefined if `signal`
   * aborted. While `isPatient` holds, it takes only slots that no process has asked for, or one in
   * `patientSlotEvery`.
   */
  nextSlot(lane: Lane, signal: AbortSignal, isPatient?: () => boolean): Promise<Slot | undefined>
  /**
   * Moves a slot that was not used to now, or takes another. From the third on, each allows the
   * request twice the time, for which others wait: a process that always stalls goes on, too.
   */
  slotAgain(lane: Lane, slot: Slot, signal: AbortSignal): Promise<Slot | undefined>
  /** Closes the tier for every replica. Never shortens a longer pause. */
  pause(lane: Lane, ms: number): Promise<void>
  /** Requests per second. */
  limitFor(lane: Lane): number
}

/** A slot that is ours. */
interface Slot {
  /** µs of Redis' clock. */
  at: number
  /** When others count it as used, µs of Redis' clock. */
  use: number
  /** Monotonic ms until which the request may begin. */
  untilMs: number
  /** How often its request had one before. */
  tries: number
}

interface TierLimiterOptions {
  redis: Redis
  keys: Keys
  clock: Clock
  limitFor: (lane: Lane) => number
}

/**
 * How long after the time of its slot a request may begin, beside the shortest way to Redis, which
 * all claims of a process share.
 */
const slotValidMs = 30

/** How late a claim may be without moving the slots behind it. */
const toleratedMs = slotValidMs / 2

/** A request that keeps missing its slot gets up to 7.7 s to begin. */
const mostDoublings = 8

/** Returns the microseconds between two slots of a tier with `limit` requests per second. */
export function spacingMicros(limit: number): number {
  return Math.ceil((1.05 / limit) * 1_000_000)
}

export function createTierLimiter(given: TierLimiterOptions): TierLimiter {
  const options = { ...given, trips: createTrips() }
  return {
    limitFor: options.limitFor,
    nextSlot: (lane, signal, isPatient = () => false) =>
      takeSlot(options, { lane, signal, tries: 0 }, isPatient),
    async slotAgain(lane, slot, signal) {
      const attempt = { lane, signal, tries: slot.tries + 1 }
      const moved = await claimSlot(options, attempt, slot)
      return moved ?? takeSlot(options, attempt, () => false)
    },
    async pause(lane, ms) {
      const { redis, keys } = options
      await runScript(redis, 'pause-tier', limitKeys(keys, lane), [Math.ceil(ms)])
    },
  }
}

type Claiming = TierLimiterOptions & { trips: Trips }

interface Trips {
  note(tripMs: number): void
  /** The shortest of the last ones, ms: how long every question to Redis takes at least. */
  leastMs(): number
}

const rememberedTrips = 20

/** A Redis that is further away is slow, not far. */
const longestTripMs = 200

function createTrips(): Trips {
  let recent: number[] = []
  return {
    note: (tripMs) => void (recent = [...recent, tripMs].slice(-rememberedTrips)),
    leastMs: () => (recent.length === 0 ? 0 : Math.min(longestTripMs, ...recent)),
  }
}

/** What a request waits for. `tries`: how often it had a slot before. */
interface Attempt extends Pick<Slot, 'tries'> {
  lane: Lane
  signal: AbortSignal
}

async function takeSlot(
  options: Claiming,
  attempt: Attempt,
  isPatient: () => boolean,
): Promise<Slot | undefined> {
  const { clock, limitFor, trips } = options
  const { lane, signal } = attempt
  while (!signal.aborted) {
    const args = [spacingMicros(limitFor(lane)), isPatient() ? patientSlotEvery : 0]
    const { reply, toSlot } = await ask(options, attempt, 'reserve-slot', args)
    const [at = 0, waitMicros = 0, ...claimed] = reply
    if (claimed.length > 0) return toSlot(at, claimed)
    // the claim is asked for so early that it arrives in time
    await clock.sleep(Math.max(0, Math.ceil(waitMicros / 1000 - trips.leastMs())), signal)
    const slot = at === 0 ? undefined : await claimSlot(options, attempt, { at, use: 0 })
    if (slot) return slot
  }
  return undefined
}

/** Claims a slot whose time has come; undefined if it is void. */
async function claimSlot(
  options: Claiming,
  attempt: Attempt,
  { at, use }: Pick<Slot, 'at' | 'use'>,
): Promise<Slot | undefined> {
  const { signal } = attempt
  while (!signal.aborted) {
    const args = [at, use, toleratedMs * 1000]
    const { reply, toSlot } = await ask(options, attempt, 'claim-slot', args)
    const [waitMicros = -1, ...claimed] = reply
    if (waitMicros < 0) return undefined
    if (waitMicros === 0) return toSlot(at, claimed)
    const waitMs = Math.ceil(waitMicros / 1000 - options.trips.leastMs())
    await options.clock.sleep(Math.max(0, waitMs), signal)
  }
  return undefined
}

/** Runs a script of the limiter. `toSlot` reads what its reply says of a slot that it claimed. */
async function ask(
  { redis, keys, clock, trips }: Claiming,
  { lane, tries }: Attempt,
  script: 'reserve-slot' | 'claim-slot',
  args: readonly number[],
) {
  // The first slot is missed for a new connection as a rule, which stands then.
  const validMs = slotValidMs * 2 ** Math.min(Math.max(0, tries - 1), mostDoublings)
  const laterMicros = (validMs - slotValidMs) * 1000
  const askedAtMs = clock.monotonic()
  const reply = await runScript(redis, script, limitKeys(keys, lane), [laterMicros, ...args])
  trips.note(clock.monotonic() - askedAtMs)
  const fromMs = askedAtMs + trips.leastMs()
  const toSlot = (at: number, [use = 0, lateMicros = 0]: readonly number[]): Slot => {
    return { at, use, untilMs: fromMs + validMs - lateMicros / 1000, tries }
  }
  return { reply: reply as number[], toSlot }
}

function limitKeys(keys: Keys, lane: Lane): string[] {
  return [lane.organization, lane.baseUrl].map((name) => keys.shared('limit', name, lane.tier))
}

/** Each kind that gives way to feeds gets one slot in this many, however many feeds are due. */
const patientSlotEvery = 10

/** Kinds that give way to feeds. Among each other the longest due goes first. */
const patientKinds = ['rescan', 'detail', 'command'] as const

/**
 * Chooses which request gets a free slot: tokens first, then a patient kind that had none of the
 * last nine slots. Then come feeds, then the patient kinds; within each step the kind that is due
 * longest, and of it the longest due, of full events the most severe.
 * `recent` holds the kinds served, newest last. Pure.
 */
export function pickNext<T extends SlotRequest>(
  waiting: Iterable<T>,
  recent: readonly RequestKind[],
): T | undefined {
  // thousands may wait for full events: they are looked through once
  const kinds = new Map<RequestKind, { next: T; sinceMs: number }>()
  for (const one of waiting) {
    const { next = one, sinceMs = Infinity } = kinds.get(one.kind) ?? {}
    const first = isBefore(one, next) ? one : next
    kinds.set(one.kind, { next: first, sinceMs: Math.min(sinceMs, one.dueSinceMs) })
  }
  const longestDue = (...wanted: readonly RequestKind[]): T | undefined =>
    wanted
      .flatMap((kind) => kinds.get(kind) ?? [])
      .toSorted((one, other) => one.sinceMs - other.sinceMs)[0]?.next
  return (
    longestDue('token') ??
    longestDue(...patientKinds.filter((kind) => isOwedSlot(kind, recent))) ??
    longestDue('feed') ??
    longestDue(...patientKinds)
  )
}

function isBefore(one: SlotRequest, other: SlotRequest): boolean {
  const ahead = (one.rank ?? 0) - (other.rank ?? 0)
  return ahead > 0 || (ahead === 0 && one.dueSinceMs < other.dueSinceMs)
}

function isOwedSlot(kind: RequestKind, recent: readonly RequestKind[]): boolean {
  const last = recent.slice(1 - patientSlotEvery)
  return last.length === patientSlotEvery - 1 && !last.includes(kind)
}

/** What an account has left of its global searches, by the last answer to any replica. */
export interface QuotaReading {
  remaining: number
  /** When an answer stated it; wall clock ms. */
  atMs: number
}

export async function noteQuota(
  redis: Redis,
  keys: Keys,
  account: string,
  { remaining, atMs }: QuotaReading,
): Promise<void> {
  await redis.hset(keys.shared('quota', account), 'remaining', remaining, 'at', Math.floor(atMs))
}

/** Returns undefined if no answer has stated it yet. */
export async function readQuota(
  redis: Redis,
  keys: Keys,
  account: string,
): Promise<QuotaReading | undefined> {
  const [remaining, at] = await redis.hmget(keys.shared('quota', account), 'remaining', 'at')
  return remaining && at ? { remaining: Number(remaining), atMs: Number(at) } : undefined
}
