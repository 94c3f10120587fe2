/** The file as it is written, read leniently: what has the wrong shape counts as empty. */
import { isSection } from '../runtime/config-section.ts'

export type Place = (string | number)[]

export function sectionOf(value: unknown): Readonly<Record<string, unknown>> {
  return isSection(value) ? value : {}
}

export function listOf(value: unknown): unknown[] {
  return Array.isArray(value) ? value : []
}

export interface PlacedRoute {
  path: Place
  route: Readonly<Record<string, unknown>>
}

/** The tree as a list, parents first. */
export function routesOf(route: unknown, path: Place): PlacedRoute[] {
  if (!isSection(route)) return []
  const children = listOf(route['routes']).flatMap((child, index) =>
    routesOf(child, [...path, 'routes', index]),
  )
  return [{ path, route }, ...children]
}

/** The labels that any of the feeds has. */
export function labelsOf(feeds: Readonly<Record<string, unknown>>): string[] {
  return Object.values(feeds).flatMap((feed) => Object.keys(sectionOf(sectionOf(feed)['labels'])))
}
