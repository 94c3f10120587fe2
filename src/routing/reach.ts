/**
 * Which sinks the events of a feed may reach, by what all of them have in common: the account, the
 * feed's name and its labels. A route that also asks for anything else may take some of them.
 */
import { eventNames, type Matcher } from './matcher.ts'
import type { RouteNode } from './router.ts'

export interface FeedFacts {
  name: string
  account: string
  labels: Readonly<Record<string, string>>
}

const eventOnlyNames = new Set<string>(
  eventNames.filter((name) => name !== 'account' && name !== 'feed'),
)

/** Whether all events of a feed meet the matcher, or none does. */
function isFeedMatcher({ name }: Matcher): boolean {
  return !eventOnlyNames.has(name)
}

/**
 * Checks what all events of a feed have in common, or all of one severity; a label that the feed
 * lacks is empty.
 */
function meetsFeed(
  { name, account, labels }: FeedFacts,
  matchers: readonly Matcher[],
  severity?: string,
): boolean {
  const fields: Record<string, string | undefined> = { feed: name, account, severity }
  const valueOf = (asked: string): string =>
    fields[asked] ?? (Object.hasOwn(labels, asked) ? labels[asked] : undefined) ?? ''
  return matchers
    .filter((matcher) => isCommon(matcher, severity))
    .every((matcher) => matcher.matches([valueOf(matcher.name)]))
}

function isCommon(matcher: Matcher, severity: string | undefined): boolean {
  return isFeedMatcher(matcher) || (severity !== undefined && matcher.name === 'severity')
}

/** The account that the matchers name with `=`, if any. */
function namedAccount(matchers: readonly Matcher[]): string | undefined {
  return matchers.find(({ name, operator }) => name === 'account' && operator === '=')?.value
}

/**
 * Returns the sinks that an event of the feed, or one of the severity, may reach by a live route;
 * perhaps one too many.
 */
export function createReach(
  root: RouteNode,
): (feed: FeedFacts, severity?: string) => ReadonlySet<string> {
  // a provider has a route for each of a thousand accounts
  const byAccount = new Map<RouteNode, ReadonlyMap<string | undefined, [number, RouteNode][]>>()

  function listCandidates(node: RouteNode, account: string): RouteNode[] {
    let routes = byAccount.get(node)
    if (!routes) {
      const entries = [...node.routes.entries()]
      routes = Map.groupBy(entries, ([, { matchers }]) => namedAccount(matchers))
      byAccount.set(node, routes)
    }
    const candidates = [undefined, account].flatMap((name) => routes.get(name) ?? [])
    return candidates.toSorted(([left], [right]) => left - right).map(([, route]) => route)
  }

  type Events = { feed: FeedFacts; severity: string | undefined }

  function visit(node: RouteNode, events: Events, reached: Set<string>): void {
    const { feed, severity } = events
    let isTaken = false
    for (const child of listCandidates(node, feed.account)) {
      if (!meetsFeed(feed, child.matchers, severity)) continue
      visit(child, events, reached)
      const takesAll = child.matchers.every((matcher) => isCommon(matcher, severity))
      if (child.isShadowItself || !takesAll) continue
      isTaken = true
      if (!child.continue) break
    }
    if (!isTaken && node.mode === 'live') for (const sink of node.sinks) reached.add(sink)
  }

  return (feed, severity) => {
    const reached = new Set<string>()
    visit(root, { feed, severity }, reached)
    return reached
  }
}
