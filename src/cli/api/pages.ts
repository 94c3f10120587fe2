/**
 * Commands that list things of the API, each described by one row: `listCommand` makes the command,
 * fetches pages up to a limit and prints where to continue.
 */
import { Command, InvalidArgumentError, Option } from 'commander'
import { systemClock } from '../../lib/clock.ts'
import { createSecretBox } from '../../lib/sealed-secret.ts'
import type { Context } from '../context.ts'
import { addWideOption, sizeParser, type WideOption } from '../options.ts'
import { CommandError, pluralize } from '../terminal.ts'
import {
  addServiceOptions,
  withRetries,
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
  /** Adds the arguments and options that the command has of its own. */
  options?: (command: Command) => Command
  /** Left out where the API answers with the whole list, so that there are no pages. */
  pageSize?: { usual: number; most: number }
  /** Whether it takes `--reveal`, and the help of it. */
  reveal?: true | string
  /**
   * Checks the command line and reads what is asked for, before anything is opened. Throws
   * CommandError.
   */
  ask: (options: Options, argument?: string | number) => Asked | Promise<Asked>
  /** What must stay the same over a scan; by default what is asked for. */
  scan?: (asked: Asked, options: Options) => unknown
  listing: (options: Options, asked: Asked) => Listing<Row>
  /** `next` is the API's own cursor. */
  fetch: (request: ListRequest<Options, Asked>) => Promise<FetchedList<Row>>
}

export interface ListRequest<Options extends ListOptions, Asked> extends ApiContext {
  context: Context
  options: Options
  asked: Asked
  position: ScanPosition
}

interface FetchedList<Row> extends Omit<FetchedRows<Row>, 'next'> {
  next: string | null | undefined
  /** Where another page size was asked for than that of the request. */
  position?: ScanPosition
}

export interface ListOptions extends ServiceOptions, PagingOptions, SizeOption, RevealOption {}

/** Makes the command of a row. */
export function listCommand<Options extends ListOptions, Asked, Row>(
  context: Context,
  row: ListCommand<Options, Asked, Row>,
): Command {
  const { name, description, options: addOptions, pageSize, reveal } = row
  const command = new Command(name.split(' ').at(-1)).description(description)
  addOptions?.(command)
  if (pageSize) addSizeOption(command, pageSize)
  if (reveal) addRevealOption(command, reveal === true ? undefined : reveal)
  if (pageSize) addPagingOptions(command)
  else addWideOption(command)
  return addServiceOptions(command).action(async () => {
    const given = command.opts<Options>()
    const options = pageSize ? given : { ...given, all: true }
    await printList(context, row, { options, argument: command.processedArgs[0] as string })
  })
}

async function printList<Options extends ListOptions, Asked, Row>(
  context: Context,
  {
    name,
    pageSize,
    ask,
    scan = (asked) => asked,
    listing,
    fetch,
  }: ListCommand<Options, Asked, Row>,
  { options, argument }: { options: Options; argument?: string | number },
): Promise<void> {
  const nowMs = systemClock.now()
  const usual = pageSize?.usual ?? defaultLimit
  const asked = await ask(options, argument)
  await withClient(context, options, (api) =>
    printPages(context, options, {
      listing: listing(options, asked),
      tag: requestTag(api, name, scan(asked, options)),
      async fetch(word) {
        const position = parseScanPosition(word, options, { usual, nowMs })
        const found = await fetch({ ...api, context, options, asked, position })
        return { ...found, next: formatScanPosition(found.position ?? position, found.next) }
      },
    }),
  )
}

export interface PagingOptions extends WideOption {
  limit: number
  all?: boolean
  from?: string
}

export interface FetchedRows<Row> {
  rows: readonly Row[]
  next: string | null
  /** Searches left in the quota, for a search that costs quota. */
  searchesRemaining?: number | undefined
}

const defaultLimit = 20

function addPagingOptions(command: Command): Command {
  return addWideOption(command)
    .addOption(
      new Option('--limit <n>', 'how many at most').argParser(parseLimit).default(defaultLimit),
    )
    .option('--all', 'all there are, page after page')
    .option('--from <place>', 'go on where an earlier answer ended')
}

interface PagedRequest<Row> {
  listing: Listing<Row>
  /** Identifies the scan; from `requestTag`. */
  tag: string
  /** Fetches the page at a cursor; null is the first page. */
  fetch: (from: string | null) => Promise<FetchedRows<Row>>
}

/**
 * Prints page after page. After a failure or interruption it prints how to continue, then throws
 * what `fetch` threw; when standard output is closed it ends without a message.
 */
