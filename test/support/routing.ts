/** Routing trees and events to route, of which a test says only what it is about. */
import type { RouteConfig } from '../../src/routing/config.ts'
import { parseMatcher } from '../../src/routing/matcher.ts'
import type { RoutableEvent } from '../../src/routing/router.ts'
import { aThreatEvent } from './events.ts'

/** A route as a test writes it: matchers as texts. */
export interface TestRoute extends Partial<Omit<RouteConfig, 'matchers' | 'routes'>> {
  name: string
  matchers?: string[]
  routes?: TestRoute[]
}

/** A branch; with `aTree` around it, a whole tree. */
function aRoute(route: TestRoute): RouteConfig {
  return {
    sinks: undefined,
    groupBy: undefined,
    groupWaitMs: undefined,
    groupIntervalMs: undefined,
    continue: false,
    mode: 'live',
    muteTimeIntervals: [],
    onMute: 'hold',
    ...route,
    matchers: (route.matchers ?? []).map(parseMatcher),
    routes: (route.routes ?? []).map(aRoute),
  }
}

/** The root, with the defaults of the file. */
export function aTree(root: Partial<TestRoute> = {}): RouteConfig {
  const grouping = { groupBy: ['feed', 'type'], groupWaitMs: 10_000, groupIntervalMs: 300_000 }
  return aRoute({ name: 'root', sinks: ['oncall'], ...grouping, ...root })
}

export function aRoutableEvent(overrides: Partial<RoutableEvent> = {}): RoutableEvent {
  return { event: aThreatEvent(), account: 'main', feed: 'brand', labels: {}, ...overrides }
}
