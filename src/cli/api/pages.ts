/**
 * Commands that list things of the API, each described by one row: `listCommand` makes the command,
 * fetches pages up to a limit and prints where to continue.
 */
import { Command, Option } from 'commander'
import { z } from 'zod'
import { systemClock } from '../../lib/clock.ts'
import { createSecretBox } from '../../lib/sealed-secret.ts'
import type { Context } from '../context.ts'
import { addWideOption, sizeParser, type WideOption } from '../options.ts'
import { CommandError, pluralize } from '../terminal.ts'
import {
  addServiceOptions,
  type ApiContext,
  type ServiceOptions,
  withClient,
} from './api-command.ts'
import { addRevealOption, createPrinter, type Listing, type RevealOption } from './listing.ts'

/** A command that prints a list of the API. */
interface ListCommand<Options extends ListOptions, Asked, Row> {
  /** `credentials search`; its scans are tagged with it. */
  name: string
  description: string
  /** Adds the options that the command has of its own. */
  options?: (command: Command) => Command
  /** Left out where the API answers with the whole list, so that there are no pages. */
  pageSize?: { usual: number; most: number }
  /** Whether it takes `--reveal`. */
  reveal?: true
  /**
   * Checks the command line and reads what is asked for, before anything is opened; it must stay the
   * same over a scan. Throws CommandError.
   */
  ask: (options: Options) => Asked | Promise<Asked>
  listing: (options: Options, asked: Asked) => Listing<Row>
  fetch: (request: ListRequest<Options, Asked>) => Promise<FetchedRows<Row>>
}

export interface ListRequest<Options extends ListOptions, Asked> extends ApiContext {
  context: Context
  options: Options
  asked: Asked
  position: ScanPosition
}

export interface FetchedRows<Row> {
  rows: readonly Row[]
  /** The API's own cursor. */
  next: string | null | undefined
  /** Searches left in the quota, for a search that costs quota. */
  searchesRemaining?: number | undefined
}

export interface ListOptions extends ServiceOptions, WideOption, RevealOption {
  limit: number
  all?: boolean
  from?: string
  size?: number
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
  addWideOption(command)
  if (pageSize) addPagingOptions(command, pageSize)
  return addServiceOptions(command).action((given: Options) =>
    printList(context, row, pageSize ? given : { ...given, all: true }),
  )
}

async function printList<Options extends ListOptions, Asked, Row>(
  context: Context,
  row: ListCommand<Options, Asked, Row>,
  options: Options,
): Promise<void> {
  const asOfMs = systemClock.now()
  const { name, pageSize, ask, listing, fetch } = row
  const asked = await ask(options)
  const size = options.size ?? pageSize?.usual ?? defaultLimit
  await withClient(context, options, (api) => {
    const tag = requestTag(api, name, asked)
    const start: ScanPosition =
      options.from === undefined
        ? {
            asOfMs,
            size: options.all ? size : Math.min(size, options.limit),
            skip: 0,
            cursor: null,
          }
        : parsePosition(options.from, tag)
    return printPages(context, options, {
      listing: listing(options, asked),
      tag,
      start,
      fetch: (position) => fetch({ ...api, context, options, asked, position }),
    })
  })
}

const defaultLimit = 20

const mostLimit = 1_000_000

function addPagingOptions(
  command: Command,
  { usual, most }: { usual: number; most: number },
): Command {
  const says = `how many are asked for at once, 1 to ${most} (default: ${usual}, or --limit if that is less)`
  return command
    .option('--size <n>', says, sizeParser(most))
    .option('--limit <n>', 'how many at most', sizeParser(mostLimit), defaultLimit)
    .addOption(new Option('--all', 'all there are, page after page').conflicts('limit'))
    .option('--from <place>', 'go on where an earlier answer ended')
}

interface PagedRequest<Row> {
  listing: Listing<Row>
  /** Identifies the scan; from `requestTag`. */
  tag: string
  start: ScanPosition
  fetch: (position: ScanPosition) => Promise<FetchedRows<Row>>
}

/**
 * Prints page after page. After a failure or interruption it prints how to continue, then throws
 * what `fetch` threw; when standard output is closed it ends without a message.
 */
