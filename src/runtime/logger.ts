import { pino, stdTimeFunctions, type DestinationStream, type Logger as PinoLogger } from 'pino'
import { systemClock, type Clock } from './clock.ts'
import { escaped } from './escaped.ts'
import { createRepeatedLines, type RepeatedLines } from './repeated-lines.ts'

export interface Logger extends PinoLogger {
  /** For lines that an outage repeats by feed, event or account: one line per cause and minute. */
  repeated: RepeatedLines
}

export type LogLevel = 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'fatal' | 'silent'

/** Field names whose values never reach a log line, however deep they stand. */
export const redactedFields = [
  'api_key',
  'apiKey',
  'authorization',
  'Authorization',
  'cookie',
  'Cookie',
  'set-cookie',
  'credential',
  'hash',
  'pass',
  'password',
  'proxy',
  'secret',
  'secrets',
  'smtp',
  'token',
  'url',
  'value',
] as const

const redacted = new Set<PropertyKey>(redactedFields)

const censored = '<secret>'

/** Deeper values are left out: no line of ours needs them, and a cycle ends. */
const maxDepth = 6

export interface LoggerOptions {
  level?: LogLevel
  /** Human-readable lines instead of JSON; see `prettyLines`. */
  pretty?: ((line: string) => string) | undefined
  destination?: DestinationStream
  /** Counts the minutes of repeated lines. */
  clock?: Pick<Clock, 'monotonic'>
}

/** One JSON line per event of note: a static message, ids as fields, times in ISO 8601 UTC. */
export function createLogger({
  level = 'info',
  pretty = (line) => line,
  destination,
  clock = systemClock,
}: LoggerOptions = {}): Logger {
  const options = {
    level,
    base: null,
    timestamp: stdTimeFunctions.isoTime,
    formatters: { level: (label: string) => ({ level: label }) },
    redact: { paths: [...redactedFields.map((field) => `["${field}"]`), '*'], censor },
    serializers: { err: describeError },
  }
  const target = destination ?? pino.destination(1)
  const lines = pino(options, { write: (line) => target.write(escaped(pretty(line), unseen)) })
  const repeated = createRepeatedLines((named, fields, words) => lines[named](fields, words), clock)
  return Object.assign(lines, { repeated })
}

/** For terminals. `colorize`: off where NO_COLOR asks for it. */
export async function prettyLines(colorize = true): Promise<(line: string) => string> {
  const { prettyFactory } = await import('pino-pretty')
  return prettyFactory({ colorize })
}

/** What JSON leaves as it is and a terminal acts upon: controls of eight bits, turned or hidden text. */
const unseen = /[\u007F-\u009F\p{Cf}\p{Default_Ignorable_Code_Point}\p{Zl}\p{Zp}]/gu

/** Asked for every field of a line: by its name where that is redacted, by a wildcard otherwise. */
function censor(value: unknown, [field]: PropertyKey[]): unknown {
  return field !== undefined && redacted.has(field) ? censored : withoutSecrets(value, 1)
}

/** A copy as it may be written: redacted fields censored, errors only as far as they are described. */
function withoutSecrets(value: unknown, depth: number): unknown {
  if (typeof value !== 'object' || value === null) return value
  if (depth > maxDepth) return '<deeper>'
  if (value instanceof Error) return describeError(value)
  if (Array.isArray(value)) return value.map((member) => withoutSecrets(member, depth + 1))
  if ('toJSON' in value && typeof value.toJSON === 'function') {
    return withoutSecrets(value.toJSON(), depth + 1)
  }
  return Object.fromEntries(
    Object.entries(value).map(([field, member]) => [
      field,
      redacted.has(field) ? censored : withoutSecrets(member, depth + 1),
    ]),
  )
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
