import { Command } from 'commander'
import type { Config } from '../config/config.ts'
import { polledFeeds } from '../daemon/polled-feeds.ts'
import type { PolledFeed } from '../feed-types/feed-type.ts'
import { sweepDueMs } from '../feeds/rescan.ts'
import type { Book } from '../store/account-ledger.ts'
import {
  type FeedState,
  listQuarantined,
  peekFeed,
  type QuarantineEntry,
  type ReplayOutcome,
  replayQuarantined,
} from '../store/feed-state.ts'
import { redisNow } from '../redis/scripts.ts'
import {
  addCommonOptions,
  askFirst,
  type CommonOptions,
  type Context,
  loadConfigFile,
  print,
} from './context.ts'
import { bookOf, findBook, type OpenLedger, withLedger } from './open-ledger.ts'
import { fromOne } from './options.ts'
import {
  CommandError,
  counted,
  findNamed,
  harmless,
  isoTime,
  spanInWords,
  table,
  timeInWords,
} from './terminal.ts'

export function quarantineCommand(context: Context): Command {
  const list = addCommonOptions(new Command('list'))
    .description('what could not be read as an event, newest first')
    .option('--feed <name>', 'only what this feed showed')
    .option('--account <name>', 'only of this account')
    .option('--limit <n>', 'how many on a page', fromOne, 20)
    .option('--page <n>', 'which page', fromOne, 1)
    .action((options: ListOptions) => listEntries(context, options))
  const show = addCommonOptions(new Command('show'))
    .description('one item: what is wrong with it, what is kept of it, and what to do')
    .argument('<id>', 'as list shows it, or how it begins')
    .action((id: string, options: CommonOptions) => showEntry(context, id, options))
  const replay = addCommonOptions(new Command('replay'))
    .description('forget items, so that they are read anew when their feed shows them again')
    .argument('[ids...]', 'as list shows them, or how they begin')
    .option('--all', 'every one')
    .option('--feed <name>', 'with --all: those that this feed showed')
    .option('--yes', 'do not ask')
    .action((ids: string[], options: ReplayOptions) => replayEntries(context, ids, options))
  return new Command('quarantine').addCommand(list).addCommand(show).addCommand(replay)
}

export interface ListOptions extends CommonOptions {
  feed?: string
  account?: string
  limit: number
  page: number
}

export async function listEntries(context: Context, options: ListOptions): Promise<void> {
  const { config } = loadConfigFile(context, options.config)
  const { feed, account, page, limit } = options
  const entries = await withLedger(config, (ledger) => {
    const asked = account === undefined ? ledger.books : [findBook(ledger, account)]
    return entriesOf(asked, config, feed)
  })
  const total = entries.length
  const shown = entries.slice((page - 1) * limit, page * limit)
  print(context, options, {
    json: { total, page, limit, items: shown.map(entryJson) },
    lines: () => listLines(shown, { total, page, limit }),
  })
}

/** Without what is kept of the item. */
export function entryJson(entry: QuarantineEntry): Record<string, unknown> {
  const { id, account, feed, atMs, uid, problem, markedBy } = entry
  const canReplay = markedBy.length > 0
  return { id, account, feed, at: isoTime(atMs), uid, problem, can_replay: canReplay }
}

function listLines(
  entries: readonly QuarantineEntry[],
  { total, page, limit }: { total: number; page: number; limit: number },
): string[] {
  if (total === 0) return ['There is nothing in the quarantine.']
  const pages = Math.ceil(total / limit)
  const rows = entries.map((entry) => [
    shortId(entry),
    timeInWords(entry.atMs),
    entry.feed,
    entry.uid === null ? '-' : harmless(entry.uid, 100),
    harmless(entry.problem, 200),
  ])
  return [
    ...table([['id', 'set aside', 'feed', 'uid', 'problem'], ...rows]),
    `page ${page} of ${pages}, ${counted(total, 'quarantined item')} in all${page < pages ? `; more with --page ${page + 1}` : ''}`,
  ]
}

export async function showEntry(
  context: Context,
  given: string,
  options: CommonOptions,
): Promise<void> {
  const { config } = loadConfigFile(context, options.config)
  const { entry, endsMs, readings } = await withLedger(config, async (ledger) => {
    const found = await entryById(ledger, given)
    const { retention } = bookOf(ledger, found.account)
    return {
      entry: found,
      endsMs: found.atMs + retention.story,
      readings: await nextReadings(ledger, config, feedsOf(found)),
    }
  })
  print(context, options, {
    json: {
      ...entryJson(entry),
      kept: entry.raw,
      ends_at: isoTime(endsMs),
      next: readings.map(readingJson),
    },
    lines: () => [...entryLines(entry), `  ${closingWords(entry, endsMs)}`, ...remedy()],
  })

  function remedy(): string[] {
    return [
      '',
      'If the service has mended it, or a newer Tocsin can read it, it is taken in as soon as it is read again.',
      ...readings.map(({ said }) => said),
      entry.markedBy.length > 0
        ? `To have it set aside anew if it is still malformed: tocsin quarantine replay ${shortId(entry)}`
        : `It cannot be replayed: ${unmarkedHelp}`,
    ]
  }
}

