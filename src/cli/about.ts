/** What an event is about, in the words of its messages; only while its payload is kept. */
import type { Config } from '../config/config.ts'
import type { LedgerRecord, Payload } from '../ledger/records.ts'
import { renderMessage, unverifiedLinkLabel, type Message } from '../messages/message.ts'
import { createServiceLink } from '../service/service-links.ts'

export function aboutEvent(
  { accounts }: Pick<Config, 'accounts'>,
  { account, sightings }: LedgerRecord,
  payload: Payload,
  routes: string[] = [],
): Message {
  const link = createServiceLink(accounts)(account, payload.event.url)
  const subject = { account, feed: sightings[0]?.feed ?? '', routes, ...payload, link }
  return renderMessage(subject, { attempt: 1, mayBeRepeat: false })
}

/** Headline and link, indented. */
export function headLines({ title, ...message }: Message): string[] {
  return [title, ...linkLines(message)].map((line) => `  ${line}`)
}

export function linkLines({
  link,
  unverifiedLink,
}: Pick<Message, 'link' | 'unverifiedLink'>): string[] {
  if (link !== null) return [link]
  return unverifiedLink === null ? [] : [`${unverifiedLinkLabel}: ${unverifiedLink}`]
}
