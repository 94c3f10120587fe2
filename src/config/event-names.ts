/** What matchers, `group_by` and `equal` call an event's parts: a name that is none matches nothing. */
import { eventNames, parseMatcher } from '../routing/matcher.ts'
import type { Finding } from '../runtime/config-section.ts'
import { firstOf, suggestion } from '../runtime/nearest.ts'
import { labelsOf, listOf, routesOf, sectionOf, type Place } from './file-parts.ts'
import { sayableKey } from './sayable-key.ts'

interface Used {
  path: Place
  name: string
  /** A bare name rather than the name of a matcher: a slip of the pen is worth a guess. */
  isBare: boolean
}

/** Of the file as it is written. */
export function eventNameMistakes(file: Readonly<Record<string, unknown>>): Finding[] {
  const known = [...new Set([...eventNames, ...labelsOf(sectionOf(file['feeds']))])]
  const isKnown = new Set<string>(known)
  return [...routeNames(file['route']), ...silenceNames(file['silences']), ...ruleNames(file)]
    .filter(({ name }) => !isKnown.has(name))
    .map(({ path, name, isBare }) => ({
      path,
      problem: 'neither a name of an event nor a label of a feed',
      remedy: remedyFor({ name, isBare }, known.map(sayableKey)),
    }))
}

function remedyFor({ name, isBare }: Omit<Used, 'path'>, known: string[]): string {
  // Alertmanager's word for grouping by everything
  if (isBare && name === '...')
    return 'write group_wait: 0s for a message of its own for each event'
  const every = `write one of ${firstOf(known)}, or give a feed this label`
  const guess = isBare ? suggestion(name, known, '') : ''
  return guess.startsWith('did you mean') ? guess : every
}

function routeNames(route: unknown): Used[] {
  return routesOf(route, ['route']).flatMap(({ path, route: node }) => [
    ...matcherNames(node['matchers'], [...path, 'matchers']),
    ...bareNames(node['group_by'], [...path, 'group_by']),
  ])
}

function silenceNames(silences: unknown): Used[] {
  return listOf(silences).flatMap((silence, index) =>
    matcherNames(sectionOf(silence)['matchers'], ['silences', index, 'matchers']),
  )
}

function ruleNames(file: Readonly<Record<string, unknown>>): Used[] {
  return listOf(file['inhibit_rules']).flatMap((content, index) => {
    const rule = sectionOf(content)
    const path = ['inhibit_rules', index]
    return [
      ...matcherNames(rule['source_matchers'], [...path, 'source_matchers']),
      ...matcherNames(rule['target_matchers'], [...path, 'target_matchers']),
      ...bareNames(rule['equal'], [...path, 'equal']),
    ]
  })
}

function bareNames(names: unknown, path: Place): Used[] {
  return listOf(names).flatMap((name, index) =>
    typeof name === 'string' && name.trim() !== ''
      ? [{ path: [...path, index], name, isBare: true }]
      : [],
  )
}

function matcherNames(matchers: unknown, path: Place): Used[] {
  return listOf(matchers).flatMap((text, index) => {
    const name = matcherName(text)
    return name === undefined ? [] : [{ path: [...path, index], name, isBare: false }]
  })
}

/** undefined for what the routing slices refuse anyway. */
function matcherName(text: unknown): string | undefined {
  if (typeof text !== 'string') return undefined
  try {
    return parseMatcher(text).name
  } catch {
    return undefined
  }
}
