/** Events as the legacy search shows them: the older shape (facts.md 4). */
import { effectiveSeverity } from '../api/filters.ts'
import { fullEventOf } from '../api/full-event.ts'
import { linkTo } from '../api/search-item.ts'
import { mayDo } from '../api/permissions.ts'
import { knownSeverities } from '../api/search-body.ts'
import type { TokenGrant } from '../api/tokens.ts'
import { withOffset } from '../history/draft.ts'
import type { SandboxEvent } from '../history/sandbox-event.ts'
import { stolenOf } from '../history/stolen.ts'

type Fields = Record<string, unknown>

/** How much of a content a preview shows. */
const previewLength = 200

/** As the public examples show an event of v2: its uid and type stand in the header. */
export function legacyItemOf(event: SandboxEvent, grant: TokenGrant | null): unknown {
  if ('raw' in event) return event.raw
  const { uid, type } = event
  const metadata = {
    estimated_created_at: withOffset(event.createdAtMs),
    event_id: null,
    source: uid.split('/')[1] ?? null,
    flare_url: linkTo(uid),
  }
  return {
    data: { uid, index: type, metadata, title: titleOf(event), ...dataOf(event, grant) },
    header: { ...headerOf(event), uid, type },
    metadata,
  }
}

/** The older full event, which there is of every type, also without a model. */
export function activityOf(event: SandboxEvent, grant: TokenGrant | null): unknown {
  const item = legacyItemOf(event, grant) as object
  return { ...item, duplicates: [], history_logs: null, similar_items: [] }
}

/** 1 to 5 (facts.md 1, row 5); a word that no list has ranks highest. */
export function riskOf(event: SandboxEvent): number {
  const rank = (knownSeverities as readonly string[]).indexOf(effectiveSeverity(event))
  return rank === -1 ? knownSeverities.length : rank + 1
}

function headerOf(event: SandboxEvent): Fields {
  const data = event.data ?? {}
  const source = event.uid.split('/')[1] ?? null
  return {
    title: titleOf(event),
    content_preview: previewOf(event),
    category_name: textOf(data, 'context.category_name'),
    risk: { score: riskOf(event) },
    source,
    source_name: textOf(data, 'source.name') ?? source,
    actor: textOf(data, 'actor.name'),
    timestamp: withOffset(event.createdAtMs),
    ignored_at: timeOrNull(event.ignoredAtMs),
    remediated_at: timeOrNull(event.remediatedAtMs),
    tags: event.tags,
    notes: event.notes,
  }
}

const titles = [
  'title',
  'context.topic_title',
  'context.conversation_name',
  'domain',
  'hostname',
  'identity_name',
  'term',
  'name',
  'username',
  'bucket.host',
  'bin',
  'victim_information.username',
]

function titleOf({ uid, data }: SandboxEvent): string {
  const found = titles.map((path) => textOf(data ?? {}, path))
  return found.find((text) => text !== null) ?? uid
}

function previewOf({ data, highlights }: SandboxEvent): string | null {
  const shown = Object.values(highlights)
    .flat()[0]
    ?.replaceAll(/<\/?mark>/g, '')
  return (textOf(data ?? {}, 'content') ?? shown)?.slice(0, previewLength) ?? null
}

function textOf(data: Fields, path: string): string | null {
  let value: unknown = data
  for (const key of path.split('.')) value = (value as Fields | null | undefined)?.[key]
  return typeof value === 'string' ? value : null
}

/** Of what is stolen, as much as the caller may see. */
function dataOf(event: SandboxEvent, grant: TokenGrant | null): Fields {
  if (event.data === null) return shownOf(event)
  const { data } = fullEventOf(event, mayDo(grant, 'leaksdb.show-passwords'))
  const stolen = stolenOf(event)
  return {
    ...(data as Fields),
    ...(stolen && mayDo(grant, 'astp_credentials_access') && { credentials: stolen.credentials }),
    ...(stolen && mayDo(grant, 'astp_cookies_access') && { cookies: stolen.cookies }),
  }
}

/** Of a type without a model: what its highlights tell. */
function shownOf({ highlights }: SandboxEvent): Fields {
  const shown = Object.entries(highlights).map(([path, texts]) => [
    path.split('.').at(-1),
    texts.join('\n').replaceAll(/<\/?mark>/g, ''),
  ])
  return Object.fromEntries(shown) as Fields
}

function timeOrNull(ms: number | null): string | null {
  return ms === null ? null : withOffset(ms)
}
