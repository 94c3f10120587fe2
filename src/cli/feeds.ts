import { Command } from 'commander'
import type { Config } from '../config/config.ts'
import { rewindFeed } from '../ledger/feed-state.ts'
import { askFirst } from './ask-first.ts'
import { findNamed } from './command-error.ts'
import { loadConfigFile } from './config-file.ts'
import { addCommonOptions, print, type CommonOptions, type Context } from './context.ts'
import { reportFeeds, type FeedReport } from './feed-report.ts'
import { listFeeds, type ListOptions } from './feeds-list.ts'
import { pauseOne, resumeOne, type PauseOptions } from './feeds-pause.ts'
import { parseMoment } from './moment.ts'
import { feedsImportCommand } from './monitoring/feeds-import.ts'
import { bookOf, redisNow, withLedger } from './open-ledger.ts'
import { shortText } from './short-text.ts'
import { isoTime, spanInWords, timeInWords } from './words.ts'

export function feedsCommand(context: Context): Command {
  const list = addCommonOptions(new Command('list'))
    .description('how far each feed is, and whether it is paused')
    .option('--why', 'which feed is read next, and why')
    .action((options: ListOptions) => listFeeds(context, options))
  const rewind = addCommonOptions(new Command('rewind'))
    .description('read a feed again from a time on; what was delivered is not sent again')
    .argument('<feed>', 'name of the feed')
    .requiredOption('--to <time>', 'how long ago, such as 7d, or a time such as 2026-11-01T12:00Z')
    .option('--yes', 'do not ask')
    .action((name: string, options: RewindOptions) => rewindOne(context, name, options))
  const pause = addCommonOptions(new Command('pause'))
    .description('ask nothing of a feed until it is resumed; what comes meanwhile is read then')
    .argument('<feed>', 'name of the feed')
    .requiredOption('--reason <text>', 'why; everybody who looks at the feed reads it', shortText)
    .action((name: string, options: PauseOptions) => pauseOne(context, name, options))
  const resume = addCommonOptions(new Command('resume'))
    .description('read a paused feed again, from where it stopped')
    .argument('<feed>', 'name of the feed')
    .action((name: string, options: CommonOptions) => resumeOne(context, name, options))
  return new Command('feeds')
    .addCommand(list)
    .addCommand(rewind)
    .addCommand(pause)
    .addCommand(resume)
    .addCommand(feedsImportCommand(context))
}

interface RewindOptions extends CommonOptions {
  to: string
  yes?: true
}

async function rewindOne(context: Context, name: string, options: RewindOptions): Promise<void> {
  const { config } = loadConfigFile(context, options.config)
  const feed = findNamed(config.feeds, name, 'feed')
  await withLedger(config, async (ledger) => {
    const [report] = await reportFeeds(ledger, { ...config, feeds: [feed] })
    const nowMs = await redisNow(ledger)
    const toMs = parseMoment(options.to, nowMs)
    const told = [
      `${name} will be read again from ${timeInWords(toMs)} on; what was delivered is not sent again.`,
      ...cautions({ state: report?.state, toMs, config, nowMs }),
    ]
    if (!options.yes) await askFirst(context, told)
    await rewindFeed(bookOf(ledger, feed.account), name, toMs)
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
