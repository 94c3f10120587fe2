/** What an event is about, in the words of its messages; only while its payload is kept. */
import type { LedgerRecord, Payload } from '../ledger/records.ts'
import { renderMessage, type Message } from '../messages/message.ts'

export function aboutEvent(
  { account, sightings }: LedgerRecord,
  payload: Payload,
  routes: string[] = [],
): Message {
  const subject = { account, feed: sightings[0]?.feed ?? '', routes, ...payload }
  return renderMessage(subject, { attempt: 1, mayBeRepeat: false })
}

/** Headline and link, indented. */
export function headLines({ title, link }: Message): string[] {
  return [`  ${title}`, ...(link === null ? [] : [`  ${link}`])]
}
