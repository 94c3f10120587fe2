import { positiveNumber } from '../runtime/config-fields.ts'
import { byType, section } from '../runtime/config-section.ts'
import {
  credentialSearchFeedConfig,
  credentialsFeedConfig,
  tenantCredentialsFeedConfig,
} from './credential-feed-config.ts'
import {
  eventsFeedConfig,
  identifierEventsFeedConfig,
  tenantEventsFeedConfig,
} from './events-feed-config.ts'
import { reportsFeedConfig } from './reports-feed-config.ts'
import { eventSearchFeedConfig, legacySearchFeedConfig } from './search-feed-config.ts'

export type {
  CredentialQuery,
  CredentialSearchFeedConfig,
  CredentialsFeedConfig,
  EventSearchFeedConfig,
  EventSearchQuery,
  EventsFeedConfig,
  FeedCommon,
  FeedConfig,
  IdentifierEventsFeedConfig,
  LegacySearchFeedConfig,
  PairDedupe,
  ReportsFeedConfig,
  TenantCredentialsFeedConfig,
  TenantEventsFeedConfig,
} from './feed-config.ts'

/** What bounds a process, whatever the limits of its accounts. */
export interface PollLimits {
  /** How often it reads its feeds in a second, all together. */
  pollsPerSecond: number
}

export const pollLimits = section(
  {
    polls: positiveNumber(
      'How often a process looks for something new in a second, over all its feeds.',
    ).prefault(100),
  },
  { describe: 'What a process may do, whatever the limits of its accounts.' },
).transform((file): PollLimits => ({ pollsPerSecond: file.polls }))

/** One feed of the file; its name is the key it stands under, its account may be left open. */
export const feedConfig = byType(
  [
    eventsFeedConfig,
    tenantEventsFeedConfig,
    identifierEventsFeedConfig,
    credentialsFeedConfig,
    tenantCredentialsFeedConfig,
    credentialSearchFeedConfig,
    eventSearchFeedConfig,
    legacySearchFeedConfig,
    reportsFeedConfig,
  ],
  {
    known: [
      'events',
      'tenant_events',
      'identifier_events',
      'credentials',
      'tenant_credentials',
      'credential_search',
      'event_search',
      'legacy_search',
      'reports',
    ],
  },
)
