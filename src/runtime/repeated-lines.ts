/**
 * Log lines that an outage repeats. The first line of a cause is written at once and whole; what the next
 * minute brings is counted and written as one line. Every call is in exactly one line or one count.
 */
import type { Clock } from './clock.ts'

export interface RepeatedLines {
  warn(fields: object, message: string, about: Repetition): void
  error(fields: object, message: string, about: Repetition): void
  /** Writes the counts whose minute is over; forgets causes that stayed quiet for a minute. */
  writeDue(): void
  /** Writes every count, whatever its age; for the end of the process. */
  writeAll(): void
}

export interface Repetition {
  /** Lines with the same message and cause are one trouble: a reason or a sink, never an error's free text. */
  cause: string
  /** The field that lists whom it befell, and this one's name. */
  list: 'feeds' | 'events' | 'accounts' | 'records' | 'hosts'
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
  /** The last one of each message, in the order in which they last came. */
  errors: Map<string, unknown>
}

/** How long the lines of a cause are counted before they are written. */
const minuteMs = 60_000

/** So many names are listed; the others are counted. */
const listedNames = 3

/** So many errors with messages of their own are shown: one cause may hide several. */
const listedErrors = 5

/** Names may come from strangers: so many are told apart. */
const countedNames = 10_000

type Write = (level: Cause['level'], fields: object, message: string) => void

export function createRepeatedLines(write: Write, clock: Pick<Clock, 'monotonic'>): RepeatedLines {
  const causes = new Map<string, Cause>()

  function say(level: Cause['level'], fields: object, message: string, about: Repetition): void {
    writeDue()
    const key = JSON.stringify([level, message, about.cause])
    const cause = causes.get(key)
    if (cause) return count(cause, fields, about.name)
    const started = { level, message, about, count: 0, names: new Set<string>(), errors: new Map() }
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
      causes.set(key, {
        ...cause,
        count: 0,
        names: new Set(),
        errors: new Map(),
        writtenMs: nowMs,
      })
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
  if (cause.names.size < countedNames) cause.names.add(name)
  if ('err' in fields) keep(cause.errors, fields.err)
}

/** The last one of each message; of too many, the latest. */
function keep(errors: Map<string, unknown>, err: unknown): void {
  const message = err instanceof Error ? err.message : String(err)
  errors.delete(message)
  errors.set(message, err)
  const [oldest = ''] = errors.keys()
  if (errors.size > listedErrors) errors.delete(oldest)
}

function writeCount(
  write: Write,
  { level, message, about, count: times, names, errors }: Cause,
): void {
  const listed = [...names].slice(0, listedNames)
  const counts = { times, [about.list]: listed, others: names.size - listed.length }
  const [err, ...others] = [...errors.values()].toReversed()
  const shown = { ...(err !== undefined && { err }), ...(others.length > 0 && { errors: others }) }
  write(level, { cause: about.cause, ...counts, ...shown }, `${message} (repeated)`)
}
