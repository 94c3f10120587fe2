import type { EventDetail, ThreatEvent } from '../events/threat-event.ts'

/** An address as it may be clicked, or null: it does not lead to the account's service. */
export type ServiceLink = (account: string, url: string | null) => string | null

/** What is rendered: a `DeliveryMember` of the sinks fits. */
export interface MessageSubject {
  account: string
  feed: string
  routes: readonly string[]
  event: ThreatEvent
  detail?: EventDetail | 'unavailable' | undefined
  fetchedAtMs: number
  /** The severity that the same readers were told before; undefined: they were told none. */
  raisedFrom?: string | undefined
  /** What a `ServiceLink` says of the event's `url`; left out: nothing to click. */
  link?: string | null | undefined
  /** A leaked secret in clear, for one fact and nowhere else; undefined: it stays masked. */
  secret?: string | undefined
}

export interface RenderOptions {
  attempt: number
  mayBeRepeat: boolean
  isTest?: boolean | undefined
}
