import type { Book } from '../ledger/book.ts'
import { ownFeed } from '../events/own-feed.ts'
import type { Delivery, DeliveryMember, Sink } from '../sinks/sink.ts'
import type { Begun } from './attempt.ts'
import { memberOf, type MemberOptions } from './member-of.ts'
import { summaryOf } from './summary-of.ts'

export interface DeliveryOptions extends MemberOptions {
  book: (account: string) => Book | undefined
}

/** Why there is nothing that could ever be sent. */
export type Unsendable = 'payload_expired' | 'recipient_removed'

/** The message that an attempt sends, or the reason why it can never be sent. */
export async function deliveryOf(
  { book, sink }: { book: Book; sink: Sink },
  begun: Begun,
  options: DeliveryOptions,
): Promise<Delivery | Unsendable> {
  const destination = sink.destinations.find(({ id }) => id === begun.destination)
  if (!destination) return 'recipient_removed'
  const told = { destination, attempt: begun.attempt, mayBeRepeat: begun.mayBeRepeat }
  const messageId = begun.ref.split(':')[1] ?? ''
  if (begun.kind === 'summary') {
    const work = { sink, messageId, book: options.book, options }
    const { about, members, attachment } = await summaryOf(work, begun)
    if (about.summary.total > 0 && members.length === 0) return 'payload_expired'
    const { total, kind, undelivered } = about.summary
    const isSole = total === 1 && kind !== 'digest' && undelivered === undefined
    return {
      id: `b${messageId}`,
      ...told,
      members,
      ...(!isSole && { summary: about.summary }),
      ...(attachment && { attachment }),
    }
  }
  const members: DeliveryMember[] = []
  for (const member of begun.members) {
    const ready = memberOf(sink, book.account, member, options)
    if (!ready) return 'payload_expired'
    members.push(ready)
  }
  return {
    id: begun.kind === 'batch' ? `b${messageId}` : (members[0]?.id ?? ''),
    ...told,
    members,
    ...(members.every(isCanary) && { isTest: true }),
  }
}

/** Tocsin's own test event: one of that type from the service is an event like any other. */
function isCanary({ event, feed }: DeliveryMember): boolean {
  return event.type === 'canary' && feed === ownFeed
}
