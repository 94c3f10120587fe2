/** Page after page of what a command asked for, until there is enough; what is left can be asked for later. */
import { type Command, InvalidArgumentError, Option } from 'commander'
import { createSecretBox } from '../../lib/sealed-secret.ts'
import type { Context } from '../context.ts'
import { sizeUpTo } from '../options.ts'
import { CommandError, counted, jsonText } from '../terminal.ts'
import { askAgain, type OpenService, type ServiceOptions } from './api-command.ts'
import { createPrinter, type Listing } from './listing.ts'

export interface PagingOptions {
  limit: number
  all?: boolean
  from?: string
}

export interface FetchedRows<Row> {
  rows: readonly Row[]
  next: string | null
  /** Of a search that costs quota. */
  searchesRemaining?: number | undefined
}

const usualLimit = 20

export function addPagingOptions(command: Command): Command {
  return command
    .addOption(
      new Option('--limit <n>', 'how many at most').argParser(aboveZero).default(usualLimit),
    )
    .option('--all', 'all there are, page after page')
    .option('--from <place>', 'go on where an earlier answer ended')
}

interface Walk<Row> {
  listing: Listing<Row>
  /** Of what is walked through, by `walkMark`. */
  mark: string
  /** Of a page, the place of the first being null. */
  fetch: (from: string | null) => Promise<FetchedRows<Row>>
}

/**
 * Prints page after page. Where a failure or an interruption ends it early, it says how to go on, before
 * it throws what `fetch` threw; where nobody reads any longer it ends quietly.
 */
export async function printPages<Row>(
  context: Context,
  options: ServiceOptions & PagingOptions,
  { listing, mark, fetch }: Walk<Row>,
): Promise<void> {
  const { terminal, stop } = context
  const printer = createPrinter(context, options.output, listing)
  const most = options.all === true ? Infinity : options.limit
  const ended = abortOf(AbortSignal.any([stop, terminal.unheard]))
  let place = placeIn(options.from, mark)
  let [shown, pages] = [0, 0]
  stop.addEventListener('abort', breakOff, { once: true })
  try {
    for (;;) {
      const { cursor, skip } = place
      const ask = (): Promise<FetchedRows<Row>> => fetch(cursor)
      const found = await Promise.race([pages === 0 ? ask() : askAgain(context, ask), ended])
      if (found === undefined) return
      terminal.progress('')
      pages += 1
      const taken = found.rows.slice(skip, skip + most - shown)
      printer.add(taken)
      shown += taken.length
      const next = placeAfter(place, taken.length, found)
      if (next === null || shown >= most) {
        const word = next && wordOf(next, mark)
        printer.end(word)
        return sayWhatIsLeft(terminal, word, found.searchesRemaining)
      }
      place = next
      if (!terminal.isWatched) terminal.progress(`${counted(shown, 'row')} so far`)
    }
  } catch (error) {
    terminal.progress('')
    if (!stop.aborted) breakOff()
    throw error
  } finally {
    stop.removeEventListener('abort', breakOff)
  }

  function breakOff(): void {
    if (pages === 0) return
    const word = wordOf(place, mark)
    terminal.progress('')
    printer.breakOff(word)
    terminal.complain(`${counted(shown, 'row')} shown; go on with --from '${word}'`)
  }
}

function abortOf(signal: AbortSignal): Promise<undefined> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve(undefined)
    signal.addEventListener('abort', () => resolve(undefined), { once: true })
  })
}

/** Once `count` rows of the page at a place were shown; null: that was all. */
function placeAfter(
  { cursor, skip }: PagePlace,
  count: number,
  { rows, next }: FetchedRows<unknown>,
): PagePlace | null {
  if (skip + count < rows.length) return { cursor, skip: skip + count }
  return next === null || next === cursor ? null : { cursor: next, skip: 0 }
}

function sayWhatIsLeft(
  terminal: Context['terminal'],
  word: string | null,
  searches: number | undefined,
): void {
  if (searches !== undefined) {
    const left = counted(searches, 'global search', 'global searches')
    terminal.complain(`${left} left this month`)
  }
  if (word !== null) terminal.complain(`there is more: --from '${word}'`)
}

function aboveZero(text: string): number {
  const value = /^\d{1,9}$/.test(text) ? Number(text) : 0
  if (value > 0) return value
  throw new InvalidArgumentError('Write a whole number of at least 1, or --all.')
}

/**
 * What `--from` takes: a page of the service by its cursor, how many of its rows were shown already, and
 * the mark of the walk that it belongs to.
 */

interface PagePlace {
  cursor: string | null
  skip: number
}

/**
 * Stands for what is walked through: the same for the same command, account and request. Whoever has it
 * cannot test a guess at a secret in the request: that takes the account's key.
 */
export function walkMark({ client }: OpenService, command: string, request: unknown): string {
  const { name, apiKey } = client.account
  const box = createSecretBox(() => apiKey.reveal())
  return box.digest([command, name, JSON.stringify(request)]).slice(0, markLength)
}

const markLength = 10

/** `<mark>.<skip>.<cursor>`. */
export function wordOf({ cursor, skip }: PagePlace, mark: string): string {
  return `${mark}.${skip}.${cursor ?? ''}`
}

/** A cursor of the service by itself is a place too. Throws CommandError for one of another walk. */
export function placeIn(word: string | undefined, mark: string): PagePlace {
  if (word === undefined) return { cursor: null, skip: 0 }
  const [, of, skip, cursor = ''] = /^([0-9a-f]{10})\.(\d{1,6})\.(.*)$/s.exec(word) ?? []
  if (of === undefined) return { cursor: word, skip: 0 }
  if (of !== mark) throw new CommandError('mistake', ofAnother)
  return { cursor: cursor === '' ? null : cursor, skip: Number(skip) }
}

const ofAnother =
  '--from belongs to another request; repeat the one that gave it, with the same account, filters and order'

/**
 * Where a walk stands, as one word for `--from`. Only the cursor may change within a walk (docs/api-notes.md,
 * Cursors and order), so the word also holds the time that `7d` counts from, and the page size.
 */

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

/** One thing of the service: JSON as the service answered it, every other form as a listing has it. */
export function printOne<Row>(
  context: Context,
  { output }: Pick<ServiceOptions, 'output'>,
  listing: Listing<Row>,
  row: Row,
): void {
  if (output === 'json') {
    context.terminal.print(jsonText(listing.json(row), 2))
    return
  }
  const printer = createPrinter(context, output, listing)
  printer.add([row])
  printer.end(null)
}
