/** The type of the whole configuration, its mistakes, and the environment. */
import type { FeedConfig } from '../feeds/types/config.ts'
import { suggestion, TocsinError } from '../lib/errors.ts'
import type { LogLevel } from '../lib/logger.ts'
import type { MessagesConfig } from '../messages/config.ts'
import type { HttpConfig } from '../page/http/config.ts'
import type { RedisConfig } from '../redis/config.ts'
import type { RouteConfig } from '../routing/config.ts'
import type { InhibitRule } from '../routing/inhibition.ts'
import type { Silence } from '../routing/silences.ts'
import type { TimeIntervals } from '../routing/time-intervals.ts'
import type { CanaryConfig, SelfAlertsConfig } from '../operator/alerts/config.ts'
import type { SinkConfig } from '../sinks/sink-types.ts'
import type { LedgerConfig } from '../store/account-ledger.ts'
import type { AccountConfig } from '../upstream/config.ts'
import type { Environment } from './yaml-source.ts'

export type { Environment } from './yaml-source.ts'

/** The whole configuration, validated and frozen. Every part sees only its slice. */
export interface Config {
  redis: RedisConfig
  http: HttpConfig
  accounts: AccountConfig[]
  feeds: FeedConfig[]
  sinks: SinkConfig[]
  route: RouteConfig
  timeIntervals: TimeIntervals
  inhibitRules: InhibitRule[]
  /** Those of the file; commands can add more in Redis. */
  silences: Silence[]
  ledger: LedgerConfig
  selfAlerts: SelfAlertsConfig | undefined
  canary: CanaryConfig | undefined
  messages: MessagesConfig
}

/** A mistake that the operator must correct. Quotes no secret. */
export interface Mistake {
  /** As the operator named it. */
  file: string
  /** From 1; 0 if the mistake has no line. */
  line: number
  column: number
  /** Path in the configuration, e.g. `route.routes[0].sinks[1]`; empty: the file as a whole. */
  path: string
  problem: string
  /** What to write instead. */
  remedy: string
}

/** All mistakes of the operator, in the order of the file. */
export class ConfigError extends TocsinError {
  override readonly name = 'ConfigError'
  readonly code = 'TOCSIN_CONFIG'
  readonly mistakes: readonly Mistake[]

  constructor(mistakes: readonly Mistake[], options: { cause?: unknown } = {}) {
    const count = mistakes.length === 1 ? '1 mistake' : `${mistakes.length} mistakes`
    const lines = mistakes.map((mistake) => `  ${formatMistake(mistake)}`)
    super([`the configuration has ${count}:`, ...lines].join('\n'), { cause: options.cause })
    this.mistakes = mistakes
  }
}

/** `tocsin.yaml:14:5 feeds.brand.evry: unknown key; did you mean "every"?` */
export function formatMistake({ file, line, column, path, problem, remedy }: Mistake): string {
  const place = line === 0 ? file : `${file}:${line}:${column}`
  return `${place}${path === '' ? '' : ` ${path}`}: ${problem}; ${remedy}`
}

/** The process's environment; the only place that reads settings from it. */
export function environment(): Environment {
  return process.env
}

const logLevels = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const

/** The level in LOG_LEVEL; `info` if it is unset or empty. Throws ConfigError for another word. */
export function logLevel(env: Environment): LogLevel {
  const given = env['LOG_LEVEL'] ?? ''
  const level = given === '' ? 'info' : logLevels.find((known) => known === given)
  if (level !== undefined) return level
  const remedy = suggestion(given, logLevels, 'write one of')
  const mistake = { file: 'environment', line: 0, column: 0, path: 'LOG_LEVEL', remedy }
  throw new ConfigError([{ ...mistake, problem: 'not a log level' }])
}
