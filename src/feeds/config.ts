import { byType } from '../runtime/config-section.ts'
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
