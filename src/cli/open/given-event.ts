/** An event that a command is given: in a file, or by its uid out of the ledger. */
import { existsSync } from 'node:fs'
import type { Config } from '../../config/config.ts'
import type { EventDetail } from '../../event.ts'
import type { FeedConfig } from '../../feeds/types/config.ts'
import { parseItem } from '../../feeds/types/events.ts'
import { findFeedType } from '../../feeds/types/feed-types.ts'
import { systemClock } from '../../lib/clock.ts'
import { withholdIn } from '../../masking/masking.ts'
import { refang } from '../../messages/sanitize.ts'
import { redisNow } from '../../redis/scripts.ts'
import type { RoutableEvent } from '../../routing/router.ts'
import { type LedgerRecord, type Payload, readPayload, readRecord } from '../../store/records.ts'
import { type Context, inputName, readText } from '../context.ts'
import { CommandError, findNamed } from '../terminal.ts'
import { ledgersFor, withStore } from './open-store.ts'

export interface GivenEvent extends RoutableEvent {
  /** undefined: there is no full event. */
  detail?: EventDetail | 'unavailable' | undefined
  fetchedAtMs: number
  /** What the ledger knows of it; undefined: it comes from a file. */
  stored?: { record: LedgerRecord; payload: Payload }
}

export interface GivenEvents {
  events: GivenEvent[]
  /** The time as of which they were read, ms. */
  nowMs: number
}

interface Choice {
  /** As if this feed had brought it. */
  feed?: string
  account?: string
}

export const givenEventSays =
  'uid of an event that was taken in, or a JSON file with one as the search gives it; - for standard input'

/**
 * Reads an event by its uid, as each feed showed it, or out of a file, as the only feed would bring it.
 * Throws CommandError.
 */
export async function readGivenEvents(
  context: Context,
  config: Config,
  given: string,
  choice: Choice,
): Promise<GivenEvents> {
  if (choice.feed !== undefined) findNamed(config.feeds, choice.feed, 'feed')
  // a uid has slashes as a path has; what there is on disk, or ends as a file does, is a file
  const isFile = given === '-' || given.endsWith('.json') || existsSync(given)
  if (!isFile) return readStoredEvents(config, refang(given.trim()), choice)
  if (choice.account !== undefined) findNamed(config.accounts, choice.account, 'account')
  return readEventFile(context, config, { file: given, ...choice })
}

/** Reads one event as the named feed would bring it, or the only one. Throws CommandError. */
async function readEventFile(
  context: Context,
  config: Config,
  { file, feed: named, account }: Choice & { file: string },
): Promise<GivenEvents> {
  const feeds = config.feeds.filter((one) => account === undefined || one.account === account)
  const feed = feeds.find(({ name }) => name === named) ?? feeds[0]
  if (feed === undefined || (named === undefined && feeds.length > 1)) {
    const names = feeds.map(({ name }) => name).join(', ')
    throw new CommandError('mistake', `say with --feed which feed brings it: ${names}`)
  }
  const nowMs = systemClock.now()
  const parsed = parseFile(await readText(context, file), file, feed)
  const { name, labels } = feed
  return {
    events: [{ ...parsed, account: feed.account, feed: name, labels, fetchedAtMs: nowMs }],
    nowMs,
  }
}

const fileRemedy = 'write one item of a search answer, with metadata.uid'

/** The parser's own messages quote the text, which may hold a secret. */
function parseFile(
  text: string,
  file: string,
  feed: FeedConfig,
): Pick<GivenEvent, 'event' | 'detail'> {
  const place = inputName(file)
  let item: unknown
  try {
    item = JSON.parse(text)
  } catch {
    throw new CommandError('mistake', `${place}: not JSON; ${fileRemedy}`)
  }
  const data = isObject(item) ? item['data'] : undefined
  const parsed = parseGiven(item, feed)
  if (!parsed.ok) {
    throw new CommandError('mistake', `${place}: not an event: ${parsed.problem}; ${fileRemedy}`)
  }
  const { event } = parsed
  return {
    event,
    ...(isObject(data) && { detail: withholdIn(data, event.uid) }),
  }
}

/** As its feed reads it; an event with metadata is one, whatever the type of the feed. */
function parseGiven(
  item: unknown,
  feed: FeedConfig,
): ReturnType<ReturnType<typeof findFeedType>['parse']> {
  if (isObject(item) && !('metadata' in item)) {
    const parsed = findFeedType(feed).parse(item, { ...feed, scope: '' })
    if (parsed.ok) return parsed
  }
  return parseItem(item)
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** As each feed showed it, or as the named feed would, whether it showed it or not. */
async function readStoredEvents(
  config: Config,
  uid: string,
  { feed: named, account }: Choice,
): Promise<GivenEvents> {
  const namedFeed = config.feeds.find(({ name }) => name === named)
  const wanted = account ?? namedFeed?.account
  return withStore(config, async (store) => {
    const ledgers = ledgersFor(store, { account: wanted })
    const found = await Promise.all(
      ledgers.map(async (ledger) => {
        const id = ledger.fingerprints.recordId(uid)
        return Promise.all([readRecord(ledger, id), readPayload(ledger, id)])
      }),
    )
    const events = found.flatMap(([record, payload]) =>
      record && payload ? asFeedsShow(config, { record, payload }, named) : [],
    )
    if (events.length > 0) {
      return { events, nowMs: await redisNow(store) }
    }
    const isKnown = found.some(([record]) => record !== undefined)
    throw new CommandError('refused', formatMissing(uid, isKnown))
  })
}

function asFeedsShow(
  config: Config,
  stored: { record: LedgerRecord; payload: Payload },
  named: string | undefined,
): GivenEvent[] {
  const { account, sightings } = stored.record
  const { event, detail, fetchedAtMs } = stored.payload
  const shown = new Map(sightings.map(({ feed, labels }) => [feed, labels]))
  const feeds = named === undefined ? [...shown.keys()] : [named]
  return feeds.map((feed) => {
    const labels = config.feeds.find(({ name }) => name === feed)?.labels ?? shown.get(feed)
    return { event, detail, account, feed, labels: labels ?? {}, fetchedAtMs, stored }
  })
}

function formatMissing(uid: string, isKnown: boolean): string {
  const what = JSON.stringify(uid.slice(0, 600))
  return isKnown
    ? `${what}: its content is no longer kept (retention.payload); "items show" still has its history`
    : `${what} was never taken in, or its history has expired (retention.history)`
}
