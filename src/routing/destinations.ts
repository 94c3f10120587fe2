import type { RouteDecision } from './router.ts'

/** One item to be created: the event for one destination. */
export interface PlannedItem {
  sink: string
  destination: string
  /** Names of all routes that named the sink; the first decides what happens to the item. */
  routes: string[]
}

/**
 * What an event's decisions come to: each destination once, in the order in which the routes name
 * the sinks. `destinationsOf` gives a sink's destination ids and throws for a sink it does not know.
 */
export function planItems(
  decisions: readonly RouteDecision[],
  destinationsOf: (sink: string) => readonly string[],
): PlannedItem[] {
  const planned = new Map<string, PlannedItem>()
  const named = decisions.flatMap(({ route, sinks }) => sinks.map((sink) => ({ route, sink })))
  for (const { route, sink } of named) {
    for (const destination of destinationsOf(sink)) {
      const item = planned.get(destination) ?? { sink, destination, routes: [] }
      if (!item.routes.includes(route)) item.routes.push(route)
      planned.set(destination, item)
    }
  }
  return [...planned.values()]
}
