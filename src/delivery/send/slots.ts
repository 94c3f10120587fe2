/** How many sends a sink has at once, and what waits because those before it are slow. */
import type { Sink } from '../../sinks/sink.ts'
import type { Message } from '../claims.ts'

export interface Sending {
  message: Pick<Message, 'destination'>
  startedAtMs: number
}

/** A send that takes longer takes no slot from others. No sink but a mail server lets one take so long. */
export const slowAfterMs = 20_000

/** All sends of a sink, slow ones too, are at most so many times its concurrency. */
const maxSlowFold = 4

/** How long messages wait whose destination has slow sends in half of the slots. */
const slowRestMs = 10_000

/** How many more may start. */
export function freeSlots(
  { concurrency }: Pick<Sink, 'concurrency'>,
  running: readonly Sending[],
  nowMs: number,
): number {
  const most = concurrency + slowOf(running, nowMs).length
  return Math.min(most, maxSlowFold * concurrency) - running.length
}

/** By destination that is too slow for its share: how long its messages wait, so that others go, ms. */
export function restsOf(
  { concurrency, destinations }: Pick<Sink, 'concurrency' | 'destinations'>,
  running: readonly Sending[],
  nowMs: number,
): Record<string, number> {
  if (destinations.length < 2) return {}
  const slow = Map.groupBy(slowOf(running, nowMs), ({ message }) => message.destination)
  const late = [...slow].filter(([, sends]) => sends.length >= concurrency / 2)
  return Object.fromEntries(late.map(([id]) => [id, slowRestMs]))
}

function slowOf(running: readonly Sending[], nowMs: number): readonly Sending[] {
  return running.filter(({ startedAtMs }) => nowMs - startedAtMs >= slowAfterMs)
}
