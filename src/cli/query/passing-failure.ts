/** Failures that may be over when the same is asked again. */
import { messageOf } from '../../runtime/errors.ts'
import { ServiceError, type ServiceReason } from '../../service/service-error.ts'
import type { Context } from '../context.ts'
import { spanInWords } from '../words.ts'

const passingReasons: ReadonlySet<ServiceReason> = new Set([
  'unavailable',
  'timeout',
  'rate_limited',
])

export function isPassing(error: unknown): error is ServiceError {
  return error instanceof ServiceError && passingReasons.has(error.reason)
}

const mostRepeats = 3
const firstWaitMs = 5_000
/** A service that asks for more is better asked another day. */
const longestWaitMs = 300_000

/** What changes nothing, asked again a few times where the failure may pass. Throws what `ask` threw last. */
export async function askAgain<Answer>(
  { terminal, clock, stop }: Context,
  ask: () => Promise<Answer>,
): Promise<Answer> {
  for (let repeats = 0; ; repeats += 1) {
    try {
      return await ask()
    } catch (error) {
      const waitMs = isPassing(error) ? waitBefore(error, repeats) : Infinity
      if (repeats === mostRepeats || waitMs > longestWaitMs || stop.aborted) throw error
      terminal.progress(`${messageOf(error)}; asking again in ${spanInWords(waitMs)}`)
      await clock.sleep(waitMs, AbortSignal.any([stop, terminal.unheard]))
    }
  }
}

function waitBefore({ retryAfterMs }: ServiceError, repeats: number): number {
  return retryAfterMs ?? firstWaitMs * 2 ** repeats
}
