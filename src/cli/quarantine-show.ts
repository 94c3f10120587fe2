import type { QuarantineEntry } from '../ledger/quarantine.ts'
import { loadConfigFile } from './config-file.ts'
import { print, type CommonOptions, type Context } from './context.ts'
import { nextReadings, readingJson } from './next-reading.ts'
import { bookOf, withLedger } from './open-ledger.ts'
import { entryById, feedsOf, shortId, unmarkedHelp } from './quarantine-find.ts'
import { entryJson } from './quarantine-list.ts'
import { harmless, isoTime, timeInWords } from './words.ts'

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
