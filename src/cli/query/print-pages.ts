/** Page after page of what a command asked for, until there is enough; what is left can be asked for later. */
import { InvalidArgumentError, Option, type Command } from 'commander'
import type { Context } from '../context.ts'
import { counted } from '../words.ts'
import { createPrinter, type Listing } from './listing.ts'
import { placeIn, wordOf, type PagePlace } from './page-place.ts'
import { askAgain } from './passing-failure.ts'
import type { ServiceOptions } from './service-command.ts'

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

export interface Walk<Row> {
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
