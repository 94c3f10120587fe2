import type { FeedConfig } from './config.ts'

/** A feed as it is polled. */
export type PolledFeed = Polled<FeedConfig>

/** `scope`: base URL and tenant of its account: elsewhere its cursor means nothing. */
export type Polled<Config extends FeedConfig> = Config extends FeedConfig
  ? Config & { scope: string }
  : never
