/** The `quarantine` commands: list, show, and replay of items that could not be parsed. */

import { Command } from 'commander'
import type { Config } from '../../config/config.ts'
import { polledFeeds } from '../../daemon/polled-feeds.ts'
import type { PolledFeed } from '../../feed-types/feed-type.ts'
import { sweepDueMs } from '../../feeds/rescan.ts'
import type { AccountLedger } from '../../store/account-ledger.ts'
import {
  type FeedState,
  listQuarantined,
  peekFeed,
  type QuarantineEntry,
  type ReplayOutcome,
  replayQuarantined,
} from '../../store/feed-state.ts'
import { redisNow } from '../../redis/scripts.ts'
import {
  addCommonOptions,
  requireConfirmation,
  type CommonOptions,
  type Context,
  loadConfigFile,
  print,
} from '../context.ts'
import { ledgerFor, requireLedger, type OpenStore, withStore } from '../open/open-store.ts'
import { addWideOption, parsePositive, type WideOption } from '../options.ts'
import {
  CommandError,
  pluralize,
  findNamed,
  sanitize,
  formatIsoTime,
  formatDuration,
  titledTable,
  formatUtcTime,
} from '../terminal.ts'

export function quarantineCommand(context: Context): Command {
  const list = addWideOption(addCommonOptions(new Command('list')))
    .description('what could not be read as an event, newest first')
    .option('--feed <name>', 'only what this feed showed')
    .option('--account <name>', 'only of this account')
    .option('--limit <n>', 'how many on a page', parsePositive, 20)
    .option('--page <n>', 'which page', parsePositive, 1)
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

export interface ListOptions extends CommonOptions, WideOption {
  feed?: string
  account?: string
  limit: number
  page: number
}

export async function listEntries(context: Context, options: ListOptions): Promise<void> {
  const { config } = loadConfigFile(context, options.config)
  const { feed, account, page, limit } = options
  const entries = await withStore(config, (store) => {
    const ledgers = account === undefined ? store.ledgers : [requireLedger(store, account)]
    return listQuarantineEntries(ledgers, config, feed)
  })
  const total = entries.length
  const shown = entries.slice((page - 1) * limit, page * limit)
  print(context, options, {
    json: { total, page, limit, items: shown.map(entryJson) },
    lines: () => listLines(context, shown, { ...options, total }),
  })
}

/** Without the stored item. */
export function entryJson(entry: QuarantineEntry): Record<string, unknown> {
  const { id, account, feed, atMs, uid, problem, markedBy } = entry
  const canReplay = markedBy.length > 0
  return { id, account, feed, at: formatIsoTime(atMs), uid, problem, can_replay: canReplay }
}

function listLines(
  { terminal }: Context,
  entries: readonly QuarantineEntry[],
  { total, page, limit, ...width }: ListOptions & { total: number },
): string[] {
  if (total === 0) return ['There is nothing in the quarantine.']
  const pages = Math.ceil(total / limit)
  const rows = entries.map((entry) => [
    shortId(entry),
    formatUtcTime(entry.atMs),
    entry.feed,
    entry.uid === null ? '-' : sanitize(entry.uid, 100),
    sanitize(entry.problem, 200),
  ])
  return [
    ...titledTable(terminal, [['id', 'set aside', 'feed', 'uid', 'problem'], ...rows], width),
    `page ${page} of ${pages}, ${pluralize(total, 'quarantined item')} in all${page < pages ? `; more with --page ${page + 1}` : ''}`,
  ]
}

export async function showEntry(
  context: Context,
  given: string,
  options: CommonOptions,
): Promise<void> {
  const { config } = loadConfigFile(context, options.config)
  const { entry, endsMs, readings } = await withStore(config, async (store) => {
    const found = await requireEntry(store, given)
    const { retention } = ledgerFor(store, found.account)
    return {
      entry: found,
      endsMs: found.atMs + retention.history,
      readings: await findNextReadings(store, config, listShowingFeeds(found)),
    }
  })
  print(context, options, {
    json: {
      ...entryJson(entry),
      kept: entry.raw,
      ends_at: formatIsoTime(endsMs),
      next: readings.map(readingJson),
    },
    lines: () => [...entryLines(entry), `  ${formatClosing(entry, endsMs)}`, ...remedy()],
  })

  function remedy(): string[] {
    return [
      '',
      'If the service has mended it, or a newer Tocsin can read it, it is taken in as soon as it is read again.',
      ...readings.map(({ sentence }) => sentence),
      `To have it set aside anew if it is still malformed: tocsin quarantine replay ${shortId(entry)}`,
    ]
  }
}

function entryLines({ id, account, feed, atMs, uid, problem, raw }: QuarantineEntry): string[] {
  return [
    `quarantined item ${id}`,
    `  set aside ${formatUtcTime(atMs)} by the feed ${feed}, account ${account}; nothing was sent`,
    `  problem: ${sanitize(problem)}`,
    `  uid: ${uid === null ? 'none could be read' : sanitize(uid, 600)}`,
    `  what is kept, secrets masked: ${sanitize(raw, maxShownLength)}`,
  ]
}

/** Limit of the text form; JSON is not cut. */
const maxShownLength = 4_000

function formatClosing({ uid }: QuarantineEntry, endsMs: number): string {
  const parsed = uid === null ? '' : 'when its uid comes in an item that reads, '
  return `it closes by itself ${parsed}when a thousand newer ones have come, or after ${formatUtcTime(endsMs)} (retention.history)`
}

/**
 * `quarantine replay`. The stored item is masked and cut, so it cannot be parsed again: the entry
 * and its dedupe fingerprints are removed, and the feed takes the item in when the API shows it
 * again.
 */

export interface ReplayOptions extends CommonOptions {
  all?: true
  feed?: string
  yes?: true
}

interface ReplayCounts {
  done: number
  failed: { id: string; outcome: ReplayOutcome }[]
}

export async function replayEntries(
  context: Context,
  ids: string[],
  options: ReplayOptions,
): Promise<void> {
  refuseIncompleteChoice(ids, options)
  const { config } = loadConfigFile(context, options.config)
  const { replayed, next } = await withStore(config, async (store) => {
    const chosen = await chooseEntries(store, config, ids, options)
    const readings = await findNextReadings(store, config, [
      ...new Set(chosen.flatMap(listShowingFeeds)),
    ])
    if (chosen.length > 0 && !options.yes) {
      const count = pluralize(chosen.length, 'quarantined item')
      const question = `${count} will be forgotten here, and set aside anew if still malformed.`
      await requireConfirmation(context, [question, ...readings.map(({ sentence }) => sentence)])
    }
    return { replayed: await replayAll(store, chosen), next: readings }
  })
  print(context, options, {
    json: {
      replayed: replayed.done,
      failed: replayed.failed,
      next: next.map(readingJson),
    },
    lines: () => [
      `replayed ${pluralize(replayed.done, 'quarantined item')}`,
      ...(replayed.done > 0 ? next.map(({ sentence }) => sentence) : []),
      ...replayed.failed.map(
        ({ id }) => `${id}: it is no longer in the quarantine: it was replayed, or reads by now`,
      ),
    ],
  })
  if (replayed.failed.length > 0) context.exitCode = 1
}

function refuseIncompleteChoice(ids: string[], { all, feed }: ReplayOptions): void {
  const isMixed = ids.length > 0 && (all ?? feed) !== undefined
  if (isMixed || (ids.length === 0 && all === undefined)) {
    throw new CommandError(
      'mistake',
      'name quarantined items by their ids, or all of them by --all, of one feed by --all --feed <name>',
    )
  }
}

async function chooseEntries(
  store: OpenStore,
  config: Config,
  ids: string[],
  { feed }: ReplayOptions,
): Promise<QuarantineEntry[]> {
  if (ids.length === 0) return listQuarantineEntries(store.ledgers, config, feed)
  const chosen = new Map<string, QuarantineEntry>()
  for (const given of ids) {
    const entry = await requireEntry(store, given)
    chosen.set(entry.id, entry)
  }
  return [...chosen.values()]
}

async function replayAll(
  store: OpenStore,
  chosen: readonly QuarantineEntry[],
): Promise<ReplayCounts> {
  const replayed: ReplayCounts = { done: 0, failed: [] }
  for (const entry of chosen) {
    const outcome = await replayQuarantined(ledgerFor(store, entry.account), entry.id)
    if (outcome === 'done') replayed.done += 1
    else replayed.failed.push({ id: shortId(entry), outcome })
  }
  return replayed
}

/** Long enough to be unique among the few thousand possible entries. */
export function shortId({ id }: QuarantineEntry): string {
  return id.slice(0, 12)
}

/**
 * Entries of all ledgers, or those that one feed showed, newest first; the feed may have left the
 * configuration. Throws CommandError.
 */
export async function listQuarantineEntries(
  ledgers: readonly AccountLedger[],
  { feeds }: Config,
  feed: string | undefined,
): Promise<QuarantineEntry[]> {
  const found = await Promise.all(ledgers.map((ledger) => listQuarantined(ledger)))
  const entries = found.flat().toSorted((left, right) => right.atMs - left.atMs)
  if (feed === undefined) return entries
  const names = new Set([...feeds.map(({ name }) => name), ...entries.flatMap(listShowingFeeds)])
  findNamed(
    [...names].map((name) => ({ name })),
    feed,
    'feed',
  )
  return entries.filter((entry) => listShowingFeeds(entry).includes(feed))
}

/** Every feed known to have shown the item. */
export function listShowingFeeds({ feed, markedBy }: QuarantineEntry): string[] {
  return [...new Set([feed, ...markedBy])]
}

/** Finds an entry by its id or a prefix of it. Throws CommandError. */
export async function requireEntry(
  { ledgers }: OpenStore,
  given: string,
): Promise<QuarantineEntry> {
  if (!/^[0-9a-f]{4,24}$/i.test(given)) {
    const remedy = 'take one from "quarantine list", four characters of it at least'
    throw new CommandError('mistake', `"${given}" is not the id of a quarantined item; ${remedy}`)
  }
  const prefix = given.toLowerCase()
  const matches = await Promise.all(ledgers.map((ledger) => listQuarantined(ledger, prefix)))
  const [found, ...others] = matches.flat()
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

/** When a feed reads its past again: its next rescan, or a rewind by the operator. */

export interface NextReading {
  feed: string
  /** undefined: no rescan is expected as things stand. */
  rescanDueMs: number | undefined
  /** A full sentence for the operator. */
  sentence: string
}

export function readingJson({ feed, rescanDueMs: dueMs, sentence }: NextReading): object {
  return { feed, sweep_due: formatIsoTime(dueMs), said: sentence }
}

/** One for each name; a feed may have left the configuration. */
export async function findNextReadings(
  store: OpenStore,
  config: Config,
  names: readonly string[],
): Promise<NextReading[]> {
  const nowMs = await redisNow(store)
  const feeds = polledFeeds(config)
  return Promise.all(
    names.map(async (name): Promise<NextReading> => {
      const feed = feeds.find((one) => one.name === name)
      if (feed === undefined)
        return { feed: name, rescanDueMs: undefined, sentence: formatUnknownFeed(name) }
      const state = await peekFeed(ledgerFor(store, feed.account), name, nowMs)
      const dueMs = state && !state.paused ? sweepDueMs(feed, state) : undefined
      return {
        feed: name,
        rescanDueMs: dueMs,
        sentence: formatReading(feed, state, { dueMs, nowMs }),
      }
    }),
  )
}

function formatUnknownFeed(name: string): string {
  return `Nothing reads it again: the configuration has no feed ${name}.`
}

function formatReading(
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
  const due = dueMs <= nowMs ? 'due now' : `due in ${formatDuration(dueMs - nowMs)}`
  if (sweep.backMs === 0) return `The next sweep of feed ${name}, ${due}, reads it again.`
  const back = formatDuration(sweep.backMs)
  return `The next sweep of feed ${name}, ${due}, reads it again if it was created within the ${back} before; if not: ${rewind}`
}
