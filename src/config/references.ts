/**
 * What one part of the file says about another. Works on the file as it is written, so that these
 * mistakes are told together with all others; what has the wrong shape here is told elsewhere.
 */
import { eventNames, parseMatcher } from '../routing/matcher.ts'
import { isSection, type Finding } from '../runtime/config-section.ts'
import { suggestion } from '../runtime/nearest.ts'
import { sayableKey } from './sayable-key.ts'

type Place = (string | number)[]

export function referenceMistakes(file: unknown): Finding[] {
  const sections = sectionOf(file)
  const routes = routesOf(sections['route'], ['route'])
  return [
    ...accountMistakes(sectionOf(sections['accounts']), sectionOf(sections['feeds'])),
    ...sinkMistakes(Object.keys(sectionOf(sections['sinks'])), routes),
    ...nameMistakes(routes),
    ...labelMistakes(sectionOf(sections['feeds'])),
    ...matcherMistakes(labelsOf(sectionOf(sections['feeds'])), routes),
  ]
}

function accountMistakes(
  accounts: Readonly<Record<string, unknown>>,
  feeds: Readonly<Record<string, unknown>>,
): Finding[] {
  const names = Object.keys(accounts)
  if (names.length === 0) return []
  return Object.entries(feeds).flatMap(([feed, content]) => {
    const account = sectionOf(content)['account']
    const path = ['feeds', feed, 'account']
    if (account === undefined && names.length > 1 && isSection(content)) {
      const remedy = `write one of ${names.map(sayableKey).join(', ')}`
      return [{ path, problem: 'missing, as there is more than one account', remedy }]
    }
    if (typeof account !== 'string' || names.includes(account)) return []
    const remedy = suggestion(account, names.map(sayableKey), 'there are')
    return [{ path, problem: 'no such account', remedy }]
  })
}

interface PlacedRoute {
  path: Place
  route: Readonly<Record<string, unknown>>
}

/** The tree as a list, parents first. */
function routesOf(route: unknown, path: Place): PlacedRoute[] {
  if (!isSection(route)) return []
  const children = listOf(route['routes']).flatMap((child, index) =>
    routesOf(child, [...path, 'routes', index]),
  )
  return [{ path, route }, ...children]
}

function sinkMistakes(sinks: string[], routes: PlacedRoute[]): Finding[] {
  if (sinks.length === 0) return []
  return routes.flatMap(({ path, route }) =>
    listOf(route['sinks']).flatMap((sink, index) => {
      if (typeof sink !== 'string' || sink === '' || sinks.includes(sink)) return []
      const remedy = suggestion(sink, sinks.map(sayableKey), 'there are')
      return [{ path: [...path, 'sinks', index], problem: 'no such sink', remedy }]
    }),
  )
}

function nameMistakes(routes: PlacedRoute[]): Finding[] {
  const names = routes.map(({ route }) => route['name'])
  return routes.flatMap(({ path }, index) =>
    typeof names[index] !== 'string' || names.indexOf(names[index]) === index
      ? []
      : [{ path: [...path, 'name'], problem: 'another route has it', remedy: 'choose another' }],
  )
}

function labelMistakes(feeds: Readonly<Record<string, unknown>>): Finding[] {
  return Object.keys(feeds).flatMap((feed) =>
    labelsOf({ [feed]: feeds[feed] })
      .filter((label) => (eventNames as readonly string[]).includes(label))
      .map((label) => ({
        path: ['feeds', feed, 'labels', label],
        problem: 'a label may not be called so: matchers use the name for the event itself',
        remedy: `choose another, such as my-${label}`,
      })),
  )
}

function labelsOf(feeds: Readonly<Record<string, unknown>>): string[] {
  return Object.values(feeds).flatMap((feed) => Object.keys(sectionOf(sectionOf(feed)['labels'])))
}

function matcherMistakes(labels: string[], routes: PlacedRoute[]): Finding[] {
  const known = [...new Set([...eventNames, ...labels])]
  return routes.flatMap(({ path, route }) =>
    listOf(route['matchers']).flatMap((text, index) => {
      const name = matcherName(text)
      if (name === undefined || known.includes(name)) return []
      const remedy = `write one of ${known.map(sayableKey).join(', ')}, or give a feed this label`
      const problem = 'neither a name of an event nor a label of a feed'
      return [{ path: [...path, 'matchers', index], problem, remedy }]
    }),
  )
}

/** undefined for what the routing slice refuses anyway. */
function matcherName(text: unknown): string | undefined {
  if (typeof text !== 'string') return undefined
  try {
    return parseMatcher(text).name
  } catch {
    return undefined
  }
}

function sectionOf(value: unknown): Readonly<Record<string, unknown>> {
  return isSection(value) ? value : {}
}

function listOf(value: unknown): unknown[] {
  return Array.isArray(value) ? value : []
}
