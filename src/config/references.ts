/**
 * Checks references between parts of the file. Works on the file as written, so that these mistakes
 * are reported together with all others; values of the wrong shape are reported elsewhere.
 */
import { type Finding, isSection } from '../lib/config/config-fields.ts'
import { formatList, suggestion } from '../lib/errors.ts'
import { eventNames, parseMatcher } from '../routing/matcher.ts'
import {
  listLabels,
  toList,
  type Place,
  type PlacedRoute,
  listRoutes,
  printableKey,
  toSection,
} from './parse-file.ts'

export function referenceMistakes(file: unknown): Finding[] {
  const sections = toSection(file)
  const routes = listRoutes(sections['route'], ['route'])
  return [
    ...accountMistakes(toSection(sections['accounts']), toSection(sections['feeds'])),
    ...userMistakes(toSection(sections['accounts']), toSection(sections['http'])),
    ...sinkMistakes(
      Object.keys(toSection(sections['sinks'])),
      findSinkReferences(sections, routes),
    ),
    ...fallbackMistakes(toSection(sections['sinks'])),
    ...nameMistakes(routes),
    ...labelMistakes(toSection(sections['feeds'])),
    ...eventNameMistakes(sections),
    ...intervalMistakes(Object.keys(toSection(sections['time_intervals'])), routes),
    ...ruleNameMistakes(toList(sections['inhibit_rules'])),
  ]
}

function accountMistakes(
  accounts: Readonly<Record<string, unknown>>,
  feeds: Readonly<Record<string, unknown>>,
): Finding[] {
  const names = Object.keys(accounts)
  if (names.length === 0) return []
  const known = new Set(names)
  return Object.entries(feeds).flatMap(([feed, content]) => {
    const account = toSection(content)['account']
    const path = ['feeds', feed, 'account']
    if (account === undefined && names.length > 1 && isSection(content)) {
      const remedy = `write one of ${formatList(names.map(printableKey))}`
      return [{ path, problem: 'missing, as there is more than one account', remedy }]
    }
    if (typeof account !== 'string' || known.has(account)) return []
    const remedy = suggestion(account, names.map(printableKey), 'there are')
    return [{ path, problem: 'no such account', remedy }]
  })
}

function userMistakes(
  accounts: Readonly<Record<string, unknown>>,
  http: Readonly<Record<string, unknown>>,
): Finding[] {
  const names = Object.keys(accounts)
  if (names.length === 0) return []
  return toList(http['users']).flatMap((user, at) =>
    toList(toSection(user)['accounts']).flatMap((account, index) => {
      if (typeof account !== 'string' || account === '' || names.includes(account)) return []
      const remedy = suggestion(account, names.map(printableKey), 'there are')
      const path = ['http', 'users', at, 'accounts', index]
      return [{ path, problem: 'no such account', remedy }]
    }),
  )
}

/** Every place where the file names a sink. */
function findSinkReferences(
  sections: Readonly<Record<string, unknown>>,
  routes: PlacedRoute[],
): { path: (string | number)[]; sink: unknown }[] {
  const lists = [...routes, { path: ['canary'], route: toSection(sections['canary']) }]
  return [
    ...lists.flatMap(({ path, route }) =>
      toList(route['sinks']).map((sink, index) => ({ path: [...path, 'sinks', index], sink })),
    ),
    ...['sink', 'fallback'].map((key) => {
      return { path: ['self_alerts', key], sink: toSection(sections['self_alerts'])[key] }
    }),
    ...listFallbacks(toSection(sections['sinks'])).map(({ path, to }) => ({ path, sink: to })),
  ]
}

function sinkMistakes(sinks: string[], places: ReturnType<typeof findSinkReferences>): Finding[] {
  if (sinks.length === 0) return []
  const known = new Set(sinks)
  return places.flatMap(({ path, sink }) => {
    if (typeof sink !== 'string' || sink === '' || known.has(sink)) return []
    const remedy = suggestion(sink, sinks.map(printableKey), 'there are')
    return [{ path, problem: 'no such sink', remedy }]
  })
}

function listFallbacks(
  sinks: Readonly<Record<string, unknown>>,
): { path: (string | number)[]; from: string; to: unknown }[] {
  return Object.entries(sinks).map(([from, sink]) => {
    return { path: ['sinks', from, 'fallback'], from, to: toSection(sink)['fallback'] }
  })
}

/** A fallback may have none itself: so no cycles, and it stays clear where an item went. */
function fallbackMistakes(sinks: Readonly<Record<string, unknown>>): Finding[] {
  const fallbacks = listFallbacks(sinks)
  const next = new Map(fallbacks.map(({ from, to }) => [from, to]))
  return fallbacks.flatMap(({ path, from, to }) => {
    if (typeof to !== 'string') return []
    if (to === from) {
      return [{ path, problem: 'the sink itself', remedy: 'name another sink, or remove the line' }]
    }
    if (typeof next.get(to) !== 'string') return []
    const problem = `${printableKey(to)} has a fallback itself: there is one step and no more`
    const remedy = `remove the fallback of ${printableKey(to)}, or name a sink that has none`
    return [{ path, problem, remedy }]
  })
}

