/** What reads a feed's past again, and when: its next sweep, or the operator. */
import { polledFeeds } from '../app/polled-feeds.ts'
import type { Config } from '../config/config.ts'
import type { PolledFeed } from '../feeds/polled-feed.ts'
import { sweepDueMs } from '../feeds/rescan.ts'
import { peekFeed, type FeedState } from '../ledger/feed-state.ts'
import { bookOf, redisNow, type OpenLedger } from './open-ledger.ts'
import { isoTime, spanInWords } from './words.ts'

export interface NextReading {
  feed: string
  /** undefined: no sweep is to be expected as things stand. */
  sweepDueMs: number | undefined
  /** A sentence. */
  said: string
}

export function readingJson({ feed, sweepDueMs: dueMs, said }: NextReading): object {
  return { feed, sweep_due: isoTime(dueMs), said }
}

/** Of each feed, also of one that the configuration no longer has. */
export async function nextReadings(
  ledger: OpenLedger,
  config: Config,
  names: readonly string[],
): Promise<NextReading[]> {
  const nowMs = await redisNow(ledger)
  const feeds = polledFeeds(config)
  return Promise.all(
    names.map(async (name): Promise<NextReading> => {
      const feed = feeds.find((one) => one.name === name)
      if (feed === undefined) return { feed: name, sweepDueMs: undefined, said: unknownFeed(name) }
      const state = await peekFeed(bookOf(ledger, feed.account), name, nowMs)
      const dueMs = state && !state.paused ? sweepDueMs(feed, state) : undefined
      return { feed: name, sweepDueMs: dueMs, said: readingInWords(feed, state, { dueMs, nowMs }) }
    }),
  )
}

function unknownFeed(name: string): string {
  return `Nothing reads it again: the configuration has no feed ${name}.`
}

function readingInWords(
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
  const due = dueMs <= nowMs ? 'due now' : `due in ${spanInWords(dueMs - nowMs)}`
  if (sweep.backMs === 0) return `The next sweep of feed ${name}, ${due}, reads it again.`
  const back = spanInWords(sweep.backMs)
  return `The next sweep of feed ${name}, ${due}, reads it again if it was created within the ${back} before; if not: ${rewind}`
}
