/**
 * Commands that list things of the API, each described by one row. `listCommand` makes the command,
 * fetches pages up to a limit and prints where to continue.
 */
import { Command, Option } from 'commander'
import type { Context } from '../context.ts'
import { sizeParser } from '../options.ts'
import { pluralize, sanitize } from '../terminal.ts'
import {
  addServiceOptions,
  type ApiContext,
  type ServiceOptions,
  withClient,
} from './api-command.ts'
import {
  addRevealOption,
  createPrinter,
  type Listing,
  type Printer,
  type RevealOption,
} from './listing.ts'

/** A command that prints a list of the API. */
interface ListCommand<Options extends ListOptions, Asked, Row> {
  /** Such as `credentials search`. */
  name: string
  description: string
  /** Adds the options that the command has of its own. */
  options?: (command: Command) => Command
  /** Left out where the API answers with the whole list, so that there are no pages. */
  pageSize?: number
  /** Whether it takes `--reveal`. */
  reveal?: true
  /**
   * Checks the command line and reads what is asked for, before anything is opened; pages differ in
   * the cursor and size alone. Throws CommandError.
   */
  ask: (options: Options) => Asked | Promise<Asked>
  listing: (options: Options, asked: Asked) => Listing<Row>
  fetch: (request: ListRequest<Options, Asked>) => Promise<FetchedRows<Row>>
}

export interface ListRequest<Options extends ListOptions, Asked> extends ApiContext {
  context: Context
  options: Options
  asked: Asked
  position: ListPosition
}

interface ListPosition {
  size: number
  /** As the API returned it; null: at the beginning. */
  cursor: string | null
}

export interface FetchedRows<Row> {
  rows: readonly Row[]
  /** The API's own cursor. */
  next: string | null | undefined
  /** Searches left in the quota, for a search that costs quota. */
  searchesRemaining?: number | undefined
}

export interface ListOptions extends ServiceOptions, RevealOption {
  limit: number
  all?: boolean
  from?: string
}

/** Makes the command of a row. */
export function listCommand<Options extends ListOptions, Asked, Row>(
  context: Context,
  row: ListCommand<Options, Asked, Row>,
): Command {
  const { name, description, options: addOptions, pageSize, reveal } = row
  const command = new Command(name.split(' ').at(-1)).description(description)
  addOptions?.(command)
  if (reveal) addRevealOption(command)
  if (pageSize !== undefined) addPagingOptions(command)
  return addServiceOptions(command, ['text', 'json', 'ndjson']).action((given: Options) =>
    printList(context, row, pageSize === undefined ? { ...given, all: true } : given),
  )
}

function addPagingOptions(command: Command): Command {
  return command
    .option('--limit <n>', 'how many at most', sizeParser(mostLimit), 20)
    .addOption(new Option('--all', 'all there are, page after page').conflicts('limit'))
    .option('--from <cursor>', 'go on where an earlier answer ended')
}

const mostLimit = 1_000_000

/**
 * Asks for page after page, the last one no larger than what is left of the limit. After a failure
 * or interruption it prints how to continue, then throws what `fetch` threw; when standard output is
 * closed it ends without a message.
 */
async function printList<Options extends ListOptions, Asked, Row>(
  context: Context,
  row: ListCommand<Options, Asked, Row>,
  options: Options,
): Promise<void> {
  const { ask, listing, fetch, pageSize = Infinity } = row
  const asked = await ask(options)
  const max = options.all === true ? Infinity : options.limit
  await withClient(context, options, (api) =>
    printPages(context, {
      printer: createPrinter(context, options.output, listing(options, asked)),
      from: options.from ?? null,
      max,
      fetch: (cursor, left) => {
        const position = { cursor, size: Math.min(pageSize, left) }
        return fetch({ ...api, context, options, asked, position })
      },
    }),
  )
}

interface PagedRequest<Row> {
  printer: Printer<Row>
  from: string | null
  max: number
  fetch: (cursor: string | null, left: number) => Promise<FetchedRows<Row>>
}

async function printPages<Row>(
  { terminal, stop }: Context,
  { printer, from, max, fetch }: PagedRequest<Row>,
): Promise<void> {
  const aborted = whenAborted(AbortSignal.any([stop, terminal.outputClosed]))
  let cursor = from
  let [shown, pages] = [0, 0]
  stop.addEventListener('abort', stopEarly, { once: true })
  try {
    for (;;) {
      const found = await Promise.race([fetch(cursor, max - shown), aborted])
      if (found === undefined) return
      terminal.progress('')
      pages += 1
      printer.add(found.rows)
      shown += found.rows.length
      const { next = null, searchesRemaining } = found
      const isEnd = next === null || next === cursor
      if (isEnd || shown >= max) {
        printer.end(isEnd ? null : next)
        return printRemaining(terminal, isEnd ? null : next, searchesRemaining)
      }
      cursor = next
      if (!terminal.isInteractive) terminal.progress(`${pluralize(shown, 'row')} so far`)
    }
  } catch (error) {
    terminal.progress('')
    if (!stop.aborted) stopEarly()
    throw error
  } finally {
    stop.removeEventListener('abort', stopEarly)
  }

  function stopEarly(): void {
    if (pages === 0) return
    terminal.progress('')
    printer.stopEarly(cursor)
    terminal.printError(`${pluralize(shown, 'row')} shown; go on with ${fromOption(cursor ?? '')}`)
  }
}

function whenAborted(signal: AbortSignal): Promise<undefined> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve(undefined)
    signal.addEventListener('abort', () => resolve(undefined), { once: true })
  })
}

function printRemaining(
  terminal: Context['terminal'],
  next: string | null,
  searches: number | undefined,
): void {
  if (searches !== undefined) {
    const left = pluralize(searches, 'global search', 'global searches')
    terminal.printError(`${left} left this month`)
  }
  if (next !== null) terminal.printError(`there is more: ${fromOption(next)}`)
}

/** As a shell takes it. */
function fromOption(cursor: string): string {
  return `--from '${sanitize(cursor, 2_000).replaceAll("'", String.raw`'\''`)}'`
}
