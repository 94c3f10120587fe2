import type { FeedConfig } from '../feeds/config.ts'
import type { Book } from '../ledger/book.ts'
import { openFeed, pauseFeed, peekFeed } from '../ledger/feed-state.ts'
import { findNamed } from './command-error.ts'
import { loadConfigFile } from './config-file.ts'
import { print, type CommonOptions, type Context } from './context.ts'
import { bookOf, withLedger } from './open-ledger.ts'
import { harmless, isoTime, timeInWords } from './words.ts'

export interface PauseOptions extends CommonOptions {
  reason: string
}

/** One that is paused already stays so since then, with the new reason. */
export async function pauseOne(
  context: Context,
  name: string,
  options: PauseOptions,
): Promise<void> {
  const { reason } = options
  const sinceMs = await withFeed(context, { name, options }, async (book, feed) => {
    // also of a feed that never polled: a daemon that looks at it fixes its floor all the same
    const { paused, nowMs } = await openFeed(book, name, feed.startMs)
    const since = paused?.sinceMs ?? nowMs
    await pauseFeed(book, name, { reason, sinceMs: since })
    return since
  })
  print(context, options, {
    json: { feed: name, paused: { reason, since: isoTime(sinceMs) } },
    lines: () => [
      `${name} is paused since ${timeInWords(sinceMs)}: ${harmless(reason)}`,
      `  A page that is being fetched just now is still taken in; then nothing is asked until "tocsin feeds resume ${name}".`,
    ],
  })
}

export async function resumeOne(
  context: Context,
  name: string,
  options: CommonOptions,
): Promise<void> {
  const wasPaused = await withFeed(context, { name, options }, async (book) => {
    const state = await peekFeed(book, name, 0)
    await pauseFeed(book, name, undefined)
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
  work: (book: Book, feed: FeedConfig) => Promise<Result>,
): Promise<Result> {
  const { config } = loadConfigFile(context, options.config)
  const feed = findNamed(config.feeds, name, 'feed')
  return withLedger(config, (ledger) => work(bookOf(ledger, feed.account), feed))
}
