/** Which events a search finds: severities, types that stand for others, and times. */
import { eventSeverities } from '../../upstream/resources/enumerations.ts'
import type { GroupSearchBody } from '../../upstream/resources/events.ts'
import type { SandboxEvent } from '../history/history.ts'
import type { MaterializedFilter } from '../options.ts'
import { parseInstant } from '../times.ts'
import { invalid } from './routes.ts'

export type Filters = NonNullable<GroupSearchBody['filters']>

/**
 * The types that words of the `type` filter stand for (docs/api-notes.md, Types that stand for
 * others). Items also have types that are no such words.
 */
const typeGroups: Readonly<Record<string, readonly string[]>> = {
  illicit_networks: [
    'forum_content',
    'blog_content',
    'profile',
    'chat_message',
    'listing',
    'ransomleak',
    'infected_devices',
    'financial_data',
  ],
  open_web: ['paste', 'social_media', 'source_code', 'docker', 'google', 'service', 'buckets'],
  buckets: ['bucket', 'bucket_object'],
  source_code: ['stack_exchange', 'source_code_files', 'source_code_secrets'],
  forum_content: ['forum_post', 'forum_topic'],
  blog_content: ['blog_post'],
  profile: ['forum_profile', 'seller'],
  infected_devices: ['bot', 'stealer_log'],
  financial_data: ['cc', 'ccbin'],
  social_media: ['social_media_account'],
  docker: ['docker_repository', 'docker_image'],
  leaks: ['leak', 'valid_credential', 'invalid_credential', 'mitigated_credential'],
  domains: ['domain'],
  domain: ['domain', 'lookalike'],
}

/** Returns every item type that the named filters cover. */
export function expandTypes(names: readonly string[]): Set<string> {
  const found = new Set<string>()
  const waiting = [...names]
  for (let name = waiting.pop(); name !== undefined; name = waiting.pop()) {
    if (found.has(name)) continue
    found.add(name)
    waiting.push(...(typeGroups[name] ?? []))
  }
  return found
}

/** Item types that are no words of a filter. */
const noFilters = ['lookalike', 'docker_repository', 'docker_image']

const filterWords = [
  ...new Set([...Object.entries(typeGroups).flat(2), 'leaked_credential', 'ad', 'ads']),
].filter((word) => !noFilters.includes(word))

/** Every word that a `type` filter takes: groups with their types, and single types. */
export function typeCategories(): unknown[] {
  return filterWords.map((value) => ({
    ...labelled(value),
    types: (typeGroups[value] ?? []).filter((type) => filterWords.includes(type)).map(labelled),
  }))
}

/** A word of a filter with how people read it. */
export function labelled(value: string): { value: string; label: string } {
  return { value, label: value.charAt(0).toUpperCase() + value.slice(1).replaceAll('_', ' ') }
}

export function effectiveSeverity(event: SandboxEvent): string {
  return event.override ?? event.severity
}

/** 0 to 4, least first; an unknown severity ranks highest. */
export function severityRank(severity: string): number {
  const rank = (eventSeverities as readonly string[]).indexOf(severity)
  return rank === -1 ? eventSeverities.length - 1 : rank
}

/** Throws a Refusal if a word is no filter. The mode `refused` refuses `materialized_at`. */
export function filterTest(
  filters: Filters,
  mode: MaterializedFilter,
): (event: SandboxEvent) => boolean {
  const { severity, type, tags, materialized_at: materialized } = filters
  for (const [index, word] of (type ?? []).entries()) {
    if (filterWords.includes(word)) continue
    throw invalid(['body', 'filters', 'type', index], 'not a type that can be filtered', word)
  }
  if (mode === 'refused' && materialized) {
    throw invalid(['body', 'filters', 'materialized_at'], 'extra inputs are not permitted')
  }
  const types = type && expandTypes(type)
  const isCreatedThen = rangeTest(filters.estimated_created_at)
  const isMaterializedThen = mode === 'ignored' ? () => true : rangeTest(materialized)
  if (mode === 'empty' && materialized) return () => false
  return (event) =>
    hasSeverity(event, severity) &&
    (types === undefined || types.has(event.type)) &&
    (!tags || tags.some((tag) => event.tags.includes(tag))) &&
    (!filters.is_remediated || event.remediatedAtMs !== null) &&
    (!filters.is_ignored || event.ignoredAtMs !== null) &&
    isCreatedThen(event.createdAtMs) &&
    isMaterializedThen(event.arrivedAtMs)
}

/** A word means this severity or higher, a list exactly these. */
function hasSeverity(event: SandboxEvent, wanted: Filters['severity']): boolean {
  if (wanted === undefined) return true
  const severity = effectiveSeverity(event)
  if (typeof wanted === 'string') return severityRank(severity) >= severityRank(wanted)
  return (wanted as readonly string[]).includes(severity)
}

function rangeTest(range: Filters['materialized_at']): (ms: number) => boolean {
  const bound = (text: string | undefined, open: number): number =>
    text === undefined ? open : parseInstant(text)
  const [gt, gte] = [bound(range?.gt, -Infinity), bound(range?.gte, -Infinity)]
  const [lt, lte] = [bound(range?.lt, Infinity), bound(range?.lte, Infinity)]
  return (ms) => ms > gt && ms >= gte && ms < lt && ms <= lte
}
