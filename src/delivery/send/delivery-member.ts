/** What is said of one event to one sink: the same in a message, a digest and a preview. */
import { withoutExcerpts } from '../../masking/excerpts.ts'
import type { GuidanceFinder } from '../../messages/guidance.ts'
import type { LinkFilter } from '../../messages/message.ts'
import { eventPath, type PageAddress } from '../../messages/page-links.ts'
import type { DeliveryMember, Sink } from '../../sinks/sink.ts'
import type { FoundItem } from '../../store/records.ts'
import { type Member, toMember } from '../claims.ts'

export interface MemberOptions {
  /**
   * Decrypts a leaked secret; undefined if the account's API key has changed since. Left out:
   * secrets stay masked.
   */
  openSecret?: ((account: string, uid: string, sealed: string) => string | undefined) | undefined
  serviceLink: LinkFilter
  pageAddress: PageAddress
  /** What an operator reads of a destination; undefined: no sink has it. */
  findLabel: (destination: string) => string | undefined
  /** Several accounts are configured. */
  namesAccounts: boolean
  /** Finds the tenant that an account is configured for. */
  findTenant: (account: string) => number | undefined
  findGuidance: GuidanceFinder
}

/** What is known of an event that is in the ledger. */
type StoredFacts = 'recordId' | 'destination' | 'otherDestinations' | 'seenBefore' | 'title'

/** The member of a message; of an event that is not in the ledger without what only that knows. */
export type GivenMember = Omit<Member, StoredFacts | 'closed'> & Partial<Pick<Member, StoredFacts>>

type Showing = Pick<Sink, 'reveals' | 'hidesExcerpts'>

/** Builds a member from its stored item: the members of a summary are not claimed one by one. */
export function toStoredMember(
  sink: Showing,
  found: FoundItem,
  options: MemberOptions,
): DeliveryMember | undefined {
  return toDeliveryMember(sink, found.record.account, toMember(found), options)
}

/** Returns undefined if retention removed the payload. */
export function toDeliveryMember(
  sink: Showing,
  account: string,
  { payload, ...member }: GivenMember,
  options: MemberOptions,
): DeliveryMember | undefined {
  if (!payload) return undefined
  const { openSecret, serviceLink, namesAccounts, findTenant, findGuidance } = options
  const { sealedSecret } = payload
  const secret =
    sink.reveals === true && sealedSecret !== undefined
      ? openSecret?.(account, member.uid, sealedSecret)
      : undefined
  const whole: DeliveryMember = {
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
    title: member.title,
    raisedFrom: member.raisedFrom,
    ...findRelated(account, member, options),
    ...(secret !== undefined && { secret }),
  }
  return sink.hidesExcerpts === true ? withoutExcerpts(whole) : whole
}

/** What the ledger knows of an event beside its content; nothing where there is nothing to say. */
function findRelated(
  account: string,
  member: Pick<GivenMember, StoredFacts>,
  { pageAddress, findLabel }: MemberOptions,
): Pick<DeliveryMember, 'pageUrl' | 'otherRecipients' | 'seenBefore'> {
  const { recordId, destination = '', otherDestinations: others = [] } = member
  const seenBefore = (member.seenBefore ?? []).filter(({ isLate }) => !isLate)
  const pageUrl = recordId && pageAddress(eventPath({ account, recordId }))
  const own = findLabel(destination)?.toLowerCase()
  const labels = others.flatMap((one) => findLabel(one) ?? [])
  const otherRecipients = labels.filter((label) => label.toLowerCase() !== own)
  return {
    ...(pageUrl && { pageUrl }),
    ...(otherRecipients.length > 0 && { otherRecipients: [...new Set(otherRecipients)] }),
    ...(seenBefore.length > 0 && { seenBefore }),
  }
}
