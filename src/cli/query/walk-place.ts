/**
 * Where a walk stands, as one word for `--from`. Of a walk nothing but the cursor may change (facts.md
 * 2.3), so the word says too what `7d` ago counts from, and how large the pages are.
 */
import { Option, type Command } from 'commander'
import { CommandError } from '../command-error.ts'
import { sizeUpTo } from './option-values.ts'
import type { PagingOptions } from './print-pages.ts'

export interface WalkPlace {
  asOfMs: number
  size: number
  /** As the service gave it; null: at the beginning. */
  cursor: string | null
}

export interface SizeOption {
  size?: number
}

export function addSizeOption(
  command: Command,
  { usual, most, mostInWords }: { usual: number; most: number; mostInWords?: string },
): Command {
  const range = mostInWords ?? `1 to ${most}`
  const says = `how many are asked for at once, ${range} (default: ${usual}, or --limit if that is less)`
  return command.addOption(new Option('--size <n>', says).argParser(sizeUpTo(most)))
}

/** A cursor that an answer of the service itself held is a word too. Throws CommandError. */
export function placeAt(
  word: string | null,
  options: PagingOptions & SizeOption,
  { usual, nowMs }: { usual: number; nowMs: number },
): WalkPlace {
  const asked = options.size ?? usual
  const size = options.all === true ? asked : Math.min(asked, options.limit)
  if (word === null) return { asOfMs: nowMs, size, cursor: null }
  const [, asOf, held, cursor] = /^([0-9a-z]{6,9})-(\d{1,5})-(.+)$/s.exec(word) ?? []
  if (asOf === undefined || cursor === undefined) return { asOfMs: nowMs, size, cursor: word }
  // smaller pages than --size allows come from --limit, or from a service that was too slow
  if (options.size !== undefined && Number(held) > options.size) throw otherSize(Number(held))
  return { asOfMs: parseInt(asOf, 36), size: Number(held), cursor: decoded(cursor) }
}

/** What `placeAt` reads; nothing in it means anything to a shell or a terminal. */
export function wordOfNext(
  { asOfMs, size }: WalkPlace,
  next: string | null | undefined,
): string | null {
  if (next === null || next === undefined) return null
  const cursor = encodeURIComponent(next.toWellFormed()).replaceAll("'", '%27')
  return `${asOfMs.toString(36)}-${size}-${cursor}`
}

function otherSize(held: number): CommandError {
  return new CommandError(
    'mistake',
    `--from belongs to a search in pages of ${held}; leave --size out, or begin again without --from`,
  )
}

function decoded(cursor: string): string {
  try {
    return decodeURIComponent(cursor)
  } catch {
    throw new CommandError('mistake', '--from is cut or changed; copy it again')
  }
}