function nameMistakes(routes: PlacedRoute[]): Finding[] {
  const isRepeated = createRepeatCheck()
  return routes.flatMap(({ path, route }) =>
    isRepeated(route['name'])
      ? [{ path: [...path, 'name'], problem: 'another route has it', remedy: 'choose another' }]
      : [],
  )
}

function ruleNameMistakes(rules: unknown[]): Finding[] {
  const isRepeated = createRepeatCheck()
  return rules.flatMap((rule, index) => {
    if (!isRepeated(toSection(rule)['name'])) return []
    const path = ['inhibit_rules', index, 'name']
    return [{ path, problem: 'another rule has it', remedy: 'choose another' }]
  })
}

/** Returns a function that says of each name whether it came before. */
function createRepeatCheck(): (name: unknown) => boolean {
  const seen = new Set<string>()
  return (name) => {
    if (typeof name !== 'string') return false
    const isRepeated = seen.has(name)
    seen.add(name)
    return isRepeated
  }
}

function intervalMistakes(intervals: string[], routes: PlacedRoute[]): Finding[] {
  return routes.flatMap(({ path, route }) =>
    toList(route['mute_time_intervals']).flatMap((interval, index) => {
      if (typeof interval !== 'string' || interval === '' || intervals.includes(interval)) return []
      const remedy =
        intervals.length === 0
          ? 'write it under time_intervals'
          : suggestion(interval, intervals.map(printableKey), 'there are')
      const place = [...path, 'mute_time_intervals', index]
      return [{ path: place, problem: 'no such time interval', remedy }]
    }),
  )
}

function labelMistakes(feeds: Readonly<Record<string, unknown>>): Finding[] {
  return Object.keys(feeds).flatMap((feed) =>
    listLabels({ [feed]: feeds[feed] })
      .filter((label) => (eventNames as readonly string[]).includes(label))
      .map((label) => ({
        path: ['feeds', feed, 'labels', label],
        problem: 'a label may not be called so: matchers use the name for the event itself',
        remedy: `choose another, such as my-${label}`,
      })),
  )
}

/** A name used by matchers, `group_by` or `equal`; an unknown one would match nothing. */
interface UsedName {
  path: Place
  name: string
  /** A bare name rather than a matcher's name: for a likely typo a guess is offered. */
  isBare: boolean
}

/** Checks the file as written. */
function eventNameMistakes(file: Readonly<Record<string, unknown>>): Finding[] {
  const known = [...new Set([...eventNames, ...listLabels(toSection(file['feeds']))])]
  const isKnown = new Set<string>(known)
  return [...routeNames(file['route']), ...silenceNames(file['silences']), ...ruleNames(file)]
    .filter(({ name }) => !isKnown.has(name))
    .map(({ path, name, isBare }) => ({
      path,
      problem: 'neither a name of an event nor a label of a feed',
      remedy: remedyFor({ name, isBare }, known.map(printableKey)),
    }))
}

function remedyFor({ name, isBare }: Omit<UsedName, 'path'>, known: string[]): string {
  // Alertmanager's word for grouping by everything
  if (isBare && name === '...')
    return 'write group_wait: 0s for a message of its own for each event'
  const every = `write one of ${formatList(known)}, or give a feed this label`
  const guess = isBare ? suggestion(name, known, '') : ''
  return guess.startsWith('did you mean') ? guess : every
}

function routeNames(route: unknown): UsedName[] {
  return listRoutes(route, ['route']).flatMap(({ path, route: node }) => [
    ...matcherNames(node['matchers'], [...path, 'matchers']),
    ...bareNames(node['group_by'], [...path, 'group_by']),
  ])
}

function silenceNames(silences: unknown): UsedName[] {
  return toList(silences).flatMap((silence, index) =>
    matcherNames(toSection(silence)['matchers'], ['silences', index, 'matchers']),
  )
}

function ruleNames(file: Readonly<Record<string, unknown>>): UsedName[] {
  return toList(file['inhibit_rules']).flatMap((content, index) => {
    const rule = toSection(content)
    const path = ['inhibit_rules', index]
    return [
      ...matcherNames(rule['source_matchers'], [...path, 'source_matchers']),
      ...matcherNames(rule['target_matchers'], [...path, 'target_matchers']),
      ...bareNames(rule['equal'], [...path, 'equal']),
    ]
  })
}

function bareNames(names: unknown, path: Place): UsedName[] {
  return toList(names).flatMap((name, index) =>
    typeof name === 'string' && name.trim() !== ''
      ? [{ path: [...path, index], name, isBare: true }]
      : [],
  )
}

function matcherNames(matchers: unknown, path: Place): UsedName[] {
  return toList(matchers).flatMap((text, index) => {
    const name = matcherName(text)
    return name === undefined ? [] : [{ path: [...path, index], name, isBare: false }]
  })
}

/** Returns undefined for a matcher that the schema refuses anyway. */
function matcherName(text: unknown): string | undefined {
  if (typeof text !== 'string') return undefined
  try {
    return parseMatcher(text).name
  } catch {
    return undefined
  }
}
