/** Parsers of option values; each rejects a bad value before anything is opened. */
import { type Command, InvalidArgumentError, Option } from 'commander'
import { systemClock } from '../lib/clock.ts'
import { duration, type Refusal } from '../lib/config/config-fields.ts'
import { suggestion } from '../lib/errors.ts'
import { readPastTime, readPeriodEnd } from '../lib/moment.ts'
import { CommandError, refuseEmpty } from './terminal.ts'

export function sizeParser(max: number): (text: string) => number {
  return (text) => {
    const size = /^\d{1,9}$/.test(text) ? Number(text) : 0
    if (size >= 1 && size <= max) return size
    throw new InvalidArgumentError(`Write a whole number from 1 to ${max}.`)
  }
}

export function parseText(text: string): string {
  refuseEmpty(text)
  return text.trim()
}

/** Parses `a,b`. Throws InvalidArgumentError. */
export function parseList(text: string): string[] {
  const words = text.split(',').map((word) => word.trim())
  if (!words.includes('')) return words
  throw new InvalidArgumentError('Write words with a comma between each, such as a,b.')
}

/**
 * Parses `a,b` where each word is of a closed list; a repeated option adds to what came `before`. Throws
 * InvalidArgumentError.
 */
export function listParser<Word extends string>(
  known: readonly Word[],
): (text: string, before?: readonly Word[]) => Word[] {
  return (text, before = []) => [
    ...before,
    ...parseList(text).map((word) => parseWord(known, word)),
  ]
}

/**
 * An option that takes words of a closed list, a comma between each; `parse` reads it otherwise. Help
 * lists the words.
 */
export function wordsOption(
  flags: string,
  says: string,
  known: readonly string[],
  parse: (text: string, before?: string[]) => unknown = listParser(known),
): Option {
  return new Option(flags, says)
    .choices(known)
    .argParser((text, before: unknown) => parse(text, before as string[] | undefined))
}

export function parseWord<Word extends string>(known: readonly Word[], word: string): Word {
  const found = known.find((one) => one === word)
  if (found !== undefined) return found
  throw new InvalidArgumentError(`No such word; ${suggestion(word, known, 'known')}`)
}

/** Checks a time as `read` reads it and returns it unchanged. Throws InvalidArgumentError. */
function checkTime(read: typeof readPastTime): (text: string) => string {
  return (text) => {
    const time = read(text, systemClock.now())
    if (typeof time === 'number') return text
    throw new InvalidArgumentError(`${time.problem}; ${time.remedy}`)
  }
}

/** Returns a parser of `30s`, `12h`, `7d` to ms, which throws InvalidArgumentError. */
export function durationParser(least = '1ms'): (text: string) => number {
  const field = duration('How long.', least)
  return (text) => {
    const parsed = field.safeParse(text)
    if (parsed.success) return parsed.data
    const [problem = '', remedy = ''] = parsed.error.issues[0]?.message.split('\n') ?? []
    throw new InvalidArgumentError(`It is ${problem}; ${remedy}.`)
  }
}

/**
 * Parses `7d` (ago) or `2026-11-01T12:00Z` (UTC by default) to ms. Throws CommandError, also for
 * the future.
 */
export function parsePastTime(text: string, nowMs: number): number {
  return requireTime(readPastTime(text, nowMs))
}

function requireTime(read: number | Refusal): number {
  if (typeof read === 'number') return read
  throw new CommandError('mistake', `${read.problem}; ${read.remedy}`)
}

export interface PeriodOptions {
  since?: string
  until?: string
}

/** `what`: the event that the time refers to, e.g. `created`. */
export function addPeriodOptions(command: Command, what: string): Command {
  const how = 'how long ago, such as 7d, or a time such as 2026-11-01T12:00Z'
  const since = new Option('--since <time>', `${what} then or later: ${how}`)
  const until = new Option('--until <time>', `${what} then or before; a day counts whole`)
  return command
    .addOption(since.argParser(checkTime(readPastTime)))
    .addOption(until.argParser(checkTime(readPeriodEnd)))
}

/** Milliseconds, both inclusive. */
export interface Period {
  fromMs?: number
  toMs?: number
}

/** Resolves the options as of `asOfMs`. Throws CommandError when --since lies after --until. */
export function resolvePeriod({ since, until }: PeriodOptions, asOfMs: number): Period {
  const fromMs = since === undefined ? undefined : parsePastTime(since, asOfMs)
  const toMs = until === undefined ? undefined : requireTime(readPeriodEnd(until, asOfMs))
  if (fromMs !== undefined && toMs !== undefined && fromMs > toMs) {
    throw new CommandError('mistake', '--since lies after --until; exchange them')
  }
  return { ...(fromMs !== undefined && { fromMs }), ...(toMs !== undefined && { toMs }) }
}

/** The period as the searches filter by it; undefined for an unlimited one. */
export function toRangeFilter({
  fromMs,
  toMs,
}: Period): { gte?: string; lte?: string } | undefined {
  if (fromMs === undefined && toMs === undefined) return undefined
  return {
    ...(fromMs !== undefined && { gte: new Date(fromMs).toISOString() }),
    ...(toMs !== undefined && { lte: new Date(toMs).toISOString() }),
  }
}
