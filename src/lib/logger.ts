/** The logger: JSON lines without secrets, and counted lines for what an outage repeats. */
import { type DestinationStream, type Logger as PinoLogger, pino, stdTimeFunctions } from 'pino'
import { type Clock, systemClock } from './clock.ts'

export interface Logger extends PinoLogger {
  /** For lines that an outage repeats by feed, event or account: one line per cause and minute. */
  repeated: RepeatedLines
}

export type LogLevel = 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'fatal' | 'silent'

/**
 * Names of fields whose values never reach a log line, at any depth. They are those that libraries
 * and the service give to secrets, and those that `redactField` adds.
 */
const redactedNames = new Set<PropertyKey>([
  'authorization',
  'Authorization',
  'cookie',
  'Cookie',
  'set-cookie',
  'credential',
  'hash',
  'pass',
  'password',
  'token',
  'url',
  'value',
])

/** Keeps the values of fields of this name out of the lines of loggers that are made later. */
export function redactField(name: string): void {
  redactedNames.add(name)
}

export function listRedactedFields(): string[] {
  return [...redactedNames].map(String)
}

const censoredText = '<secret>'

/** Deeper values are left out: no line needs them, and cycles end. */
const maxDepth = 6

type Target = DestinationStream & { flush?: (done: () => void) => void }

/** How long a line waits for others, ms, and how much waits at most, characters: a write is dearer than a line. */
const stepMs = 100
const stepLength = 16_384

/** Writes lines in steps. Its `flush` writes before it returns; a SIGKILL loses the last step. */
export function inSteps(target: Target, clock: Pick<Clock, 'sleep'> = systemClock): Target {
  let waiting = ''
  function writeOut(): void {
    const text = waiting
    waiting = ''
    if (text !== '') target.write(text)
  }
  return {
    write(line) {
      if (waiting === '') void clock.sleep(stepMs).then(writeOut)
      waiting += line
      if (waiting.length >= stepLength) writeOut()
    },
    flush(done) {
      writeOut()
      if (target.flush) target.flush(done)
      else done()
    },
  }
}

function standardOutput(): Target {
  // with a minLength of 0 its flush would wait for nothing
  const output = pino.destination({ dest: 1, minLength: 1 })
  // what a full disk refuses is tried with the next line; at the exit it would be tried for ever
  output.on('error', () => (output.flushSync = () => undefined))
  return output
}

interface LoggerOptions {
  level?: LogLevel
  /** Human-readable lines instead of JSON; see `prettyLines`. */
  pretty?: ((line: string) => string) | undefined
  destination?: Target
  /** Counts the minutes of repeated lines. */
  clock?: Pick<Clock, 'monotonic'>
}

/**
 * Creates a logger that writes JSON lines: a static message, ids as fields, times in ISO 8601 UTC.
 */
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
    redact: { paths: [...listRedactedFields().map((field) => `["${field}"]`), '*'], censor },
    serializers: { err: describeError },
  }
  const target = destination ?? inSteps(standardOutput())
  const escaped = {
    write: (line: string) => target.write(escapeCharacters(pretty(line), invisibleCharacters)),
    flush: (done: () => void) => (target.flush ? target.flush(done) : done()),
  }
  const lines = pino(options, escaped)
  const repeated = createRepeatedLines((named, fields, words) => lines[named](fields, words), clock)
  return Object.assign(lines, { repeated })
}

/** Formats lines for terminals. `colorize`: off if NO_COLOR asks for it. */
export async function prettyLines(colorize = true): Promise<(line: string) => string> {
  const { prettyFactory } = await import('pino-pretty')
  return prettyFactory({ colorize })
}

/**
 * Characters that JSON leaves as they are and a terminal acts upon: eight-bit controls, bidi and
 * hidden text.
 */
const invisibleCharacters = /[\u007F-\u009F\p{Cf}\p{Default_Ignorable_Code_Point}\p{Zl}\p{Zp}]/gu

/**
 * pino calls this for every field of a line: by its name if that is redacted, by a wildcard
 * otherwise.
 */
function censor(value: unknown, [field]: PropertyKey[]): unknown {
  return field !== undefined && redactedNames.has(field) ? censoredText : withoutSecrets(value, 1)
}

/** Copies a value for a line: redacted fields censored, errors reduced to their description. */
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
      redactedNames.has(field) ? censoredText : withoutSecrets(member, depth + 1),
    ]),
  )
}

