import { heldPlace } from '../digest/placement.ts'
import { judgedOf } from '../digest/read-members.ts'
import { keepBack } from '../ledger/collecting.ts'
import { readItems } from '../ledger/records.ts'
import type { DelivererOptions, DeliverOutcome, Work } from './deliverer.ts'

/**
 * Keeps from being sent what a rule keeps just now, or for good; undefined: it goes. Judged before the
 * first try is begun: what may have been accepted already is not taken back. Sealed messages were
 * judged before.
 */
export async function keptBack(
  { gate, onSuppressed }: Pick<DelivererOptions, 'gate' | 'onSuppressed'>,
  { book, sink, ref }: Work,
): Promise<DeliverOutcome | undefined> {
  if (!gate || !ref.startsWith('i:') || gate.isIdleFor(sink.name)) return undefined
  const [found] = await readItems(book, [ref])
  if (!found?.payload || found.item.attempts > 0) return undefined
  const [verdict] = await gate.judge(book, [judgedOf(found)])
  if (!verdict || verdict.act === 'send') return undefined
  const { severity, destination } = found.item
  if (verdict.act === 'suppress') {
    if ((await keepBack(book, [{ ref, ...verdict }])) === 0) return undefined
    onSuppressed?.(sink.name, severity, verdict.reason)
    return { next: 'done', halves: [] }
  }
  const atMs = Math.floor(verdict.untilMs)
  const isMachine = sink.type === 'webhook'
  const place = isMachine ? undefined : heldPlace(destination, verdict.rule, atMs)
  if ((await keepBack(book, [{ ref, ...verdict, place }])) === 0) return undefined
  return isMachine ? { next: 'later', atMs, isCircuitOpen: false } : { next: 'done', halves: [] }
}
