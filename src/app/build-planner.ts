import type { CollectingSink } from '../digest/placement.ts'
import { placeItem } from '../digest/placement.ts'
import type { ThreatEvent } from '../events/threat-event.ts'
import type { PolledFeed } from '../feeds/polled-feed.ts'
import type { PlannedItem, RoutedEvent } from '../intake/intake.ts'
import { planItems } from '../routing/destinations.ts'
import { groupLabels } from '../routing/group-key.ts'
import { sourceKeys } from '../routing/inhibition.ts'
import type { RoutableEvent } from '../routing/routable-event.ts'
import type { Router } from '../routing/router.ts'
import type { Shared } from './shared.ts'

/** What a page's commit fixes of an event: which routes took it, its items, where each waits. */
export type Planned = Pick<RoutedEvent, 'decisions' | 'items' | 'inhibits'>

export type Planner = (
  event: ThreatEvent,
  feed: PolledFeed,
  about: { isBacklog: boolean; isFresh: boolean },
) => Planned

export function buildPlanner(
  { config, clock }: Pick<Shared, 'config' | 'clock'>,
  router: Router,
  sinks: ReadonlyMap<string, CollectingSink>,
): Planner {
  const destinationsOf = (sink: string): string[] =>
    (sinks.get(sink)?.destinations ?? []).map(({ id }) => id)

  function placed(item: PlannedItem, input: RoutableEvent, isBacklog: boolean): PlannedItem {
    const sink = sinks.get(item.sink)
    const node = router.node(item.routes[0] ?? '')
    if (!sink || !node || item.isShadow === true) return item
    const { severity } = input.event
    const asked = { destination: item.destination, severity, feed: input.feed, isBacklog }
    const grouping = {
      route: node.name,
      waitMs: node.groupWaitMs,
      labels: groupLabels(node.groupBy, input),
    }
    return { ...item, ...placeItem(sink, asked, grouping, clock.now()) }
  }

  return (event, { account, name, labels }, { isBacklog, isFresh }) => {
    const input = { event, account, feed: name, labels }
    const decisions = router.route(input)
    return {
      decisions: decisions.map(({ route, path, why, stage }) => ({
        route,
        path,
        why: stage === 'shadow' ? [...why, 'stage: shadow'] : why,
      })),
      items: planItems(decisions, destinationsOf).map((item) => placed(item, input, isBacklog)),
      // a find of long ago says nothing about what is new now
      inhibits: isFresh ? sourceKeys(config.inhibitRules, input) : [],
    }
  }
}
