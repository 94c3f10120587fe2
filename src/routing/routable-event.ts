import type { ThreatEvent } from '../events/threat-event.ts'
import type { eventNames, Matcher } from './matcher.ts'

/** An event with what its feed adds to it: everything that matchers can see. */
export interface RoutableEvent {
  event: ThreatEvent
  account: string
  feed: string
  /** The feed's labels. */
  labels: Readonly<Record<string, string>>
}

type EventName = (typeof eventNames)[number]

const readers: Record<EventName, (input: RoutableEvent) => readonly string[]> = {
  account: ({ account }) => [account],
  feed: ({ feed }) => [feed],
  kind: ({ event }) => [event.kind],
  type: ({ event }) => [event.type],
  severity: ({ event }) => [event.severity],
  source: ({ event }) => [event.source],
  identifier: ({ event }) => event.identifiers.flatMap(({ name, id }) => [name, String(id)]),
  tag: ({ event }) => event.tags,
}

/** What an event has under a matcher's name; a name that is none of the event's is a label's. */
export function valuesOf(input: RoutableEvent, name: string): readonly string[] {
  if (Object.hasOwn(readers, name)) return readers[name as EventName](input)
  const label = Object.hasOwn(input.labels, name) ? input.labels[name] : undefined
  return label === undefined ? [] : [label]
}

export function allMatch(matchers: readonly Matcher[], input: RoutableEvent): boolean {
  return matchers.every((matcher) => matcher.matches(valuesOf(input, matcher.name)))
}
