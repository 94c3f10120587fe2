import { itemId } from '../ledger/digests.ts'
import type { FoundItem } from '../ledger/records.ts'
import type { ServiceLink } from '../messages/message-subject.ts'
import type { DeliveryMember, Sink } from '../sinks/sink.ts'
import type { Member } from './claims.ts'

export interface MemberOptions {
  /** A leaked secret in clear; undefined where its account's key is another one now. */
  openSecret?: ((account: string, uid: string, sealed: string) => string | undefined) | undefined
  serviceLink: ServiceLink
}

/** One that was not begun by itself, as a summary shows it. */
export function memberOfItem(
  sink: Sink,
  { record, item, payload }: FoundItem,
  options: MemberOptions,
): DeliveryMember | undefined {
  const sighting = record.sightings[item.sighting]
  const { account, recordId, uid, closed } = record
  const { severity, routes, raisedFrom } = item
  const id = itemId(account, uid, severity, item.destination)
  const feed = sighting?.feed ?? ''
  const labels = sighting?.labels ?? {}
  const member = { id, recordId, uid, severity, routes, feed, labels, raisedFrom, closed, payload }
  return memberOf(sink, account, member, options)
}

/** undefined where its payload is no longer kept. */
export function memberOf(
  sink: Sink,
  account: string,
  { payload, ...member }: Member,
  { openSecret, serviceLink }: MemberOptions,
): DeliveryMember | undefined {
  if (!payload) return undefined
  const { sealedSecret } = payload
  const secret =
    sink.reveals === true && sealedSecret !== undefined
      ? openSecret?.(account, member.uid, sealedSecret)
      : undefined
  return {
    id: member.id,
    account,
    feed: member.feed,
    labels: member.labels,
    routes: member.routes,
    event: { ...payload.event, severity: member.severity },
    link: serviceLink(account, payload.event.url),
    detail: payload.detail,
    fetchedAtMs: payload.fetchedAtMs,
    raisedFrom: member.raisedFrom,
    ...(secret !== undefined && { secret }),
  }
}
