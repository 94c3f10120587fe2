import { valuesOf, type RoutableEvent } from './routable-event.ts'

/**
 * What an event has under the names of `group_by`, each as one text; events whose texts are all the
 * same belong together. Nothing under a name is the empty text. The texts are for people too:
 * identifiers by name, and two sets that read alike share a group. Hostile text.
 */
export function groupLabels(
  groupBy: readonly string[],
  input: RoutableEvent,
): Record<string, string> {
  return Object.fromEntries(groupBy.map((name) => [name, valueSet(name, input).join(', ')]))
}

/** The event's values under one name as a sorted set; of identifiers the names, not the ids. */
export function valueSet(name: string, input: RoutableEvent): string[] {
  const values =
    name === 'identifier'
      ? input.event.identifiers.map((identifier) => identifier.name)
      : valuesOf(input, name)
  return [...new Set(values)].toSorted()
}
