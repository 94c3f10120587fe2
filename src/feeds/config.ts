import { byType } from '../runtime/config-section.ts'
import { credentialSearchFeedConfig, credentialsFeedConfig } from './credential-feed-config.ts'
import { eventsFeedConfig } from './events-feed-config.ts'

export type {
  CredentialQuery,
  CredentialSearchFeedConfig,
  CredentialsFeedConfig,
  EventsFeedConfig,
  FeedCommon,
  FeedConfig,
  PairDedupe,
} from './feed-config.ts'

const byGroup = 'events are read by identifier group'

/** One feed of the file; its name is the key it stands under, its account may be left open. */
export const feedConfig = byType(
  [eventsFeedConfig, credentialsFeedConfig, credentialSearchFeedConfig],
  {
    known: ['events', 'credentials', 'credential_search'],
    later: {
      event_search: byGroup,
      legacy_search: byGroup,
      reports: 'no feed reads reports',
    },
  },
)
