/** Which events a search asks for. */
import type { SandboxEvent } from '../history/sandbox-event.ts'
import type { MaterializedFilter } from '../options.ts'
import { instantOf, knownSeverities, type SearchBody, type TimeRange } from './search-body.ts'

type Filters = SearchBody['filters']

/** Filter names are groups or types, and not the vocabulary of items (public documentation, filters). */
const groups: Record<string, readonly string[]> = {
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
  leaks: ['leak', 'leaked_credential'],
  domains: ['domain'],
  domain: ['domain', 'lookalike'],
}

export function effectiveSeverity(event: SandboxEvent): string {
  return event.override ?? event.severity
}

export function matcherOf(
  filters: Filters,
  materializedFilter: MaterializedFilter = 'honoured',
): (event: SandboxEvent) => boolean {
  const types = filters.type ? typesOf(filters.type) : null
  const isCreatedThen = rangeOf(filters.estimated_created_at)
  const isMaterializedThen = materializedTest(filters, materializedFilter)
  return (event) =>
    hasSeverity(event, filters.severity) &&
    (types === null || types.has(event.type)) &&
    (!filters.tags || filters.tags.some((tag) => event.tags.includes(tag))) &&
    (!filters.is_remediated || event.remediatedAtMs !== null) &&
    (!filters.is_ignored || event.ignoredAtMs !== null) &&
    isCreatedThen(event.createdAtMs) &&
    isMaterializedThen(event.arrivedAtMs)
}

/** `refused` is refused before. */
function materializedTest(
  { materialized_at: range }: Filters,
  manner: MaterializedFilter,
): (ms: number) => boolean {
  if (range && manner === 'empty') return () => false
  return rangeOf(manner === 'ignored' ? undefined : range)
}

/** A string means this or higher, an array exactly these. A word that no list has ranks highest. */
function hasSeverity(event: SandboxEvent, wanted: Filters['severity']): boolean {
  if (!wanted) return true
  const severity = effectiveSeverity(event)
  if (typeof wanted !== 'string') return (wanted as string[]).includes(severity)
  return rankOf(severity) >= rankOf(wanted)
}

function rankOf(severity: string): number {
  const rank = (knownSeverities as readonly string[]).indexOf(severity)
  return rank === -1 ? knownSeverities.length : rank
}

/** Every item type that the named filters cover. */
export function typesOf(names: readonly string[]): Set<string> {
  const found = new Set<string>()
  const waiting = [...names]
  for (let name = waiting.pop(); name !== undefined; name = waiting.pop()) {
    if (found.has(name)) continue
    found.add(name)
    waiting.push(...(groups[name] ?? []))
  }
  return found
}

/** What the filter lists name: every category with what it contains. */
export const filterCategories: Readonly<Record<string, readonly string[]>> = groups

function rangeOf(range: TimeRange | null | undefined): (ms: number) => boolean {
  const [gt, gte, lt, lte] = [range?.gt, range?.gte, range?.lt, range?.lte].map((text) =>
    text === undefined || text === null ? undefined : instantOf(text),
  )
  return (ms) =>
    (gt === undefined || ms > gt) &&
    (gte === undefined || ms >= gte) &&
    (lt === undefined || ms < lt) &&
    (lte === undefined || ms <= lte)
}
