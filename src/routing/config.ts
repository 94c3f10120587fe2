import type { Matcher } from './matcher.ts'

/** A node of the routing tree, inheritance not yet applied. */
export interface RouteConfig {
  /** Unique in the tree; the root is `root`; unnamed nodes get their place, e.g. `root.2.1`. */
  name: string
  matchers: Matcher[]
  /** undefined: the parent's. */
  sinks: string[] | undefined
  continue: boolean
  routes: RouteConfig[]
}
