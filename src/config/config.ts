import type { FeedConfig, PollLimits } from '../feeds/config.ts'
import type { HttpConfig } from '../http/config.ts'
import type { LedgerConfig } from '../ledger/config.ts'
import type { CanaryConfig, NoticesConfig } from '../notices/config.ts'
import type { RedisConfig } from '../redis/config.ts'
import type { RouteConfig } from '../routing/config.ts'
import type { InhibitRule } from '../routing/inhibition.ts'
import type { Silence } from '../routing/silences.ts'
import type { TimeIntervals } from '../routing/time-intervals.ts'
import type { AccountConfig } from '../service/config.ts'
import type { EmailConfig } from '../sinks/email/config.ts'
import type { SlackConfig } from '../sinks/slack/config.ts'
import type { ReliefConfig } from '../sinks/relief-config.ts'
import type { WebhookConfig } from '../sinks/webhook/config.ts'

export type SinkConfig = (SlackConfig | EmailConfig | WebhookConfig) & ReliefConfig

/** The whole configuration, validated and frozen. Every part sees only its slice. */
export interface Config {
  redis: RedisConfig
  http: HttpConfig
  accounts: AccountConfig[]
  /** Of each process. */
  limits: PollLimits
  feeds: FeedConfig[]
  sinks: SinkConfig[]
  route: RouteConfig
  timeIntervals: TimeIntervals
  inhibitRules: InhibitRule[]
  /** Those of the file; commands can add more in Redis. */
  silences: Silence[]
  ledger: LedgerConfig
  notices: NoticesConfig | undefined
  canary: CanaryConfig | undefined
}
