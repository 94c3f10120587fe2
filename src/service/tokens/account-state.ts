/**
 * Whether an account may ask at all. A key that the service refuses pauses its account for all replicas,
 * so that they do not hammer the token endpoint; said once in the log, and once when it is over.
 */
import type { Redis } from '../../redis/connection.ts'
import type { Keys } from '../../redis/keys.ts'
import { runScript } from '../../redis/scripts.ts'
import type { Logger } from '../../runtime/logger.ts'
import { defaultTimings, type Timings } from '../../runtime/timings.ts'
import type { Credentials } from './credentials.ts'
import { ServiceError } from '../service-error.ts'

export interface AccountPause {
  reason: 'auth'
  /** What is left of the pause; 0: the next request is the trial. */
  leftMs: number
  /** Pauses since the last success. */
  times: number
}

export interface AccountState {
  /** ServiceError `auth` with `retryAfterMs` while the account is paused. */
  assertOpen(): Promise<void>
  /** The refusal that pauses the account, ready to be thrown. */
  pause(refusal: ServiceError): Promise<ServiceError>
  /** After an answer that shows that key and token are accepted. */
  reportSuccess(): Promise<void>
  /** Null while nothing is wrong. */
  current(): Promise<AccountPause | null>
}

export interface AccountStateOptions {
  account: string
  redis: Redis
  keys: Keys
  logger: Logger
  credentials: () => Credentials
  timings?: Timings | undefined
}

const longestPauseMs = 15 * 60_000

export function createAccountState(options: AccountStateOptions): AccountState {
  const { account, redis, keys, logger, credentials, timings = defaultTimings } = options
  let isTroubled = false

  function key(): string {
    return keys.shared('account-pause', credentials().fingerprint)
  }

  async function current(): Promise<AccountPause | null> {
    const [state, time] = await Promise.all([redis.hmget(key(), 'until', 'times'), redis.time()])
    isTroubled = state[1] !== null && state[1] !== undefined
    if (!isTroubled) return null
    const nowMs = Number(time[0]) * 1000 + Number(time[1]) / 1000
    const leftMs = Number(state[0]) - nowMs
    // Further ahead than any pause: written before Redis' clock was set back.
    const isOver = leftMs <= 0 || leftMs > longestPauseMs
    return { reason: 'auth', leftMs: isOver ? 0 : Math.ceil(leftMs), times: Number(state[1]) }
  }

  return {
    current,
    async assertOpen() {
      const pause = await current()
      if (pause && pause.leftMs > 0) throw pausedError(pause.leftMs)
    },
    async pause(refusal) {
      const args = ['auth', timings.keyPauseMs, longestPauseMs]
      const reply = await runScript(redis, 'pause-account', [key()], args)
      const [leftMs, times, made] = reply as [number, number, number]
      isTroubled = true
      if (made === 1 && times === 1) {
        logger.error({ account, err: refusal }, 'account paused: the service refuses its key')
      }
      const { status, serviceCode, fault } = refusal
      const more = { status, serviceCode, fault, retryAfterMs: leftMs }
      return new ServiceError('auth', refusal.message, more)
    },
    async reportSuccess() {
      if (!isTroubled) return
      isTroubled = false
      if ((await redis.del(key())) === 1) logger.info({ account }, 'account works again')
    },
  }
}

function pausedError(leftMs: number): ServiceError {
  const seconds = Math.ceil(leftMs / 1000)
  const message = `the account is paused since its key was refused; next try in ${seconds} s`
  return new ServiceError('auth', message, { retryAfterMs: leftMs })
}
