/** The configuration of feeds: poll limits, and the schema of any feed. */
import type { z } from 'zod'
import { byType, positiveNumber, section } from '../../lib/config/config-fields.ts'
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

export const pollLimits = section(
  {
    polls: positiveNumber(
      'How often all feeds together are looked at for something new in a second.',
    ).prefault(100),
  },
  { describe: 'What polling may take, whatever the limits of the accounts.' },
).transform((file) => ({ pollsPerSecond: file.polls }))

/** Limits of all feeds and replicas together, whatever the limits of the accounts. */
export type PollLimits = z.output<typeof pollLimits>

/** One feed of the file. Its name is its key; its account may be left out. */
export const feedConfig = byType([
  eventsFeedConfig,
  credentialsFeedConfig,
  credentialSearchFeedConfig,
  cookiesFeedConfig,
  eventSearchFeedConfig,
])
