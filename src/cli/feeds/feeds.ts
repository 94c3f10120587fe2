/** The `feeds` commands that change a feed: rewind, pause and resume. */

import { Command } from 'commander'
import type { Config } from '../../config/config.ts'
import type { FeedConfig } from '../../feed-types/config.ts'
import { redisNow } from '../../redis/scripts.ts'
import type { AccountLedger } from '../../store/account-ledger.ts'
import { openFeed, pauseFeed, peekFeed, rewindFeed } from '../../store/feed-state.ts'
import {
  addCommonOptions,
  requireConfirmation,
  type CommonOptions,
  type Context,
  loadConfigFile,
  print,
} from '../context.ts'
import { type FeedReport, reportFeeds } from '../../daemon/for-commands/feed-report.ts'
import { addAccountOption, addListOptions, type ListOptions } from '../list.ts'
import { listFeeds } from './feeds-list.ts'
import { ledgerFor, withStore } from '../open/open-store.ts'
import { parsePastTime } from '../options.ts'
import {
  findNamed,
  sanitize,
  formatIsoTime,
  parseShortText,
  formatDuration,
  formatUtcTime,
} from '../terminal.ts'

export function feedsCommand(context: Context): Command {
  const list = addAccountOption(addListOptions(addCommonOptions(new Command('list')), 'feed'))
    .description('list feeds with lag and problems, the worst first')
    .action((name: string | undefined, options: ListOptions) => listFeeds(context, name, options))
  const rewind = addCommonOptions(new Command('rewind'))
    .description('read a feed again from a time on; what was delivered is not sent again')
    .argument('<feed>', 'name of the feed')
    .requiredOption('--to <time>', 'how long ago, such as 7d, or a time such as 2026-11-01T12:00Z')
    .option('--yes', 'do not ask')
    .action((name: string, options: RewindOptions) => rewindByName(context, name, options))
  const pause = addCommonOptions(new Command('pause'))
    .description('ask nothing of a feed until it is resumed; what comes meanwhile is read then')
    .argument('<feed>', 'name of the feed')
    .requiredOption(
      '--reason <text>',
      'why; everybody who looks at the feed reads it',
      parseShortText,
    )
    .action((name: string, options: PauseOptions) => pauseByName(context, name, options))
  const resume = addCommonOptions(new Command('resume'))
    .description('read a paused feed again, from where it stopped')
    .argument('<feed>', 'name of the feed')
    .action((name: string, options: CommonOptions) => resumeByName(context, name, options))
  return new Command('feeds')
    .addCommand(list)
    .addCommand(rewind)
    .addCommand(pause)
    .addCommand(resume)
}

interface RewindOptions extends CommonOptions {
  to: string
  yes?: true
}

async function rewindByName(context: Context, name: string, options: RewindOptions): Promise<void> {
  const { config } = loadConfigFile(context, options.config)
  const feed = findNamed(config.feeds, name, 'feed')
  await withStore(config, async (store) => {
    const [report] = await reportFeeds(store, { ...config, feeds: [feed] })
    const nowMs = await redisNow(store)
    const toMs = parsePastTime(options.to, nowMs)
    const lines = [
      `${name} will be read again from ${formatUtcTime(toMs)} on; what was delivered is not sent again.`,
      ...rewindWarnings({ state: report?.state, toMs, config, nowMs }),
    ]
    if (!options.yes) await requireConfirmation(context, lines)
    await rewindFeed(ledgerFor(store, feed.account), name, toMs)
    print(context, options, {
      json: { feed: name, start_bound: formatIsoTime(toMs), told: lines },
      lines: () => lines,
    })
  })
}

interface Rewind {
  state: FeedReport['state']
  toMs: number
  nowMs: number
  config: Config
}

/** Effects of a rewind that an operator may not expect. */
function rewindWarnings({ state, toMs, nowMs, config }: Rewind): string[] {
  const horizonMs = config.ledger.dedupeHorizonMs
  const readUpToMs = state?.newestMs ?? state?.startBoundMs
  const isSkipping = readUpToMs !== undefined && toMs > readUpToMs
  return [
    ...(nowMs - toMs > horizonMs
      ? [
          `What was last seen over ${formatDuration(horizonMs)} ago is no longer remembered (dedupe.horizon) and may be sent again.`,
        ]
      : []),
    ...(isSkipping
      ? [
          `Events created between ${formatUtcTime(readUpToMs)} and then, and not read yet, are skipped.`,
        ]
      : []),
  ]
}

export interface PauseOptions extends CommonOptions {
  reason: string
}

/** A feed that is already paused keeps its time and gets the new reason. */
export async function pauseByName(
  context: Context,
  name: string,
  options: PauseOptions,
): Promise<void> {
  const { reason } = options
  const sinceMs = await withFeed(context, { name, options }, async (ledger, feed) => {
    // Works before the first poll too: it fixes the feed's start bound, as a daemon would.
    const { paused, nowMs } = await openFeed(ledger, name, feed.startMs)
    const since = paused?.sinceMs ?? nowMs
    await pauseFeed(ledger, name, { reason, sinceMs: since })
    return since
  })
  print(context, options, {
    json: { feed: name, paused: { reason, since: formatIsoTime(sinceMs) } },
    lines: () => [
      `${name} is paused since ${formatUtcTime(sinceMs)}: ${sanitize(reason)}`,
      `  A page that is being fetched just now is still taken in; then nothing is asked until "tocsin feeds resume ${name}".`,
    ],
  })
}

export async function resumeByName(
  context: Context,
  name: string,
  options: CommonOptions,
): Promise<void> {
  const wasPaused = await withFeed(context, { name, options }, async (ledger) => {
    const state = await peekFeed(ledger, name, 0)
    await pauseFeed(ledger, name, undefined)
    return state?.paused !== undefined
  })
  print(context, options, {
    json: { feed: name, was_paused: wasPaused },
    lines: () => [
      wasPaused
        ? `${name} is resumed; a running daemon goes on within seconds where it stopped`
        : `${name} was not paused`,
    ],
  })
}

async function withFeed<Result>(
  context: Context,
  { name, options }: { name: string; options: CommonOptions },
  use: (ledger: AccountLedger, feed: FeedConfig) => Promise<Result>,
): Promise<Result> {
  const { config } = loadConfigFile(context, options.config)
  const feed = findNamed(config.feeds, name, 'feed')
  return withStore(config, (store) => use(ledgerFor(store, feed.account), feed))
}