function entryLines({ id, account, feed, atMs, uid, problem, raw }: QuarantineEntry): string[] {
  return [
    `quarantined item ${id}`,
    `  set aside ${timeInWords(atMs)} by the feed ${feed}, account ${account}; nothing was sent`,
    `  problem: ${harmless(problem)}`,
    `  uid: ${uid === null ? 'none could be read' : harmless(uid, 600)}`,
    `  what is kept, secrets masked: ${harmless(raw, maxKeptShown)}`,
  ]
}

/** For people; as JSON it is whole. */
const maxKeptShown = 4_000

function closingWords({ uid }: QuarantineEntry, endsMs: number): string {
  const parsed = uid === null ? '' : 'when its uid comes in an item that reads, '
  return `it closes by itself ${parsed}when a thousand newer ones have come, or after ${timeInWords(endsMs)} (retention.story)`
}

/**
 * Replays malformed items. What is kept of one is masked and cut, so it is not read from there: the entry
 * and its marks are forgotten, and the feed reads the item itself when the service shows it again.
 */

export interface ReplayOptions extends CommonOptions {
  all?: true
  feed?: string
  yes?: true
}

interface Replayed {
  done: number
  failed: { id: string; outcome: ReplayOutcome }[]
}

export async function replayEntries(
  context: Context,
  ids: string[],
  options: ReplayOptions,
): Promise<void> {
  refuseHalfAChoice(ids, options)
  const { config } = loadConfigFile(context, options.config)
  const { replayed, next } = await withLedger(config, async (ledger) => {
    const chosen = await choose(ledger, config, ids, options)
    const marked = chosen.filter(({ markedBy }) => markedBy.length > 0)
    const readings = await nextReadings(ledger, config, [...new Set(marked.flatMap(feedsOf))])
    if (marked.length > 0 && !options.yes) {
      const count = counted(marked.length, 'quarantined item')
      const told = `${count} will be forgotten here, and set aside anew if still malformed.`
      await askFirst(context, [told, ...readings.map(({ said }) => said)])
    }
    return { replayed: await replayAll(ledger, chosen), next: readings }
  })
  print(context, options, {
    json: {
      replayed: replayed.done,
      failed: replayed.failed,
      next: next.map(readingJson),
    },
    lines: () => [
      `replayed ${counted(replayed.done, 'quarantined item')}`,
      ...(replayed.done > 0 ? next.map(({ said }) => said) : []),
      ...replayed.failed.map(({ id, outcome }) => `${id}: ${failureWords(outcome)}`),
    ],
  })
  if (replayed.failed.length > 0) context.exitCode = 1
}

function refuseHalfAChoice(ids: string[], { all, feed }: ReplayOptions): void {
  const isMixed = ids.length > 0 && (all ?? feed) !== undefined
  if (isMixed || (ids.length === 0 && all === undefined)) {
    throw new CommandError(
      'mistake',
      'name quarantined items by their ids, or all of them by --all, of one feed by --all --feed <name>',
    )
  }
}

async function choose(
  ledger: OpenLedger,
  config: Config,
  ids: string[],
  { feed }: ReplayOptions,
): Promise<QuarantineEntry[]> {
  if (ids.length === 0) return entriesOf(ledger.books, config, feed)
  const chosen = new Map<string, QuarantineEntry>()
  for (const given of ids) {
    const entry = await entryById(ledger, given)
    chosen.set(entry.id, entry)
  }
  return [...chosen.values()]
}

async function replayAll(
  ledger: OpenLedger,
  chosen: readonly QuarantineEntry[],
): Promise<Replayed> {
  const replayed: Replayed = { done: 0, failed: [] }
  for (const entry of chosen) {
    const outcome = await replayQuarantined(bookOf(ledger, entry.account), entry.id)
    if (outcome === 'done') replayed.done += 1
    else replayed.failed.push({ id: shortId(entry), outcome })
  }
  return replayed
}

function failureWords(outcome: ReplayOutcome): string {
  return outcome === 'no_mark'
    ? unmarkedHelp
    : 'it is no longer in the quarantine: it was replayed, or reads by now'
}

/** Which items of the quarantine a command speaks of. */

