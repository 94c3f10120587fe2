import type { Message } from '../../messages/message.ts'
import type { SummaryMessage } from '../../messages/summary-message.ts'

/** What a mail says of itself at its foot. */
export interface MailOrigin {
  sink: string
  deliveryId: string
}

/** Lines for whoever asks Tocsin about this mail: `explain <uid>`. */
export function originOf(message: Message, { sink, deliveryId }: MailOrigin): string[] {
  return [
    `Sent by Tocsin to sink ${sink}, routes: ${message.routes.join(', ') || '-'}`,
    `uid: ${message.uid}`,
    `delivery: ${deliveryId}`,
  ]
}

/** As above, for a mail about several events. */
export function summaryOriginOf(
  { route, timeZone, attachment }: SummaryMessage,
  { sink, deliveryId }: MailOrigin,
): string[] {
  return [
    `Sent by Tocsin to sink ${sink}${route === null ? '' : `, route: ${route}`}`,
    `Times are ${timeZone}. ${attachment === null ? '' : `Attached: ${attachment}`}`.trim(),
    `delivery: ${deliveryId}`,
  ]
}
