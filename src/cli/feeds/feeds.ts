/** The `feeds` commands that change a feed: rewind, pause and resume. */

import { Command } from 'commander'
import type { Config } from '../../config/config.ts'
import { redisNow } from '../../redis/scripts.ts'
import { type FeedState, peekFeed, rewindFeed } from '../../store/feed-state.ts'
import {
  addCommonOptions,
  type CommonOptions,
  type Context,
  loadConfigFile,
  print,
  requireConfirmation,
} from '../context.ts'
import { addAccountOption, addListOptions, type ListOptions, listThing } from '../list.ts'
import { addPauseCommands, type PauseReason, type Resumed } from '../pause.ts'
import { ledgerFor, type OpenStore, recordCommand, withStore } from '../open/open-store.ts'
import { parsePastTime } from '../options.ts'
import { findNamed, formatDuration, formatIsoTime, formatUtcTime } from '../terminal.ts'
import { pauseFeed, resumeFeed } from '../../operator/acts/pauses.ts'

export function feedsCommand(context: Context): Command {
  const list = addAccountOption(addListOptions(addCommonOptions(new Command('list')), 'feed'))
    .description('list feeds with lag and problems, the worst first')
    .action((name: string | undefined, options: ListOptions) =>
      listThing(context, options, { thing: 'feed', name }),
    )
  const rewind = addCommonOptions(new Command('rewind'))
    .description('read a feed again from a time on; what was delivered is not sent again')
    .argument('<feed>', 'name of the feed')
    .requiredOption('--to <time>', 'how long ago, such as 7d, or a time such as 2026-11-01T12:00Z')
    .option('--yes', 'do not ask')
    .action((name: string, options: RewindOptions) => rewindByName(context, name, options))
  const feeds = new Command('feeds').addCommand(list).addCommand(rewind)
  const acts = { pause: pauseByName, resume: resumeByName }
  return addPauseCommands(feeds, context, { thing: 'feed', ...acts })
}

interface RewindOptions extends CommonOptions {
  to: string
  yes?: true
}

async function rewindByName(context: Context, name: string, options: RewindOptions): Promise<void> {
  const { config } = loadConfigFile(context, options.config)
  const feed = findNamed(config.feeds, name, 'feed')
  await withStore(config, async (store) => {
    const nowMs = await redisNow(store)
    const state = await peekFeed(ledgerFor(store, feed.account), name, nowMs)
    const toMs = parsePastTime(options.to, nowMs)
    const lines = [
      `${name} will be read again from ${formatUtcTime(toMs)} on; what was delivered is not sent again.`,
      ...rewindWarnings({ state, toMs, config, nowMs }),
    ]
    if (!options.yes) await requireConfirmation(context, lines)
    const about = { act: `/feeds/${name}/rewind`, account: feed.account }
    await recordCommand(context, store, about, () =>
      rewindFeed(ledgerFor(store, feed.account), name, toMs),
    )
    print(context, options, {
      json: { feed: name, start_bound: formatIsoTime(toMs), told: lines },
      lines: () => lines,
    })
  })
}

interface Rewind {
  state: FeedState | undefined
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

function pauseByName(
  store: OpenStore,
  config: Config,
  { name, reason }: PauseReason,
): Promise<number> {
  const feed = findNamed(config.feeds, name, 'feed')
  return pauseFeed(ledgerFor(store, feed.account), feed, reason)
}

async function resumeByName(store: OpenStore, config: Config, name: string): Promise<Resumed> {
  const feed = findNamed(config.feeds, name, 'feed')
  const wasPaused = await resumeFeed(ledgerFor(store, feed.account), name)
  const said = wasPaused
    ? `${name} is resumed; a running daemon goes on within seconds where it stopped`
    : `${name} was not paused`
  return { facts: { was_paused: wasPaused }, said }
}
