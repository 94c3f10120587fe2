import { suggestion } from '../runtime/nearest.ts'
import type { LogLevel } from '../runtime/logger.ts'
import { ConfigError } from './config-error.ts'

export type Environment = Readonly<Record<string, string | undefined>>

/** The process's environment; the only place that reads it. */
export function environment(): Environment {
  return process.env
}

const logLevels = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const

/** From LOG_LEVEL; `info` where it is unset or empty. Throws ConfigError for another word. */
export function logLevel(env: Environment): LogLevel {
  const given = env['LOG_LEVEL'] ?? ''
  const level = given === '' ? 'info' : logLevels.find((known) => known === given)
  if (level !== undefined) return level
  const remedy = suggestion(given, logLevels, 'write one of')
  const mistake = { file: 'environment', line: 0, column: 0, path: 'LOG_LEVEL', remedy }
  throw new ConfigError([{ ...mistake, problem: 'not a log level' }])
}