/** Describes an error for a line: name, code, reason, message; the stack only for bugs. */
function describeError(error: unknown): unknown {
  if (!(error instanceof Error)) return { message: String(error) }
  const fields = error as Error & { code?: unknown; reason?: unknown; retryAfterMs?: unknown }
  const described: Record<string, unknown> = { name: error.name, message: error.message }
  if (fields.code !== undefined) described['code'] = fields.code
  if (fields.reason !== undefined) described['reason'] = fields.reason
  if (fields.retryAfterMs !== undefined) described['retryAfterMs'] = fields.retryAfterMs
  if (fields.reason === undefined && !isSystemCode(fields.code)) described['stack'] = error.stack
  if (error.cause instanceof Error) described['cause'] = error.cause.message
  return described
}

/** ECONNREFUSED and the like: the world's doing, whereas ERR_… and errors without a code are ours. */
function isSystemCode(code: unknown): boolean {
  return typeof code === 'string' && /^E(?!RR_)[A-Z_\d]+$/.test(code)
}

/**
 * Log lines that an outage repeats. The first line of a cause is written at once and whole; those
 * of the next minute are counted and written as one line. Every call is in exactly one line or one
 * count.
 */
interface RepeatedLines {
  warn(fields: object, message: string, about: Repetition): void
  error(fields: object, message: string, about: Repetition): void
  /** Writes the counts whose minute is over; forgets causes that were quiet for a minute. */
  writeDue(): void
  /** Writes every count, whatever its age; for the end of the process. */
  writeAll(): void
}

interface Repetition {
  /**
   * Lines with the same level, message and cause are counted together. A reason or a sink, never an
   * error's free text.
   */
  cause: string
  /** The field that lists the names affected, and the name of this line. */
  list: 'feeds' | 'events' | 'accounts' | 'records' | 'hosts' | 'sinks'
  name: string
}

interface Cause {
  level: 'warn' | 'error'
  message: string
  about: Repetition
  /** When its last line was written, monotonic ms. */
  writtenMs: number
  count: number
  names: Set<string>
  /** The last error. */
  err: unknown
}

/** How long the lines of a cause are counted before they are written. */
const minuteMs = 60_000

/** Names that are listed; others are counted. */
const maxListedNames = 3

/** Distinct names that are counted; names may come from strangers. */
const maxCountedNames = 10_000

type Write = (level: Cause['level'], fields: object, message: string) => void

function createRepeatedLines(write: Write, clock: Pick<Clock, 'monotonic'>): RepeatedLines {
  const causes = new Map<string, Cause>()

  function say(level: Cause['level'], fields: object, message: string, about: Repetition): void {
    writeDue()
    const key = JSON.stringify([level, message, about.cause])
    const cause = causes.get(key)
    if (cause) return count(cause, fields, about.name)
    const started = { level, message, about, count: 0, names: new Set<string>(), err: undefined }
    causes.set(key, { ...started, writtenMs: clock.monotonic() })
    write(level, fields, message)
  }

  function writeDue(): void {
    const nowMs = clock.monotonic()
    for (const [key, cause] of causes) {
      if (nowMs - cause.writtenMs < minuteMs) continue
      causes.delete(key)
      if (cause.count === 0) continue
      writeCount(write, cause)
      causes.set(key, { ...cause, count: 0, names: new Set(), err: undefined, writtenMs: nowMs })
    }
  }

  return {
    warn: (fields, message, about) => say('warn', fields, message, about),
    error: (fields, message, about) => say('error', fields, message, about),
    writeDue,
    writeAll() {
      for (const cause of causes.values()) if (cause.count > 0) writeCount(write, cause)
      causes.clear()
    },
  }
}

function count(cause: Cause, fields: object, name: string): void {
  cause.count += 1
  if (cause.names.size < maxCountedNames) cause.names.add(name)
  if ('err' in fields) cause.err = fields.err
}

function writeCount(
  write: Write,
  { level, message, about, count: times, names, err }: Cause,
): void {
  const listed = [...names].slice(0, maxListedNames)
  const counts = { times, [about.list]: listed, others: names.size - listed.length }
  const shown = err === undefined ? {} : { err }
  write(level, { cause: about.cause, ...counts, ...shown }, `${message} (repeated)`)
}

/** Escapes what `characters` matches, as JSON does. */
export function escapeCharacters(text: string, characters: RegExp): string {
  return text.replace(characters, (found) =>
    Array.from({ length: found.length }, (_none, at) => {
      const unit = found.charCodeAt(at).toString(16)
      return `\\u${unit.padStart(4, '0')}`
    }).join(''),
  )
}