async function printPages<Row>(
  context: Context,
  options: ServiceOptions & PagingOptions,
  { listing, tag, fetch }: PagedRequest<Row>,
): Promise<void> {
  const { terminal, stop } = context
  const printer = createPrinter(context, options.output, listing, options)
  const max = options.all === true ? Infinity : options.limit
  const aborted = whenAborted(AbortSignal.any([stop, terminal.outputClosed]))
  let position = parsePagePosition(options.from, tag)
  let [shown, pages] = [0, 0]
  stop.addEventListener('abort', stopEarly, { once: true })
  try {
    for (;;) {
      const { cursor, skip } = position
      const ask = (): Promise<FetchedRows<Row>> => fetch(cursor)
      const found = await Promise.race([pages === 0 ? ask() : withRetries(context, ask), aborted])
      if (found === undefined) return
      terminal.progress('')
      pages += 1
      const rows = found.rows.slice(skip, skip + max - shown)
      printer.add(rows)
      shown += rows.length
      const next = nextPosition(position, rows.length, found)
      if (next === null || shown >= max) {
        const text = next && formatPagePosition(next, tag)
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
    const text = formatPagePosition(position, tag)
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
  { cursor, skip }: PagePosition,
  count: number,
  { rows, next }: FetchedRows<unknown>,
): PagePosition | null {
  if (skip + count < rows.length) return { cursor, skip: skip + count }
  return next === null || next === cursor ? null : { cursor: next, skip: 0 }
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

function parseLimit(text: string): number {
  const value = /^\d{1,9}$/.test(text) ? Number(text) : 0
  if (value > 0) return value
  throw new InvalidArgumentError('Write a whole number of at least 1, or --all.')
}

/**
 * What `--from` takes: the cursor of a page, how many of its rows were already shown, and the tag
 * of the scan.
 */

interface PagePosition {
  cursor: string | null
  skip: number
}

/**
 * Tag of a scan: the same for the same command, account and request. It is keyed with the account's
 * API key, so it does not allow anybody else to test guesses at a secret in the request.
 */
export function requestTag({ client }: ApiContext, command: string, request: unknown): string {
  const { name, apiKey } = client.account
  const box = createSecretBox(() => apiKey.reveal())
  return box.digest([command, name, JSON.stringify(request)]).slice(0, tagLength)
}

const tagLength = 10

/** `<tag>.<skip>.<cursor>`. */
export function formatPagePosition({ cursor, skip }: PagePosition, tag: string): string {
  return `${tag}.${skip}.${cursor ?? ''}`
}

/** Also accepts a bare cursor of the API. Throws CommandError for a position in another scan. */
export function parsePagePosition(text: string | undefined, tag: string): PagePosition {
  if (text === undefined) return { cursor: null, skip: 0 }
  const [, givenTag, skip, cursor = ''] = /^([0-9a-f]{10})\.(\d{1,6})\.(.*)$/s.exec(text) ?? []
  if (givenTag === undefined) return { cursor: text, skip: 0 }
  if (givenTag !== tag) throw new CommandError('mistake', foreignPosition)
  return { cursor: cursor === '' ? null : cursor, skip: Number(skip) }
}

const foreignPosition =
  '--from belongs to another request; repeat the one that gave it, with the same account, filters and order'

/**
 * Position in a scan, as one word for `--from`. Only the cursor may change within a scan
 * (docs/api-notes.md, Cursors and order), so the word also holds the page size and the time from
 * which `7d` counts back.
 */

export interface ScanPosition {
  asOfMs: number
  size: number
  /** As the API returned it; null: at the beginning. */
  cursor: string | null
}

export interface SizeOption {
  size?: number
}

function addSizeOption(
  command: Command,
  { usual, most }: { usual: number; most: number },
): Command {
  const range = `1 to ${most}`
  const says = `how many are asked for at once, ${range} (default: ${usual}, or --limit if that is less)`
  return command.addOption(new Option('--size <n>', says).argParser(sizeParser(most)))
}

/** Also accepts a bare cursor of the API. Throws CommandError. */
export function parseScanPosition(
  text: string | null,
  options: PagingOptions & SizeOption,
  { usual, nowMs }: { usual: number; nowMs: number },
): ScanPosition {
  const wanted = options.size ?? usual
  const size = options.all === true ? wanted : Math.min(wanted, options.limit)
  if (text === null) return { asOfMs: nowMs, size, cursor: null }
  const [, asOf, pageSize, cursor] = /^([0-9a-z]{6,9})-(\d{1,5})-(.+)$/s.exec(text) ?? []
  if (asOf === undefined || cursor === undefined) return { asOfMs: nowMs, size, cursor: text }
  // A smaller page than --size allows comes from --limit, or from retries after a timeout.
  if (options.size !== undefined && Number(pageSize) > options.size)
    throw sizeMismatch(Number(pageSize))
  return { asOfMs: parseInt(asOf, 36), size: Number(pageSize), cursor: unescapeCursor(cursor) }
}

/**
 * Formats what `parseScanPosition` reads, without characters that are special to a shell or
 * terminal.
 */
export function formatScanPosition(
  { asOfMs, size }: ScanPosition,
  next: string | null | undefined,
): string | null {
  if (next === null || next === undefined) return null
  const cursor = encodeURIComponent(next.toWellFormed()).replaceAll("'", '%27')
  return `${asOfMs.toString(36)}-${size}-${cursor}`
}

function sizeMismatch(held: number): CommandError {
  return new CommandError(
    'mistake',
    `--from belongs to a search in pages of ${held}; leave --size out, or begin again without --from`,
  )
}

function unescapeCursor(cursor: string): string {
  try {
    return decodeURIComponent(cursor)
  } catch {
    throw new CommandError('mistake', '--from is cut or changed; copy it again')
  }
}
