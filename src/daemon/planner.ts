/** The plan of routes, items and groups for each new event. */
import type { ThreatEvent } from '../event.ts'
import type { PolledFeed } from '../feeds/types/polled-feed.ts'
import { type Outlet, placeItem } from '../grouping/placement.ts'
import { titleOf } from '../messages/message.ts'
import { readVictims } from '../messages/types/victims.ts'
import { sourceKeys } from '../routing/inhibition.ts'
import { groupLabels, planItems, type RoutableEvent, type Router } from '../routing/router.ts'
import type { EventPlan, PlannedItem } from '../store/intake.ts'
import type { EngineContext } from './context.ts'

type Planner = (
  event: ThreatEvent,
  feed: PolledFeed,
  about: { isBacklog: boolean; isFresh: boolean },
) => EventPlan

export function buildPlanner(
  { config, clock }: Pick<EngineContext, 'config' | 'clock'>,
  router: Router,
  sinks: ReadonlyMap<string, Outlet>,
): Planner {
  const listDestinations = (sink: string): string[] =>
    (sinks.get(sink)?.destinations ?? []).map(({ id }) => id)

  function placeInGroup(item: PlannedItem, input: RoutableEvent, isBacklog: boolean): PlannedItem {
    const sink = sinks.get(item.sink)
    const node = router.node(item.routes[0] ?? '')
    if (!sink || !node || item.isShadow === true) return item
    const { severity } = input.event
    const placementInput = { destination: item.destination, severity, feed: input.feed, isBacklog }
    const grouping = {
      route: node.name,
      waitMs: node.groupWaitMs,
      labels: groupLabels(node.groupBy, input),
    }
    return { ...item, ...placeItem(sink, placementInput, grouping, clock.now()) }
  }

  return (event, { account, name, labels }, { isBacklog, isFresh }) => {
    const input = { event, account, feed: name, labels }
    const decisions = router.route(input)
    return {
      title: titleOf({ feed: name, event }),
      decisions: decisions.map(({ route, path, why, mode }) => ({
        route,
        path,
        why: mode === 'shadow' ? [...why, 'mode: shadow'] : why,
      })),
      items: planItems(decisions, listDestinations).map((item) =>
        placeInGroup(item, input, isBacklog),
      ),
      // an old find says nothing about what is new now
      inhibits: isFresh ? sourceKeys(config.inhibitRules, input) : [],
      victims: readVictims(event),
    }
  }
}
