import type { FeedConfig } from './config.ts'

/** A feed as it is polled. */
export interface PolledFeed extends FeedConfig {
  /** Base URL and tenant of its account: elsewhere its cursor means nothing. */
  scope: string
}
