/** Which events a legacy search finds. */
import { legacyTypeGroups, legacyTypes } from '../../service/wire/enumerations.ts'
import type { LegacyType } from '../../service/wire/enumerations.ts'
import { typesOf } from '../api/filters.ts'
import type { SandboxEvent } from '../history/sandbox-event.ts'
import { sightingOf } from '../matching/sighting.ts'
import { luceneMatcher } from '../search/lucene.ts'
import { riskOf } from './legacy-item.ts'
import type { LegacyParameters } from './legacy-parameters.ts'

type Test = (event: SandboxEvent) => boolean
type Action = LegacyParameters['event_actions'][number]

const isAny: Test = () => true

export function legacyMatcher(asked: LegacyParameters): Test {
  const { time, risks, query } = asked
  const tests: Test[] = [
    time ? ({ createdAtMs: at }) => at >= time.since && at <= time.until : isAny,
    typeTest(asked.types, asked.experimental_types),
    tagTest(asked.tags, asked.tags_query_operator),
    actionTest(asked),
    risks.length > 0 ? (event) => risks.includes(riskOf(event)) : isAny,
    asked.has_modified_risk_score ? isRescored : isAny,
    asked.has_notes ? ({ notes }) => notes !== null : isAny,
    query ? queryTest(query) : isAny,
  ]
  return (event) => tests.every((passes) => passes(event))
}

function queryTest(query: NonNullable<LegacyParameters['query']>): Test {
  const finds = luceneMatcher(query)
  return (event) => finds(sightingOf(event).document)
}

/** What the description's groups contain, it says itself; what else is a group, the filters know. */
function typeTest(types: readonly LegacyType[], experimental: readonly string[]): Test {
  if (types.length === 0 && experimental.length === 0) return isAny
  const named = types.flatMap((type) => legacyTypeGroups[type] ?? [type])
  const wanted = typesOf([...named, ...experimental])
  const known = types.includes('experimental') ? typesOf(legacyTypes) : null
  return ({ type }) => wanted.has(type) || known?.has(type) === false
}

/** Any of the tags, unless it says AND. */
function tagTest(tags: readonly string[], operator: 'AND' | 'OR'): Test {
  if (tags.length === 0) return isAny
  return (event) => {
    const has = (tag: string): boolean => event.tags.includes(tag)
    return operator === 'AND' ? tags.every(has) : tags.some(has)
  }
}

/** Any of the actions; without one, what is ignored is left out. */
function actionTest({ event_action: action, event_actions: actions }: LegacyParameters): Test {
  const all: Action[] = [...(action ? [action] : []), ...actions]
  const wanted = all.length > 0 ? all : (['default'] as const)
  return (event) => wanted.some((one) => hasAction(event, one))
}

function hasAction(event: SandboxEvent, action: Action): boolean {
  const isIgnored = event.ignoredAtMs !== null
  const isRemediated = event.remediatedAtMs !== null
  switch (action) {
    case 'default':
    case 'exclude_ignored':
      return !isIgnored
    case 'ignored':
      return isIgnored
    case 'remediated':
      return isRemediated
    case 'ignored_or_remediated':
      return isIgnored || isRemediated
    case 'risk_score_edited':
      return isRescored(event)
  }
}

function isRescored({ override }: SandboxEvent): boolean {
  return override !== null
}
