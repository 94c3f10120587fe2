import { Command } from 'commander'
import { lookUp } from '../audit/look-up.ts'
import type { Config } from '../config/config.ts'
import type { Book } from '../ledger/book.ts'
import { readPayload, readRecord, type LedgerRecord } from '../ledger/records.ts'
import { refang } from '../messages/defang.ts'
import type { Message } from '../messages/message.ts'
import { aboutEvent, headLines } from './about.ts'
import { findNamed } from './command-error.ts'
import { loadConfigFile } from './config-file.ts'
import { addCommonOptions, print, type CommonOptions, type Context } from './context.ts'
import { destinationLabels } from './destination-labels.ts'
import { withLedger } from './open-ledger.ts'
import { findQuarantined, type Quarantined } from '../ledger/quarantine.ts'
import { storyJson, storyLines } from './story.ts'
import { harmless, isoTime, timeInWords } from './words.ts'

interface ExplainOptions extends CommonOptions {
  account?: string
}

export function explainCommand(context: Context): Command {
  return addCommonOptions(new Command('explain'))
    .description('the story of one event: where it came from, where it went, and why')
    .argument('<uid>', 'of the event; as it stands in a message will do')
    .option('--account <name>', 'only what this account knows of it')
    .action((uid: string, options: ExplainOptions) => explain(context, uid, options))
}

interface Known {
  account: string
  record: LedgerRecord | undefined
  /** undefined when the payload is no longer kept. */
  about: Message | undefined
  quarantined: Quarantined | undefined
  /** The feeds that showed it before its story was dropped. */
  shownBy: string[]
}

async function explain(context: Context, given: string, options: ExplainOptions): Promise<void> {
  const { config } = loadConfigFile(context, options.config)
  if (options.account !== undefined) findNamed(config.accounts, options.account, 'account')
  const uid = refang(given.trim())
  const known = await withLedger(config, async ({ books }) => {
    const asked = books.filter(({ account }) => account === (options.account ?? account))
    return (await Promise.all(asked.map((book) => findOut(config, book, uid)))).filter(isKnown)
  })
  const labels = await destinationLabels(config)
  print(context, options, {
    json: known.map(({ account, record, about, quarantined, shownBy }) => ({
      ...(record ? storyJson(record, labels) : { account, uid }),
      title: about?.title ?? null,
      link: about?.link ?? null,
      quarantined: quarantined
        ? { ...quarantined, atMs: undefined, at: isoTime(quarantined.atMs) }
        : null,
      ...(shownBy.length > 0 && { dropped: true, shown_by: shownBy }),
    })),
    lines: () => (known.length === 0 ? unknownLines(uid, options) : known.flatMap(linesOf)),
  })
  if (known.length === 0) context.exitCode = 1

  function linesOf({ account, record, about, quarantined, shownBy }: Known): string[] {
    const [head = '', ...story] = record ? storyLines(record, labels) : []
    return [
      ...(record ? [head, ...(about ? headLines(about) : []), ...story] : []),
      ...(quarantined ? quarantineLines(uid, account, quarantined) : []),
      ...(shownBy.length > 0 ? droppedLines(uid, account, shownBy) : []),
    ]
  }
}

async function findOut(config: Config, book: Book, uid: string): Promise<Known> {
  const id = book.digests.recordId(uid)
  const [record, payload, quarantined] = await Promise.all([
    readRecord(book, id),
    readPayload(book, id),
    findQuarantined(book, uid),
  ])
  const about = record && payload && aboutEvent(record, payload)
  const shownBy = record ? [] : await feedsThatShowed(config, book, uid)
  return { account: book.account, record, about, quarantined, shownBy }
}

/** By their marks, which outlive the story. */
async function feedsThatShowed({ feeds }: Config, book: Book, uid: string): Promise<string[]> {
  const own = feeds.filter(({ account }) => account === book.account)
  const words = own.map(async ({ name }) => {
    const { events } = await lookUp(book, name, { uids: [uid] })
    return events[0] === 'unrecorded' ? [name] : []
  })
  return (await Promise.all(words)).flat()
}

function isKnown({ record, quarantined, shownBy }: Known): boolean {
  return record !== undefined || quarantined !== undefined || shownBy.length > 0
}

function droppedLines(uid: string, account: string, feeds: string[]): string[] {
  return [
    `${harmless(uid, 600)}, account ${account}: taken in by the ${feeds.length === 1 ? 'feed' : 'feeds'} ${feeds.join(', ')}; its story is no longer kept`,
    '  it had been settled for longer than retention.story, or it made room (retention.max_bytes); otherwise somebody removed it',
  ]
}

function quarantineLines(
  uid: string,
  account: string,
  { feed, atMs, problem, raw }: Quarantined,
): string[] {
  return [
    `${harmless(uid, 600)}, account ${account}: quarantined, nothing was sent`,
    `  set aside ${timeInWords(atMs)} by the feed ${feed} because it does not read as an event: ${harmless(problem)}`,
    `  it came as: ${harmless(raw, 1_000)}`,
  ]
}

function unknownLines(uid: string, { account }: ExplainOptions): string[] {
  const whom = account === undefined ? 'any account' : `the account ${account}`
  return [
    `${harmless(uid, 600)} was never taken in by ${whom}, or its story has expired (retention.story).`,
    ...(uid.includes('/') ? [] : ['A uid has the form type/source/id.']),
  ]
}
