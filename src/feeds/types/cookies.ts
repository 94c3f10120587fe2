/**
 * Stolen cookies of one domain. The service takes an import time from which on it shows them. The
 * order that is asked for is documented only as the one for new cookies. So they are read as the
 * credential search is: window by window of import times, each from its start to its end.
 *
 * A cookie that had expired when it was imported is told at a severity of its own. What still lives
 * is what somebody has to end at once.
 */
import { blankEvent, type ThreatEvent } from '../../event.ts'
import { fullMask } from '../../masking/mask-secret.ts'
import { cut, maskKnown, withholdIn, withholdName } from '../../masking/masking.ts'
import {
  credentialOperations,
  type WireCookieSearchBody,
} from '../../upstream/resources/credentials.ts'
import type { CookiesFeedConfig } from './credentials-config.ts'
import { importPageSize, readByImportTime } from './credential-search.ts'
import { bodyWithCursor, type FeedType, type ParsedFeedItem, timeFilter } from './feed-type.ts'
import { createFieldReader, isJsonObject, readId } from './field-reader.ts'

export const cookiesFeed: FeedType<CookiesFeedConfig> = {
  pageSize: importPageSize,
  fingerprintParts: ({ domain, names, paths }) => [domain, names, paths],
  body({ domain, names, paths }, span, size) {
    const body: WireCookieSearchBody = {
      domain,
      ...(names.length > 0 && { names }),
      ...(paths.length > 0 && { paths }),
      imported_after: timeFilter(span).gte,
      size,
      order: 'asc',
    }
    return { ...body }
  },
  async fetch({ tier }, { client, scan, slot, signal }) {
    const body = bodyWithCursor<WireCookieSearchBody>(scan)
    return client.call(credentialOperations.cookies, body, { slot, tier, signal })
  },
  parse: parseCookie,
  unordered: readByImportTime,
}

/** Limits of a stored cookie: code units. A longer value is masked everywhere, as with credentials. */
const limits = { text: 500, value: 1000 } as const

/** Parses one cookie. Never throws. Only its uuid is required; its value is masked wherever it stands. */
export function parseCookie(
  raw: unknown,
  feed: Pick<CookiesFeedConfig, 'severity' | 'expiredSeverity'>,
): ParsedFeedItem {
  if (!isJsonObject(raw)) return { ok: false, uid: null, problem: 'item: it is no object' }
  const id = readId(raw['uuid'])
  if (id === null) return { ok: false, uid: null, problem: 'uuid: it is no UUID' }
  const reader = createFieldReader()
  const value = reader.text('value', raw['value']) ?? ''
  const eventUid = reader.text('event_uid', raw['event_uid']) ?? ''
  const createdAtMs = reader.time('imported_at', raw['imported_at'])
  const expiresAtMs = reader.time('expires_at', raw['expires_at'])
  const isExpired = expiresAtMs !== null && expiresAtMs <= (createdAtMs ?? 0)
  const texts = {
    name: reader.text('name', raw['name']),
    domain: reader.text('domain', raw['domain']),
    path: reader.text('path', raw['path']),
    value: value === '' ? null : fullMask,
    expires_at: expiresAtMs === null ? null : new Date(expiresAtMs).toISOString(),
    state: isExpired ? 'expired' : null,
    event_uid: eventUid,
  }
  return {
    ok: true,
    secret: value === '' || value.length > limits.value ? null : value,
    event: {
      ...blankEvent('cookie'),
      kind: 'credential',
      uid: `cookie/${id}`,
      source: withholdName(eventUid.split('/')[1] ?? ''),
      severity: isExpired ? feed.expiredSeverity : feed.severity,
      createdAtMs,
      highlights: buildHighlights(texts, value),
      ...reader.unread(),
    },
  }
}

function buildHighlights(
  texts: Record<string, string | null>,
  value: string,
): ThreatEvent['highlights'] {
  const mask = maskKnown([value])
  const present = Object.entries(texts).flatMap(([name, text]): [string, string[]][] =>
    text === null || text.trim() === '' ? [] : [[name, [cut(mask(text), limits.text)]]],
  )
  return withholdIn(Object.fromEntries(present))
}
