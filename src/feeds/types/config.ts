/** The configuration of feeds: the schema of any feed. */
import { byType } from '../../lib/config/config-fields.ts'
import {
  type CookiesFeedConfig,
  cookiesFeedConfig,
  type CredentialSearchFeedConfig,
  credentialSearchFeedConfig,
  type CredentialsFeedConfig,
  credentialsFeedConfig,
} from './credentials-config.ts'
import {
  type EventSearchFeedConfig,
  eventSearchFeedConfig,
  type EventsFeedConfig,
  eventsFeedConfig,
} from './events-config.ts'

export type {
  CookiesFeedConfig,
  CredentialSearchFeedConfig,
  CredentialsFeedConfig,
  EventSearchFeedConfig,
  EventsFeedConfig,
}
export type { FeedCommon } from './feed-config.ts'

export type FeedConfig =
  | EventsFeedConfig
  | CredentialsFeedConfig
  | CredentialSearchFeedConfig
  | CookiesFeedConfig
  | EventSearchFeedConfig

/** One feed of the file. Its name is its key; its account may be left out. */
export const feedConfig = byType([
  eventsFeedConfig,
  credentialsFeedConfig,
  credentialSearchFeedConfig,
  cookiesFeedConfig,
  eventSearchFeedConfig,
])
