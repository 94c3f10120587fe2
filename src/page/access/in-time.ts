/** While Redis is away its commands wait; whoever asks for a page does not. */
import type { Clock } from '../../lib/clock.ts'

/** Redis did not answer; refused as `unavailable`. */
export class Unanswered extends Error {
  override readonly name = 'Unanswered'
}

const patienceMs = 2_000

/** Throws Unanswered; the command is sent all the same once Redis is back. */
export async function inTime<T>(clock: Clock, asked: Promise<T>): Promise<T> {
  const answered = new AbortController()
  const late = clock.sleep(patienceMs, answered.signal).then(() => {
    throw new Unanswered('Redis does not answer')
  })
  late.catch(() => undefined) // an aborted sleep ends, too
  try {
    return await Promise.race([asked, late])
  } finally {
    answered.abort()
  }
}
