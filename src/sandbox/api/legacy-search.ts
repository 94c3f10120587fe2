/** The legacy search over all events, with their number and two names for one cursor. */
import { z } from 'zod'
import { isTimeZone } from '../../lib/time-zone.ts'
import {
  legacyEventActions,
  legacyTypeGroups,
  legacyTypes,
} from '../../upstream/resources/enumerations.ts'
import {
  legacySearchOperations,
  type LegacySearchParameters,
} from '../../upstream/resources/legacy-search.ts'
import { comparePositions, type SandboxEvent, toPosition } from '../history/history.ts'
import { parseInstant } from '../times.ts'
import { toDocument } from './document.ts'
import { toLegacyItem, withoutNotes } from './event-items.ts'
import { effectiveSeverity, expandTypes, severityRank } from './filters.ts'
import { parseLucene } from './lucene.ts'
import { type Caller, invalid, on, type Route, widened } from './routes.ts'
import { isShownTo, refusingLucene, type SearchParts } from './search.ts'

type Parameters = LegacySearchParameters

export function legacyRoutes(parts: SearchParts): Route[] {
  const { settings, history, pages, quota } = parts

  function answer({ search_after: after, from, ...asked }: Parameters, caller: Caller): unknown {
    const { order = 'desc', size = 10, fields = [] } = asked
    const visible = history
      .all()
      .map((event) => (isShownTo(event, caller, settings) ? event : withoutNotes(event)))
    const entries = visible
      .filter(parametersTest(asked))
      .map((event) => ({ createdAtMs: sortTimeMs(event, asked.sort_by), uid: event.uid, event }))
      .toSorted((left, right) => comparePositions(toPosition(left), toPosition(right)))
    const scan = ['legacy', asked]
    const page = pages.read({ scan, entries, order, size, from: after ?? from })
    quota.charge(
      caller,
      ['legacy', asked.query],
      page.entries.map(({ uid }) => uid),
    )
    return {
      items: page.entries.map(({ event }) =>
        pickFields(
          toLegacyItem(event, caller.may),
          fields.map((path) => path.split('.')),
        ),
      ),
      nb_hits: entries.length,
      links: { next: page.next && linkToPage(page.next, asked) },
      search_after: page.next,
    }
  }

  const { get, post } = legacySearchOperations
  return [get, post].map((row) => on(widened(row, { query: closedWords }), answer))
}

/** The words that the description lists. */
const closedWords = {
  event_actions: z.array(z.enum(legacyEventActions)).optional(),
  tags_query_operator: z
    .string()
    .regex(/^(and|or)$/i)
    .optional(),
}

/** Most keys mean the time at which the event became visible. */
function sortTimeMs(event: SandboxEvent, sortBy: Parameters['sort_by'] = 'created'): number {
  const { createdAtMs, arrivedAtMs, ignoredAtMs, remediatedAtMs } = event
  if (sortBy === 'created') return createdAtMs
  return sortBy === 'updated'
    ? Math.max(arrivedAtMs, ignoredAtMs ?? 0, remediatedAtMs ?? 0)
    : arrivedAtMs
}

/** Returns a path on this server: the request's own with the new cursor. */
function linkToPage(cursor: string, asked: Parameters): string {
  const parameters = new URLSearchParams()
  for (const [key, values] of Object.entries({ ...asked, from: cursor })) {
    for (const value of [values].flat()) parameters.append(key, String(value))
  }
  return `/firework/v2/search/?${parameters.toString()}`
}

type EventTest = (event: SandboxEvent) => boolean

/** Throws a Refusal if a parameter is not as it should be. */
function parametersTest(parameters: Parameters): EventTest {
  const { risks = [], tags = [], query = '', time_zone: zone } = parameters
  if (zone !== undefined && !isTimeZone(zone)) throw invalid(['query', 'time_zone'], 'unknown')
  const [since, until] = readSpan(parameters.time)
  const matchesQuery =
    query.trim() === '' ? null : refusingLucene(() => parseLucene(query), ['query', 'query'])
  const hasType = typeTest(parameters)
  const hasAction = actionTest(parameters)
  const isAll = parameters.tags_query_operator?.toUpperCase() === 'AND'
  const hasTag = (event: SandboxEvent): ((tag: string) => boolean) => {
    return (tag) => event.tags.includes(tag)
  }
  return (event) =>
    event.createdAtMs >= since &&
    event.createdAtMs <= until &&
    hasType(event) &&
    hasAction(event) &&
    (tags.length === 0 || (isAll ? tags.every(hasTag(event)) : tags.some(hasTag(event)))) &&
    (risks.length === 0 || risks.includes(severityRank(effectiveSeverity(event)) + 1)) &&
    (!parameters.has_modified_risk_score || event.override !== null) &&
    (!parameters.has_notes || event.notes !== null) &&
    (matchesQuery === null || matchesQuery(toDocument(event)))
}

function readSpan(time: string | undefined): [number, number] {
  if (time === undefined) return [-Infinity, Infinity]
  const [since = Number.NaN, until = Number.NaN] = time.split('@').map(parseInstant)
  if (Number.isFinite(since) && Number.isFinite(until)) return [since, until]
  throw invalid(['query', 'time'], 'not of the form from@to, both of them timestamps')
}

/** Groups of the API description list their own types; other groups are resolved by the filters. */
function typeTest({ types = [], experimental_types: others = [] }: Parameters): EventTest {
  if (types.length === 0 && others.length === 0) return () => true
  const wanted = expandTypes([
    ...types.flatMap((type) => legacyTypeGroups[type] ?? type),
    ...others,
  ])
  const known = types.includes('experimental') ? expandTypes(legacyTypes) : null
  return ({ type }) => wanted.has(type) || known?.has(type) === false
}

/** Matches any of the actions. Without an action, ignored events are left out. */
function actionTest({ event_action: action, event_actions: more = [] }: Parameters): EventTest {
  const given = [...(action ? [action] : []), ...more]
  const wanted = given.length === 0 ? ['default'] : given
  return ({ ignoredAtMs, remediatedAtMs, override }) => {
    const states = [
      ...(ignoredAtMs === null ? ['default', 'exclude_ignored'] : ['ignored']),
      ...(remediatedAtMs === null ? [] : ['remediated']),
      ...(ignoredAtMs === null && remediatedAtMs === null ? [] : ['ignored_or_remediated']),
      ...(override === null ? [] : ['risk_score_edited']),
    ]
    return wanted.some((one) => states.includes(one))
  }
}

/** Returns the parts of a value at or below the dotted paths; all of it if there are no paths. */
function pickFields(value: unknown, paths: readonly string[][]): unknown {
  if (paths.length === 0 || paths.some(({ length }) => length === 0)) return value
  if (Array.isArray(value)) return value.map((entry) => pickFields(entry, paths))
  if (typeof value !== 'object' || value === null) return undefined
  const picked = Object.entries(value).flatMap(([key, inner]) => {
    const below = paths.filter(([first]) => first === key).map(([, ...rest]) => rest)
    return below.length === 0 ? [] : [[key, pickFields(inner, below)] as const]
  })
  return Object.fromEntries(picked)
}
