import type { EventDetail } from '../events/threat-event.ts'
import type { Clock } from '../runtime/clock.ts'
import type { Timings } from '../runtime/timings.ts'
import type { ServiceClient } from '../service/client.ts'
import { ServiceError, type ServiceReason } from '../service/service-error.ts'
import { maskDetail } from './masking.ts'

/** What no repetition mends. */
const lasting: ReadonlySet<ServiceReason> = new Set(['rejected', 'invalid', 'contract'])

/**
 * The full event with its secrets masked; 'unavailable' when the service has none for this type, or
 * when it is not to be had before `signal` aborts. The search item is enough for a message.
 */
export async function fetchDetail(
  client: ServiceClient,
  uid: string,
  { signal, clock, timings }: { signal: AbortSignal; clock: Clock; timings: Timings },
): Promise<EventDetail | 'unavailable'> {
  const turn = { kind: 'detail' as const, name: uid, dueSinceMs: clock.now() }
  while (!signal.aborted) {
    try {
      const answer = await client.getEvent({ uid, turn, signal })
      return answer.kind === 'detail' ? maskDetail(answer.data, uid) : 'unavailable'
    } catch (error) {
      if (!(error instanceof ServiceError)) throw error
      if (lasting.has(error.reason)) return 'unavailable'
      await clock.sleep(Math.max(error.retryAfterMs ?? 0, timings.detailRetryMs), signal)
    }
  }
  return 'unavailable'
}
