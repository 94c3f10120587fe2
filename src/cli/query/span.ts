import { Option, type Command } from 'commander'
import { CommandError } from '../command-error.ts'
import { parseMoment } from '../moment.ts'
import { momentValue } from './option-values.ts'

export interface SpanOptions {
  since?: string
  until?: string
}

/** `what`: of what the time counts, e.g. `created`. */
export function addSpanOptions(command: Command, what: string): Command {
  return command
    .addOption(
      new Option(
        '--since <time>',
        `${what} then or later: how long ago, such as 7d, or a time such as 2026-11-01T12:00Z`,
      ).argParser(momentValue),
    )
    .addOption(new Option('--until <time>', `${what} then or before`).argParser(momentValue))
}

/** Milliseconds, both included. */
export interface Span {
  fromMs?: number
  toMs?: number
}

/** What the options meant at `asOfMs`. Throws CommandError where nothing lies between them. */
export function spanAt({ since, until }: SpanOptions, asOfMs: number): Span {
  const fromMs = since === undefined ? undefined : parseMoment(since, asOfMs)
  const toMs = until === undefined ? undefined : parseMoment(until, asOfMs)
  if (fromMs !== undefined && toMs !== undefined && fromMs > toMs) {
    throw new CommandError('mistake', '--since lies after --until; exchange them')
  }
  return { ...(fromMs !== undefined && { fromMs }), ...(toMs !== undefined && { toMs }) }
}

/** As the searches filter by it; undefined where all times will do. */
export function rangeOf({ fromMs, toMs }: Span): { gte?: string; lte?: string } | undefined {
  if (fromMs === undefined && toMs === undefined) return undefined
  return {
    ...(fromMs !== undefined && { gte: new Date(fromMs).toISOString() }),
    ...(toMs !== undefined && { lte: new Date(toMs).toISOString() }),
  }
}
