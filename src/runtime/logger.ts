import { pino, stdTimeFunctions, type DestinationStream, type Logger as PinoLogger } from 'pino'
import prettyStream from 'pino-pretty'

export type Logger = PinoLogger

export type LogLevel = 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'fatal' | 'silent'

/** Field names whose values never reach a log line, at the top level and up to two levels down. */
export const redactedFields = [
  'api_key',
  'apiKey',
  'authorization',
  'Authorization',
  'cookie',
  'credential',
  'hash',
  'password',
  'secret',
  'secrets',
  'smtp',
  'token',
  'url',
  'value',
] as const

export interface LoggerOptions {
  level?: LogLevel
  /** Human-readable lines instead of JSON; for terminals. */
  pretty?: boolean
  destination?: DestinationStream
}

/** One JSON line per event of note: a static message, ids as fields, times in ISO 8601 UTC. */
export function createLogger({
  level = 'info',
  pretty = false,
  destination,
}: LoggerOptions = {}): Logger {
  const paths = redactedFields.flatMap((field) => [field, `*.${field}`, `*.*.${field}`])
  const options = {
    level,
    base: null,
    timestamp: stdTimeFunctions.isoTime,
    formatters: { level: (label: string) => ({ level: label }) },
    redact: { paths, censor: '<secret>' },
    serializers: { err: describeError },
  }
  const target = destination ?? (pretty ? prettyStream({ colorize: true, sync: true }) : undefined)
  return target ? pino(options, target) : pino(options)
}

/** What a log line says of an error: name, code, reason, message; the stack only for bugs of ours. */
function describeError(error: unknown): unknown {
  if (!(error instanceof Error)) return { message: String(error) }
  const known = error as Error & { code?: unknown; reason?: unknown; retryAfterMs?: unknown }
  const described: Record<string, unknown> = { name: error.name, message: error.message }
  if (known.code !== undefined) described['code'] = known.code
  if (known.reason !== undefined) described['reason'] = known.reason
  if (known.retryAfterMs !== undefined) described['retryAfterMs'] = known.retryAfterMs
  if (known.reason === undefined) described['stack'] = error.stack
  if (error.cause instanceof Error) described['cause'] = error.cause.message
  return described
}
