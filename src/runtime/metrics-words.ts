/** The closed lists of words that metrics carry as label values. */

/** The values of a `severity` label; the first five are those of `events/severity.ts`. */
export const severityWords = ['info', 'low', 'medium', 'high', 'critical', 'unknown'] as const

/** The limits of the service that requests count against. */
export const tiers = ['search', 'basic'] as const

/** The reasons of a `ServiceError`. */
export const pollFailures = [
  'auth',
  'rate_limited',
  'rejected',
  'invalid',
  'unavailable',
  'timeout',
  'contract',
] as const

/** The reasons of a `SinkError`, after the one good outcome. */
export const attemptOutcomes = [
  'delivered',
  'rate_limited',
  'unavailable',
  'timeout',
  'connection_lost',
  'rejected',
  'invalid',
  'unauthorized',
  'gone',
  'recipient_refused',
  'redirected',
  'forbidden_address',
  'misconfigured',
] as const

/** The values of a `code` label. `none`: no answer came. */
export const responseCodes = [
  '200',
  '400',
  '401',
  '403',
  '404',
  '422',
  '429',
  '500',
  '502',
  '503',
  '504',
  'none',
  'other',
] as const

/** Why an item was settled without a message. */
export const suppressionReasons = [
  'silence',
  'inhibition',
  'mute',
  'shadow',
  'ignored',
  'remediated',
  'seen_again',
  'superseded',
] as const

/** Fields of the service's items, by its names for them, that may be unreadable while the item is taken in. */
export const unreadableFields = [
  'auth_domains',
  'breached_at',
  'content',
  'created_at',
  'domain',
  'estimated_created_at',
  'flare_url',
  'format_type',
  'hash',
  'hash_type',
  'header',
  'highlights',
  'id',
  'identifiers',
  'identity_name',
  'ignored_at',
  'imported_at',
  'intel_type',
  'leaked_at',
  'matched_at',
  'notes',
  'pii_tags',
  'reading_time',
  'related_activity_uids',
  'remediated_at',
  'report',
  'severity',
  'source',
  'subtitle',
  'summary',
  'tags',
  'tenant_metadata',
  'title',
  'type',
] as const