/** Enough to be unique among the few thousand that there can be. */
export function shortId({ id }: QuarantineEntry): string {
  return id.slice(0, 12)
}

/**
 * All of the books, or what one feed showed, newest first; also of a feed that the configuration no
 * longer has. Throws CommandError.
 */
export async function entriesOf(
  books: readonly Book[],
  { feeds }: Config,
  feed: string | undefined,
): Promise<QuarantineEntry[]> {
  const inBooks = await Promise.all(books.map((book) => listQuarantined(book)))
  const entries = inBooks.flat().toSorted((left, right) => right.atMs - left.atMs)
  if (feed === undefined) return entries
  const names = new Set([...feeds.map(({ name }) => name), ...entries.flatMap(feedsOf)])
  findNamed(
    [...names].map((name) => ({ name })),
    feed,
    'feed',
  )
  return entries.filter((entry) => feedsOf(entry).includes(feed))
}

/** Every feed that is known to have shown the item. */
export function feedsOf({ feed, markedBy }: QuarantineEntry): string[] {
  return [...new Set([feed, ...markedBy])]
}

/** By its id or a beginning of it. Throws CommandError. */
export async function entryById({ books }: OpenLedger, given: string): Promise<QuarantineEntry> {
  if (!/^[0-9a-f]{4,24}$/i.test(given)) {
    const remedy = 'take one from "quarantine list", four characters of it at least'
    throw new CommandError('mistake', `"${given}" is not the id of a quarantined item; ${remedy}`)
  }
  const prefix = given.toLowerCase()
  const inBooks = await Promise.all(books.map((book) => listQuarantined(book, prefix)))
  const [found, ...others] = inBooks.flat()
  if (found === undefined) {
    throw new CommandError(
      'refused',
      `there is no quarantined item ${given}: it was replayed, or closed because it reads by now, or its time is over`,
    )
  }
  if (others.length === 0) return found
  const ids = [found, ...others].map(({ id }) => id).join(', ')
  throw new CommandError('mistake', `"${given}" begins more than one id; write more of it: ${ids}`)
}

/** Of an entry whose marks are unknown: it stays, and nothing is lost by that. */
export const unmarkedHelp =
  'an older version of Tocsin set it aside and kept no mark of it; leave it: if it reads by now, the next sweep takes it in all the same'

/** What reads a feed's past again, and when: its next sweep, or the operator. */

export interface NextReading {
  feed: string
  /** undefined: no sweep is to be expected as things stand. */
  sweepDueMs: number | undefined
  /** A sentence. */
  said: string
}

export function readingJson({ feed, sweepDueMs: dueMs, said }: NextReading): object {
  return { feed, sweep_due: isoTime(dueMs), said }
}

/** Of each feed, also of one that the configuration no longer has. */
export async function nextReadings(
  ledger: OpenLedger,
  config: Config,
  names: readonly string[],
): Promise<NextReading[]> {
  const nowMs = await redisNow(ledger)
  const feeds = polledFeeds(config)
  return Promise.all(
    names.map(async (name): Promise<NextReading> => {
      const feed = feeds.find((one) => one.name === name)
      if (feed === undefined) return { feed: name, sweepDueMs: undefined, said: unknownFeed(name) }
      const state = await peekFeed(bookOf(ledger, feed.account), name, nowMs)
      const dueMs = state && !state.paused ? sweepDueMs(feed, state) : undefined
      return { feed: name, sweepDueMs: dueMs, said: readingInWords(feed, state, { dueMs, nowMs }) }
    }),
  )
}

function unknownFeed(name: string): string {
  return `Nothing reads it again: the configuration has no feed ${name}.`
}

function readingInWords(
  feed: PolledFeed,
  state: FeedState | undefined,
  { dueMs, nowMs }: { dueMs: number | undefined; nowMs: number },
): string {
  const { name, sweep } = feed
  const rewind = `"tocsin feeds rewind ${name} --to <a time before the item>".`
  if (state?.paused) {
    return `Nothing reads it again while feed ${name} is paused: "tocsin feeds resume ${name}".`
  }
  if (!sweep) return `Feed ${name} has no sweep: nothing reads it again without: ${rewind}`
  if (dueMs === undefined) {
    return `Feed ${name} is yet to be read to its end; then its sweeps begin, and read it again.`
  }
  const due = dueMs <= nowMs ? 'due now' : `due in ${spanInWords(dueMs - nowMs)}`
  if (sweep.backMs === 0) return `The next sweep of feed ${name}, ${due}, reads it again.`
  const back = spanInWords(sweep.backMs)
  return `The next sweep of feed ${name}, ${due}, reads it again if it was created within the ${back} before; if not: ${rewind}`
}
