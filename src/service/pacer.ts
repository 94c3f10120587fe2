/** Sends one account's requests, each in its turn; a 429 closes the tier for everybody. */
import type { Clock } from '../runtime/clock.ts'
import type { AccountConfig, Tier } from './config.ts'
import { failureOfAnswer, headerOf, type Answer } from './transport/failures.ts'
import { searchesRemainingIn } from './transport/searches-remaining.ts'
import type { Lane, Organizations } from './pacing/organizations.ts'
import type { Turn } from './pacing/pick-next.ts'
import { parseHttpDate } from '../runtime/retry-after.ts'
import type { ServiceError } from './service-error.ts'
import type { Transport, TransportRequest } from './transport/transport.ts'
import type { TakeOptions } from './pacing/turn-queue.ts'
import type { Turns } from './pacing/turns.ts'

/** One request that was sent, or was given up while waiting for its answer. */
export interface RequestInfo {
  tier: Tier
  /** HTTP status; `none` where no answer came. */
  code: number | 'none'
  waitedMs: number
}

export interface Paced extends TakeOptions {
  turn: Turn
  tier: Tier
  /** What of this one request may not stand in any message, besides the account's own secrets. */
  secrets?: readonly string[]
  /** Its turn has come: from now on it may arrive. */
  onSend?: () => void
}

export interface Pacer {
  /** Any answer but a 429, which is thrown as `rate_limited`. */
  send(request: TransportRequest, paced: Paced): Promise<Answer>
  /** How far the service's clock is ahead of ours by its last answer, ms. */
  clockSkewMs(): number | undefined
  waitedSeconds(tier: Tier): number
}

export interface PacerOptions {
  account: AccountConfig
  organizations: Organizations
  turns: Turns
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
  const { account, organizations, turns, transport, clock, random = Math.random } = options
  const waitedMs: Record<Tier, number> = { search: 0, basic: 0 }
  let clockSkewMs: number | undefined

  async function pauseTier(answer: Answer, lane: Lane, paced: Paced): Promise<ServiceError> {
    const failure = failureOfAnswer(answer, [...options.secrets(), ...(paced.secrets ?? [])])
    // Up to a tenth more, so that not everybody who was told the same comes back at once.
    await turns.pause(lane, (failure.retryAfterMs ?? 0) * (1 + 0.1 * random()))
    return failure
  }

  function noteClock(answer: Answer): void {
    const serverMs = parseHttpDate(headerOf(answer, 'date'))
    if (serverMs !== undefined) clockSkewMs = serverMs - (answer.sentAtMs + clock.now()) / 2
  }

  function noteQuota(answer: Answer): void {
    const remaining = searchesRemainingIn(answer)
    if (remaining !== undefined) options.onQuota?.(remaining)
  }

  return {
    async send(request, paced) {
      const lane = organizations.laneOf(account.name, paced.tier)
      const taken = await turns.take(paced.turn, lane, paced)
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
