/**
 * The legacy search over all events, with their number and two names for one cursor. It takes every
 * parameter, and heeds those that narrow it by time, type, tag, state, severity and words.
 */
import {
  legacySearchOperations,
  type LegacySearchParameters,
} from '../../upstream/resources/legacy-search.ts'
import type { SandboxEvent } from '../history/history.ts'
import { parseInstant } from '../times.ts'
import { toLegacyItem, withoutNotes } from './event-items.ts'
import { effectiveSeverity, expandTypes, severityRank } from './filters.ts'
import { plainQuery, toDocument } from './query.ts'
import { type Caller, invalid, on, type Route } from './routes.ts'
import { isShownTo, type SearchParts } from './search.ts'

type Parameters = LegacySearchParameters

export function legacyRoutes(parts: SearchParts): Route[] {
  const { settings, history, pages, quota } = parts

  function answer({ search_after: after, from, ...asked }: Parameters, caller: Caller): unknown {
    const { order = 'desc', size = 10 } = asked
    const entries = history
      .inOrder()
      .map((event) => (isShownTo(event, caller, settings) ? event : withoutNotes(event)))
      .filter(parametersTest(asked))
    const page = pages.read({ scan: ['legacy', asked], entries, order, size, from: after ?? from })
    quota.charge(
      caller,
      ['legacy', asked.query],
      page.entries.map(({ uid }) => uid),
    )
    return {
      items: page.entries.map((event) => toLegacyItem(event)),
      nb_hits: entries.length,
      links: { next: page.next && linkToPage(page.next, asked) },
      search_after: page.next,
    }
  }

  return Object.values(legacySearchOperations).map((row) => on(row, answer))
}

/** Returns a path on this server: the request's own with the new cursor. */
function linkToPage(cursor: string, asked: Parameters): string {
  const parameters = new URLSearchParams()
  for (const [key, values] of Object.entries({ ...asked, from: cursor })) {
    for (const value of [values].flat()) parameters.append(key, String(value))
  }
  return `/firework/v2/search/?${parameters.toString()}`
}

/** Throws a Refusal if a parameter is not as it should be. */
function parametersTest(parameters: Parameters): (event: SandboxEvent) => boolean {
  const { risks = [], tags = [], types = [], query = '', event_action: action } = parameters
  const [since, until] = readSpan(parameters.time)
  const words = query.trim() === '' ? null : plainQuery(query)
  const wanted = types.length === 0 ? null : expandTypes(types)
  return (event) =>
    event.createdAtMs >= since &&
    event.createdAtMs <= until &&
    (wanted === null || wanted.has(event.type)) &&
    hasState(event, action) &&
    (tags.length === 0 || tags.some((tag) => event.tags.includes(tag))) &&
    (risks.length === 0 || risks.includes(severityRank(effectiveSeverity(event)) + 1)) &&
    (!parameters.has_modified_risk_score || event.override !== null) &&
    (!parameters.has_notes || event.notes !== null) &&
    (words === null || words(toDocument(event)))
}

function readSpan(time: string | undefined): [number, number] {
  if (time === undefined) return [-Infinity, Infinity]
  const [since = Number.NaN, until = Number.NaN] = time.split('@').map(parseInstant)
  if (Number.isFinite(since) && Number.isFinite(until)) return [since, until]
  throw invalid(['query', 'time'], 'not of the form from@to, both of them timestamps')
}

/** Without an action, ignored events are left out. */
function hasState(
  { ignoredAtMs, remediatedAtMs, override }: SandboxEvent,
  action: Parameters['event_action'] = 'default',
): boolean {
  const [isIgnored, isRemediated] = [ignoredAtMs !== null, remediatedAtMs !== null]
  return {
    default: !isIgnored,
    exclude_ignored: !isIgnored,
    ignored: isIgnored,
    remediated: isRemediated,
    ignored_or_remediated: isIgnored || isRemediated,
    risk_score_edited: override !== null,
  }[action]
}
