import type { QuarantineEntry } from '../ledger/quarantine.ts'
import { loadConfigFile } from './config-file.ts'
import { print, type CommonOptions, type Context } from './context.ts'
import { findBook, withLedger } from './open-ledger.ts'
import { entriesOf, shortId } from './quarantine-find.ts'
import { counted, harmless, isoTime, table, timeInWords } from './words.ts'

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
