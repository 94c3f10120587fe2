/**
 * Replays malformed items. What is kept of one is masked and cut, so it is not read from there: the entry
 * and its marks are forgotten, and the feed reads the item itself when the service shows it again.
 */
import type { Config } from '../config/config.ts'
import {
  replayQuarantined,
  type QuarantineEntry,
  type ReplayOutcome,
} from '../ledger/quarantine.ts'
import { askFirst } from './ask-first.ts'
import { CommandError } from './command-error.ts'
import { loadConfigFile } from './config-file.ts'
import { print, type CommonOptions, type Context } from './context.ts'
import { nextReadings, readingJson } from './next-reading.ts'
import { bookOf, withLedger, type OpenLedger } from './open-ledger.ts'
import { entriesOf, entryById, feedsOf, shortId, unmarkedHelp } from './quarantine-find.ts'
import { counted } from './words.ts'

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
