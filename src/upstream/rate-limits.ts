/** Sends one account's requests, each in its turn; a 429 closes the tier for everybody. */
import { type Clock, systemClock } from '../lib/clock.ts'
import { parseHttpDate } from '../lib/web-address.ts'
import type { Redis } from '../redis/connection.ts'
import type { Keys } from '../redis/keys.ts'
import { runScript } from '../redis/scripts.ts'
import type { AccountConfig, Tier } from './config.ts'
import { UpstreamError } from './error.ts'
import { type Answer, errorFromAnswer, readHeader, readSearchesRemaining } from './failures.ts'
import type { Lane, Organizations } from './organizations.ts'
import type { Transport, TransportRequest } from './transport.ts'

/** One request that was sent, or was given up while waiting for its answer. */
export interface RequestInfo {
  tier: Tier
  /** HTTP status; `none` where no answer came. */
  code: number | 'none'
  waitedMs: number
}

export interface PacedRequest extends TakeOptions {
  slot: SlotRequest
  tier: Tier
  /** What of this one request may not stand in any message, besides the account's own secrets. */
  secrets?: readonly string[]
  /** Its turn has come: from now on it may arrive. */
  onSend?: () => void
}

export interface Pacer {
  /** Any answer but a 429, which is thrown as `rate_limited`. */
  send(request: TransportRequest, paced: PacedRequest): Promise<Answer>
  /** How far the service's clock is ahead of ours by its last answer, ms. */
  clockSkewMs(): number | undefined
  waitedSeconds(tier: Tier): number
}

interface PacerOptions {
  account: AccountConfig
  organizations: Organizations
  slots: ApiSlots
  transport: Transport
  clock: Clock
  /** Never to be repeated in a message. */
  secrets: () => string[]
  onRequest?: ((info: RequestInfo) => void) | undefined
  /** How many global searches are left of the organization's month, by an answer that says so. */
  onQuota?: ((remaining: number) => void) | undefined
  random?: (() => number) | undefined
}

