/** While Redis is away or hangs its commands wait; whoever asks for a page does not. */
import type { Clock } from '../../lib/clock.ts'

/** Redis did not answer; refused as `unavailable`. */
export class Unanswered extends Error {
  override readonly name = 'Unanswered'
}

/** Of one command, ms. */
const usualMs = 2_000

/** Throws Unanswered; the command is sent all the same once Redis is back. */
export async function inTime<T>(
  clock: Pick<Clock, 'sleep'>,
  asked: Promise<T>,
  patienceMs = usualMs,
): Promise<T> {
  const answered = new AbortController()
  const late = clock.sleep(patienceMs, answered.signal).then(() => {
    throw new Unanswered('Redis does not answer')
  })
  late.catch(() => undefined) // an aborted sleep ends, too
  asked.catch(() => undefined) // it may fail when nobody waits any more
  try {
    return await Promise.race([asked, late])
  } finally {
    answered.abort()
  }
}