async function printPages<Row>(
  context: Context,
  options: ListOptions,
  { listing, tag, start, fetch }: PagedRequest<Row>,
): Promise<void> {
  const { terminal, stop } = context
  const printer = createPrinter(context, options.output, listing, options)
  const max = options.all === true ? Infinity : options.limit
  const aborted = whenAborted(AbortSignal.any([stop, terminal.outputClosed]))
  let position = start
  let [shown, pages] = [0, 0]
  stop.addEventListener('abort', stopEarly, { once: true })
  try {
    for (;;) {
      const { skip } = position
      const found = await Promise.race([fetch(position), aborted])
      if (found === undefined) return
      terminal.progress('')
      pages += 1
      const rows = found.rows.slice(skip, skip + max - shown)
      printer.add(rows)
      shown += rows.length
      const next = nextPosition(position, rows.length, found)
      if (next === null || shown >= max) {
        const text = next && formatPosition(next, tag)
        printer.end(text)
        return printRemaining(terminal, text, found.searchesRemaining)
      }
      position = next
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
    const text = formatPosition(position, tag)
    terminal.progress('')
    printer.stopEarly(text)
    terminal.printError(`${pluralize(shown, 'row')} shown; go on with --from '${text}'`)
  }
}

function whenAborted(signal: AbortSignal): Promise<undefined> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve(undefined)
    signal.addEventListener('abort', () => resolve(undefined), { once: true })
  })
}

/** Position after `count` rows of the page at the given position were shown; null at the end. */
function nextPosition(
  position: ScanPosition,
  count: number,
  { rows, next }: FetchedRows<unknown>,
): ScanPosition | null {
  const skip = position.skip + count
  if (skip < rows.length) return { ...position, skip }
  const isEnd = next === null || next === undefined || next === position.cursor
  return isEnd ? null : { ...position, skip: 0, cursor: next }
}

function printRemaining(
  terminal: Context['terminal'],
  position: string | null,
  searches: number | undefined,
): void {
  if (searches !== undefined) {
    const left = pluralize(searches, 'global search', 'global searches')
    terminal.printError(`${left} left this month`)
  }
  if (position !== null) terminal.printError(`there is more: --from '${position}'`)
}

/**
 * Where a scan is. Only the cursor may change within a scan (docs/api-notes.md, Cursors and order),
 * so `--from` also holds the page size and the time from which `7d` counts back.
 */
export interface ScanPosition {
  asOfMs: number
  size: number
  /** How many rows of the page were shown already. */
  skip: number
  /** As the API returned it; null: at the beginning. */
  cursor: string | null
}

/**
 * Tag of a scan: the same for the same command, account and request. It is keyed with the account's
 * API key, so it does not allow anybody else to test guesses at a secret in the request.
 */
export function requestTag({ client }: ApiContext, command: string, request: unknown): string {
  const { name, apiKey } = client.account
  const box = createSecretBox(() => apiKey.reveal())
  return box.digest([command, name, JSON.stringify(request)]).slice(0, 10)
}

/** One word, without characters that are special to a shell or terminal. */
export function formatPosition({ asOfMs, size, skip, cursor }: ScanPosition, tag: string): string {
  return Buffer.from(JSON.stringify([tag, asOfMs, size, skip, cursor])).toString('base64url')
}

const count = z.int().min(0)
const positionShape = z.tuple([z.string(), count, count.min(1), count, z.string().nullable()])

/** Throws CommandError for a position of another scan, and for what is none. */
export function parsePosition(text: string, tag: string): ScanPosition {
  const [givenTag, asOfMs, size, skip, cursor] = decodePosition(text)
  if (givenTag === tag) return { asOfMs, size, skip, cursor }
  const remedy = 'repeat the one that gave it, with the same account and filters'
  throw new CommandError('mistake', `--from belongs to another request; ${remedy}`)
}

function decodePosition(text: string): z.infer<typeof positionShape> {
  try {
    return positionShape.parse(JSON.parse(Buffer.from(text, 'base64url').toString()))
  } catch {
    throw new CommandError('mistake', '--from is cut or changed; copy it again')
  }
}