export function createPacer(options: PacerOptions): Pacer {
  const { account, organizations, slots: turns, transport, clock, random = Math.random } = options
  const waitedMs: Record<Tier, number> = { search: 0, basic: 0 }
  let clockSkewMs: number | undefined

  async function pauseTier(
    answer: Answer,
    lane: Lane,
    paced: PacedRequest,
  ): Promise<UpstreamError> {
    const failure = errorFromAnswer(answer, [...options.secrets(), ...(paced.secrets ?? [])])
    // Up to a tenth more, so that not everybody who was told the same comes back at once.
    await turns.pause(lane, (failure.retryAfterMs ?? 0) * (1 + 0.1 * random()))
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
      const taken = await turns.take(paced.slot, lane, paced)
      waitedMs[paced.tier] += taken.waitedMs
      const info: RequestInfo = { tier: paced.tier, code: 'none', waitedMs: taken.waitedMs }
      try {
        paced.onSend?.()
        const answer = await transport.request(request)
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
    waitedSeconds: (tier) => waitedMs[tier] / 1000,
  }
}

/**
 * Hands the slots of the rate limits to those who wait. It is decided only when a slot comes who gets
 * it; a slot that nobody wants any more goes unused.
 */

export interface ApiSlots {
  /** Resolves when the request may go out, which it must at once; ServiceError `timeout` otherwise. */
  take(turn: SlotRequest, lane: Lane, options?: TakeOptions): Promise<TakenSlot>
  /** After a 429: nobody gets a slot of the lane for so long, in any replica. */
  pause(lane: Lane, ms: number): Promise<void>
  /** Share of the lane's rate that this process used within the last minute, 0 to 1. */
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

  return {
    async take(turn, lane, takeOptions = {}) {
      if (takeOptions.signal?.aborted || closing.signal.aborted) throw noSlotError()
      return ensureQueue(lane).join(turn, takeOptions)
    },
    pause: (lane, ms) => limiter.pause(lane, ms),
    utilization: (lane) =>
      Math.min(1, ensureQueue(lane).usedInMinute() / (60 * limiter.limitFor(lane))),
    close: () => closing.abort(),
  }
}

/** The requests of this process that wait for slots of one lane; at most one slot is reserved at a time. */

interface TakenSlot {
  /** Wall clock ms. */
  slotAtMs: number
  waitedMs: number
}

export interface TakeOptions {
  signal?: AbortSignal | undefined
  maxWaitMs?: number | undefined
}

interface SlotQueue {
  join(turn: SlotRequest, options: TakeOptions): Promise<TakenSlot>
  /** Slots used within the last minute. */
  usedInMinute(): number
}

interface SlotQueueOptions {
  lane: Lane
  limiter: TierLimiter
  clock: Clock
  closing: AbortSignal
}

interface Waiter extends SlotRequest {
  taken: PromiseWithResolvers<TakenSlot>
  sinceMs: number
}

const minuteMs = 60_000

function createSlotQueue({ lane, limiter, clock, closing }: SlotQueueOptions): SlotQueue {
  const waiting = new Set<Waiter>()
  let recentKinds: RequestKind[] = []
  let usedAtMs: number[] = []
  let isServing = false

  async function serve(): Promise<void> {
    if (isServing) return
    isServing = true
    try {
      while (waiting.size > 0) {
        const slotAtMs = await limiter.nextSlot(lane, closing, () => isPatient(waiting))
        if (slotAtMs === undefined) throw noSlotError()
        assignSlot(slotAtMs)
      }
    } catch (error) {
      for (const waiter of waiting) waiter.taken.reject(error)
    } finally {
      isServing = false
    }
  }

  /** Nobody may be left who wants it. */
  function assignSlot(slotAtMs: number): void {
    const chosen = pickNext([...waiting], recentKinds)
    if (!chosen) return
    waiting.delete(chosen)
    const nowMs = clock.monotonic()
    recentKinds = [...recentKinds, chosen.kind].slice(1 - patientSlotEvery)
    usedAtMs = [...usedAtMs, nowMs].filter((at) => at > nowMs - minuteMs)
    chosen.onSlot?.()
    chosen.taken.resolve({ slotAtMs, waitedMs: nowMs - chosen.sinceMs })
  }

  return {
    async join(turn, { signal, maxWaitMs }) {
      const taken = Promise.withResolvers<TakenSlot>()
      const waiter = { ...turn, taken, sinceMs: clock.monotonic() }
      const settled = new AbortController()
      const giveUp = (): void => taken.reject(noSlotError())
      signal?.addEventListener('abort', giveUp, { once: true })
      if (maxWaitMs !== undefined)
        void clock.sleep(maxWaitMs, settled.signal).then(() => settled.signal.aborted || giveUp())
      waiting.add(waiter)
      turn.onJoin?.()
      void serve()
      try {
        return await taken.promise
      } finally {
        waiting.delete(waiter)
        settled.abort()
        signal?.removeEventListener('abort', giveUp)
      }
    },
    usedInMinute: () => usedAtMs.filter((at) => at > clock.monotonic() - minuteMs).length,
  }
}

/** Sweeps, and what an operator asks for, give way to the feeds of other processes too. */
function isPatient(waiting: ReadonlySet<SlotRequest>): boolean {
  return [...waiting].every(({ kind }) => kind === 'command' || kind === 'sweep')
}

function noSlotError(): UpstreamError {
  return new UpstreamError('timeout', 'no turn came in time under the rate limit')
}

/**
 * The rate limit of an organization's tier, kept in Redis for all replicas and by Redis' clock: slots
 * stand a fixed spacing apart, without burst. Without Redis there is no slot, hence no request.
 */

export interface TierLimiter {
  /**
   * Resolves when a slot has come: the request must go out at once. `undefined` when `signal` aborted.
   * A process that was stopped over its slot's time gets another one, never an old one. While
   * `isPatient` it takes only slots that no process has asked for, or one in `leastShare`.
   */
  nextSlot(lane: Lane, signal: AbortSignal, isPatient?: () => boolean): Promise<number | undefined>
  /** Closes the tier for every replica; never shortens a longer pause. */
  pause(lane: Lane, ms: number): Promise<void>
  /** Requests per second. */
  limitFor(lane: Lane): number
}

interface TierLimiterOptions {
  redis: Redis
  keys: Keys
  clock: Clock
  limitFor: (lane: Lane) => number
}

/** How long after its time a slot may be used, on a clock that never jumps. */
const slotValidMs = 250

/** Microseconds between two slots of a tier with `limit` requests per second: 3 % more than it asks. */
export function spacingMicros(limit: number): number {
  return Math.ceil((1.03 / limit) * 1_000_000)
}

export function createTierLimiter({
  redis,
  keys,
  clock,
  limitFor: limitOf,
}: TierLimiterOptions): TierLimiter {
  function limitKeys(lane: Lane): string[] {
    return [lane.organization, lane.baseUrl].map((name) => keys.shared('limit', name, lane.tier))
  }

  /** When the request for a slot that is ours now was made; `undefined` when there is none. */
  async function awaitSlot(
    lane: Lane,
    signal: AbortSignal,
    isPatient: boolean,
  ): Promise<number | undefined> {
    let askedAt = clock.monotonic()
    const args = [spacingMicros(limitOf(lane)), isPatient ? patientSlotEvery : 0]
    const reply = await runScript(redis, 'reserve-slot', limitKeys(lane), args)
    const [slot, reserved] = reply as [number, number]
    let wait = reserved
    if (slot === 0) {
      await clock.sleep(Math.ceil(wait / 1000), signal)
      return undefined
    }
    while (wait > 0) {
      await clock.sleep(Math.ceil(wait / 1000), signal)
      if (signal.aborted) return undefined
      askedAt = clock.monotonic()
      wait = Number(await runScript(redis, 'claim-slot', limitKeys(lane), [slot]))
    }
    return wait === 0 ? askedAt : undefined
  }

  return {
    limitFor: limitOf,
    async nextSlot(lane, signal, isPatient = () => false) {
      while (!signal.aborted) {
        const claimedAt = await awaitSlot(lane, signal, isPatient())
        if (claimedAt !== undefined && clock.monotonic() - claimedAt <= slotValidMs) {
          return clock.now()
        }
      }
      return undefined
    },
    async pause(lane, ms) {
      await runScript(redis, 'pause-tier', limitKeys(lane), [Math.ceil(ms)])
    },
  }
}

/** Who gets a free slot: pure, so that a better schedule replaces one function. */

/**
 * `token`: renewing or testing the token, which everything else waits for; `feed`: a page of a feed;
 * `sweep`: a page of a feed's sweep, which looks for late arrivals; `detail`: the full event of a
 * message about to be sent; `command`: what an operator asked for.
 */
export type RequestKind = 'token' | 'feed' | 'sweep' | 'detail' | 'command'

export interface SlotRequest {
  kind: RequestKind
  /** Of the feed, sink or command. */
  name: string
  /** Wall clock ms since when the request is owed. */
  dueSinceMs: number
  /** From now on it waits for its slot alone: token and organization are known. */
  onJoin?: (() => void) | undefined
  /** Its slot has come: the request goes out now. */
  onSlot?: (() => void) | undefined
}

/** One slot in so many goes to each kind that gives way to feeds, however many feeds are due. */
const patientSlotEvery = 10

/** Those that give way to feeds; among each other the oldest debt decides. */
const patientKinds = ['sweep', 'detail', 'command'] as const

/**
 * Tokens first; then whichever of the patient kinds had none of the last nine slots; then feeds by
 * oldest debt; then the patient kinds, by oldest debt. `recent`: the kinds served, newest last.
 */
export function pickNext<T extends SlotRequest>(
  waiting: readonly T[],
  recent: readonly RequestKind[],
): T | undefined {
  const oldest = (...kinds: readonly RequestKind[]): T | undefined =>
    waiting
      .filter(({ kind }) => kinds.includes(kind))
      .reduce<T | undefined>((a, b) => (a && a.dueSinceMs <= b.dueSinceMs ? a : b), undefined)
  return (
    oldest('token') ??
    oldest(...patientKinds.filter((kind) => isOwedSlot(kind, recent))) ??
    oldest('feed') ??
    oldest(...patientKinds)
  )
}

function isOwedSlot(kind: RequestKind, recent: readonly RequestKind[]): boolean {
  const last = recent.slice(1 - patientSlotEvery)
  return last.length === patientSlotEvery - 1 && !last.includes(kind)
}

/** What an account has left of its global searches, for all replicas: by the last answer that said so. */

export interface QuotaReading {
  remaining: number
  /** When an answer said so, wall clock ms. */
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

/** undefined: no answer has said so yet. */
export async function readQuota(
  redis: Redis,
  keys: Keys,
  account: string,
): Promise<QuotaReading | undefined> {
  const [remaining, at] = await redis.hmget(keys.shared('quota', account), 'remaining', 'at')
  return remaining && at ? { remaining: Number(remaining), atMs: Number(at) } : undefined
}
