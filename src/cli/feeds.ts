import { Command } from 'commander'
import type { Config } from '../config/config.ts'
import { rewindFeed } from '../ledger/feed-state.ts'
import { askFirst } from './ask-first.ts'
import { findNamed } from './command-error.ts'
import { loadConfigFile } from './config-file.ts'
import { addCommonOptions, print, type CommonOptions, type Context } from './context.ts'
import { reportFeeds, type FeedReport } from './feed-report.ts'
import { addLaterCommands, laterFeedCommands } from './later-commands.ts'
import { parseMoment } from './moment.ts'
import { redisNow, withLedger } from './open-ledger.ts'
import { isoTime, spanInWords, timeInWords } from './words.ts'

export function feedsCommand(context: Context): Command {
  const list = addCommonOptions(new Command('list'))
    .description('how far each feed is')
    .action((options: CommonOptions) => listFeeds(context, options))
  const rewind = addCommonOptions(new Command('rewind'))
    .description('read a feed again from a time on; what was delivered is not sent again')
    .argument('<feed>', 'name of the feed')
    .requiredOption('--to <time>', 'how long ago, such as 7d, or a time such as 2026-11-01T12:00Z')
    .option('--yes', 'do not ask')
    .action((name: string, options: RewindOptions) => rewindOne(context, name, options))
  const feeds = new Command('feeds').description('what is polled')
  addLaterCommands(feeds.addCommand(list).addCommand(rewind), laterFeedCommands, 'feeds')
  return feeds
}

async function listFeeds(context: Context, options: CommonOptions): Promise<void> {
  const { config } = loadConfigFile(context, options.config)
  const reports = await withLedger(config, (ledger) => reportFeeds(ledger, config.feeds))
  print(context, options, {
    json: reports.map(feedJson),
    lines: () => reports.flatMap((report) => feedLines(context, report)),
  })
}

function feedJson({ feed, state, lagMs, counts }: FeedReport): Record<string, unknown> {
  const { walk } = state ?? {}
  return {
    feed: feed.name,
    account: feed.account,
    has_polled: state !== undefined,
    lag_seconds: lagMs === undefined ? null : lagMs / 1000,
    lag_objective_seconds: feed.lagObjectiveMs / 1000,
    last_success: isoTime(state?.lastSuccessMs),
    last_caught_up: isoTime(state?.lastCaughtUpMs),
    newest_event: isoTime(state?.newestMs),
    floor: isoTime(state?.floorMs),
    is_backfilling: state?.isBackfilling ?? false,
    walk: walk
      ? {
          reason: walk.reason,
          started_at: isoTime(walk.startedAtMs),
          has_cursor: walk.cursor !== null,
        }
      : null,
    counts: counts ?? null,
  }
}

function feedLines({ terminal }: Context, report: FeedReport): string[] {
  const { feed, state, lagMs, counts } = report
  const head = `${terminal.paint('bold', feed.name)} (account ${feed.account})`
  if (state === undefined || lagMs === undefined) return [`${head}: has not polled yet`]
  const time = (ms: number | undefined): string => (ms === undefined ? 'never' : timeInWords(ms))
  const isLate = lagMs > feed.lagObjectiveMs
  const lag = `lag ${spanInWords(lagMs)}, objective ${spanInWords(feed.lagObjectiveMs)}`
  const { fetched = 0, duplicate = 0, quarantined = 0 } = counts ?? {}
  return [
    `${head}: ${terminal.paint(isLate ? 'red' : 'green', lag)}`,
    `  last success ${time(state.lastSuccessMs)}, last caught up ${time(state.lastCaughtUpMs)}${state.isBackfilling ? ', working off a backlog' : ''}`,
    `  newest event ${time(state.newestMs)}, floor ${time(state.floorMs)}`,
    `  ${walkInWords(report)}`,
    `  ${fetched} fetched: ${counts?.new ?? 0} new, ${duplicate} known, ${quarantined} quarantined`,
  ]
}

function walkInWords({ state }: FeedReport): string {
  if (state?.isRewound) return 'rewound: a new walk begins with the next poll'
  if (!state?.walk) return 'no walk yet'
  const { reason, startedAtMs, cursor } = state.walk
  const place = cursor === null ? 'at its beginning' : 'with a cursor'
  return `walk since ${timeInWords(startedAtMs)} (${reason.replaceAll('_', ' ')}), ${place}`
}

interface RewindOptions extends CommonOptions {
  to: string
  yes?: true
}

async function rewindOne(context: Context, name: string, options: RewindOptions): Promise<void> {
  const { config } = loadConfigFile(context, options.config)
  const feed = findNamed(config.feeds, name, 'feed')
  await withLedger(config, async (ledger) => {
    const [report] = await reportFeeds(ledger, [feed])
    const nowMs = await redisNow(ledger)
    const toMs = parseMoment(options.to, nowMs)
    const told = [
      `${name} will be read again from ${timeInWords(toMs)} on; what was delivered is not sent again.`,
      ...cautions({ state: report?.state, toMs, config, nowMs }),
    ]
    if (!options.yes) await askFirst(context, told)
    const book = ledger.books.find(({ account }) => account === feed.account)
    if (book === undefined) throw new Error(`no book is open for account ${feed.account}`)
    await rewindFeed(book, name, toMs)
    print(context, options, { json: { feed: name, floor: isoTime(toMs), told }, lines: () => told })
  })
}

interface Rewind {
  state: FeedReport['state']
  toMs: number
  nowMs: number
  config: Config
}

/** What a rewind would do that its operator may not expect. */
function cautions({ state, toMs, nowMs, config }: Rewind): string[] {
  const horizonMs = config.ledger.dedupeHorizonMs
  const readUpToMs = state?.newestMs ?? state?.floorMs
  const isSkipping = readUpToMs !== undefined && toMs > readUpToMs
  return [
    ...(nowMs - toMs > horizonMs
      ? [
          `What was last seen over ${spanInWords(horizonMs)} ago is no longer remembered (dedupe.horizon) and may be sent again.`,
        ]
      : []),
    ...(isSkipping
      ? [
          `Events created between ${timeInWords(readUpToMs)} and then, and not read yet, are skipped.`,
        ]
      : []),
  ]
}
