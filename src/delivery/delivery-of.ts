import type { BegunAttempt } from '../ledger/attempts.ts'
import type { Book } from '../ledger/book.ts'
import type { Delivery, DeliveryMember, Sink } from '../sinks/sink.ts'

type Begun = Extract<BegunAttempt, { status: 'send' }>

/** The message that an attempt sends, or the reason why it can never be sent. */
export function deliveryOf(
  { book, sink, ref }: { book: Book; sink: Sink; ref: string },
  begun: Begun,
): Delivery | 'payload_expired' | 'recipient_removed' {
  const destination = sink.destinations.find(({ id }) => id === begun.destination)
  if (!destination) return 'recipient_removed'
  const members: DeliveryMember[] = []
  for (const { payload, ...member } of begun.members) {
    if (!payload) return 'payload_expired'
    members.push({
      id: member.id,
      account: book.account,
      feed: member.feed,
      labels: member.labels,
      routes: member.routes,
      event: { ...payload.event, severity: member.severity },
      detail: payload.detail,
      fetchedAtMs: payload.fetchedAtMs,
    })
  }
  return {
    id: ref.startsWith('b:') ? `b${ref.split(':')[1] ?? ''}` : (members[0]?.id ?? ''),
    destination,
    members,
    attempt: begun.attempt,
    mayBeRepeat: begun.mayBeRepeat,
  }
}
