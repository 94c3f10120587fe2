/** What is said of one event to one sink: the same in a message, a digest and a preview. */
import type { GuidanceFinder } from '../messages/guidance.ts'
import type { LinkFilter } from '../messages/message.ts'
import type { DeliveryMember, Sink } from '../sinks/sink.ts'
import { itemId } from '../store/account-ledger.ts'
import type { FoundItem } from '../store/records.ts'
import type { Member } from './claims.ts'

export interface MemberOptions {
  /**
   * Decrypts a leaked secret; undefined if the account's API key has changed since. Left out:
   * secrets stay masked.
   */
  openSecret?: ((account: string, uid: string, sealed: string) => string | undefined) | undefined
  serviceLink: LinkFilter
  /** Several accounts are configured. */
  namesAccounts: boolean
  /** Finds the tenant that an account is configured for. */
  findTenant: (account: string) => number | undefined
  findGuidance: GuidanceFinder
}

type Revealing = Pick<Sink, 'reveals'>

/** Builds a member from its stored item: the members of a summary are not claimed one by one. */
export function toStoredMember(
  sink: Revealing,
  { record, item, payload }: FoundItem,
  options: MemberOptions,
): DeliveryMember | undefined {
  const sighting = record.sightings[item.sighting]
  const { account, uid } = record
  const { severity, routes, raisedFrom } = item
  const id = itemId(account, uid, severity, item.destination)
  const feed = sighting?.feed ?? ''
  const labels = sighting?.labels ?? {}
  const member = { id, uid, severity, routes, feed, labels, raisedFrom, payload }
  return toDeliveryMember(sink, account, member, options)
}

/** Returns undefined if retention removed the payload. */
export function toDeliveryMember(
  sink: Revealing,
  account: string,
  { payload, ...member }: Omit<Member, 'recordId' | 'closed'>,
  { openSecret, serviceLink, namesAccounts, findTenant, findGuidance }: MemberOptions,
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
    ...(namesAccounts && { namesAccount: true }),
    tenantId: findTenant(account),
    feed: member.feed,
    labels: member.labels,
    routes: member.routes,
    event: { ...payload.event, severity: member.severity },
    guidance: findGuidance({ ...member, event: payload.event }),
    link: serviceLink(account, payload.event.url),
    detail: payload.detail,
    fetchedAtMs: payload.fetchedAtMs,
    raisedFrom: member.raisedFrom,
    ...(secret !== undefined && { secret }),
  }
}
