import { heldPlace } from '../digest/placement.ts'
import type { Judged } from '../digest/gate.ts'
import type { AttemptMember } from '../ledger/attempts.ts'
import type { Sink } from '../sinks/sink.ts'
import type { Attempted, Begun } from './attempt.ts'
import type { DelivererOptions, Work } from './deliverer.ts'

/**
 * What a rule keeps from being sent just now, or for good; undefined: it goes. Judged once, before the
 * first try: what may have been accepted already is not taken back. Sealed messages were judged before.
 */
export async function keptBack(
  { gate }: Pick<DelivererOptions, 'gate'>,
  { book, sink, ref }: Work,
  begun: Begun,
): Promise<Attempted | undefined> {
  const [member] = begun.members
  if (!gate || !member?.payload || !ref.startsWith('i:') || begun.attempt > 1) return undefined
  if (gate.isIdleFor(sink.name)) return undefined
  const [verdict] = await gate.judge(book, [judgedOf(sink, member)])
  if (!verdict || verdict.act === 'send') return undefined
  const { rule } = verdict
  if (verdict.act === 'suppress') {
    return { outcome: { outcome: 'suppressed', reason: verdict.reason, rule }, taken: undefined }
  }
  const atMs = Math.floor(verdict.untilMs)
  const place = sink.type === 'webhook' ? undefined : heldPlace(begun.destination, rule, atMs)
  const outcome = { outcome: 'held', reason: 'mute', rule, atMs, ...(place && { place }) } as const
  return { outcome, taken: undefined }
}

function judgedOf(sink: Sink, member: AttemptMember): Judged {
  const { recordId, routes, feed, labels, payload, severity, closed } = member
  if (!payload) throw new Error('a member without its payload is not judged')
  const event = { ...payload.event, severity }
  return { recordId, sink: sink.name, routes, feed, labels, event, closed }
}
