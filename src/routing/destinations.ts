import type { RouteDecision } from './router.ts'

/** One item to be created: the event for one destination. */
export interface PlannedItem {
  sink: string
  destination: string
  /** Names of all routes that named the sink, live ones first; the first decides about the item. */
  routes: string[]
  /** Only routes in `stage: shadow` named the sink: the item is recorded and never sent. */
  isShadow?: boolean
}

/**
 * What an event's decisions come to: each destination once, in the order in which the routes name
 * the sinks, those of live routes first. `destinationsOf` gives a sink's destination ids and throws
 * for a sink it does not know.
 */
export function planItems(
  decisions: readonly RouteDecision[],
  destinationsOf: (sink: string) => readonly string[],
): PlannedItem[] {
  const planned = new Map<string, PlannedItem>()
  const isLive = ({ stage }: RouteDecision): boolean => stage === 'live'
  const inOrder = [...decisions.filter(isLive), ...decisions] // a route counts where it stands first
  const named = inOrder.flatMap(({ route, stage, sinks }) =>
    sinks.map((sink) => ({ route, sink, isShadow: stage === 'shadow' })),
  )
  for (const { route, sink, isShadow } of named) {
    for (const destination of destinationsOf(sink)) {
      const made = { sink, destination, routes: [], ...(isShadow && { isShadow }) }
      const item: PlannedItem = planned.get(destination) ?? made
      if (!item.routes.includes(route)) item.routes.push(route)
      planned.set(destination, item)
    }
  }
  return [...planned.values()]
}
