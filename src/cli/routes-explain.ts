/** `routes explain`: one event on its way through the tree of the configuration, judged now. */
import type { Config } from '../config/config.ts'
import type { ThreatEvent } from '../events/threat-event.ts'
import { parseItem } from '../feeds/parse-item.ts'
import { readPayload, readRecord } from '../ledger/records.ts'
import { refang } from '../messages/defang.ts'
import type { RoutableEvent } from '../routing/routable-event.ts'
import { systemClock } from '../runtime/clock.ts'
import { readText } from './read-text.ts'
import { CommandError, findNamed } from './command-error.ts'
import { loadConfigFile } from './config-file.ts'
import { print, type CommonOptions, type Context } from './context.ts'
import { destinationsBySink } from './destination-labels.ts'
import { knownSilences, missingLines } from './known-silences.ts'
import { findBook, redisNow, withLedger } from './open-ledger.ts'
import { wayOf } from './route-way.ts'
import { wayJson, wayLines } from './routes-words.ts'

export interface ExplainRoutesOptions extends CommonOptions {
  uid?: string
  event?: string
  feed?: string
  account?: string
}

/** What is asked about, and when. */
interface Asked {
  inputs: RoutableEvent[]
  nowMs: number
}

export async function explainRoutes(
  context: Context,
  options: ExplainRoutesOptions,
): Promise<void> {
  const { config } = loadConfigFile(context, options.config)
  const { feed, uid, event } = options
  if (feed !== undefined) findNamed(config.feeds, feed, 'feed')
  if ((uid === undefined) === (event === undefined)) {
    throw new CommandError('mistake', 'name an event: either --uid <uid> or --event <file>')
  }
  const asked =
    uid === undefined
      ? await askedByFile(context, config, options)
      : await askedByUid(config, refang(uid.trim()), options)
  const destinations = destinationsBySink(config)
  const known = await knownSilences(config)
  const { nowMs } = asked
  const ways = asked.inputs.map((input) => wayOf(config, destinations, { input, nowMs, known }))
  print(context, options, {
    json: ways.map(wayJson),
    lines: () => [...ways.flatMap(wayLines), ...missingLines(known)],
  })
}

async function askedByFile(
  context: Context,
  config: Config,
  { event: file = '', feed: named, account }: ExplainRoutesOptions,
): Promise<Asked> {
  if (account !== undefined) {
    throw new CommandError('mistake', '--account goes with --uid; an --event has its feed’s')
  }
  const feed = config.feeds.find(({ name }) => name === named) ?? config.feeds[0]
  if (feed === undefined || (named === undefined && config.feeds.length > 1)) {
    const names = config.feeds.map(({ name }) => name).join(', ')
    throw new CommandError('mistake', `say with --feed which feed brings it: ${names}`)
  }
  const event = parseEvent(await readText(context, file), file)
  const { name, labels } = feed
  return {
    inputs: [{ event, account: feed.account, feed: name, labels }],
    nowMs: systemClock.now(),
  }
}

/** The parser's own words quote the text, which may hold a secret. */
function parseEvent(text: string, file: string): ThreatEvent {
  const place = file === '-' ? 'standard input' : file
  const remedy = 'write one item of a search answer, with metadata.uid'
  let raw: unknown
  try {
    raw = JSON.parse(text)
  } catch {
    throw new CommandError('mistake', `${place}: not JSON; ${remedy}`)
  }
  const parsed = parseItem(raw)
  if (parsed.ok) return parsed.event
  throw new CommandError('mistake', `${place}: not an event: ${parsed.problem}; ${remedy}`)
}

/** As every feed that showed it, or as the one that was named, whether it did or not. */
async function askedByUid(
  config: Config,
  uid: string,
  { feed: named, account }: ExplainRoutesOptions,
): Promise<Asked> {
  const asAFeed = config.feeds.find(({ name }) => name === named)
  const wanted = account ?? asAFeed?.account
  return withLedger(config, async (ledger) => {
    const books = wanted === undefined ? ledger.books : [findBook(ledger, wanted)]
    const known = await Promise.all(
      books.map(async (book) => {
        const id = book.digests.recordId(uid)
        return Promise.all([readRecord(book, id), readPayload(book, id)])
      }),
    )
    const inputs = known.flatMap(([record, payload]): RoutableEvent[] => {
      if (!record || !payload) return []
      const { account: owner, sightings } = record
      const shown = new Map(sightings.map(({ feed, labels }) => [feed, labels]))
      const feeds = named === undefined ? [...shown.keys()] : [named]
      return feeds.map((feed) => {
        const labels = config.feeds.find(({ name }) => name === feed)?.labels ?? shown.get(feed)
        return { event: payload.event, account: owner, feed, labels: labels ?? {} }
      })
    })
    if (inputs.length > 0) return { inputs, nowMs: await redisNow(ledger) }
    throw new CommandError(
      'refused',
      missing(
        uid,
        known.some(([record]) => record !== undefined),
      ),
    )
  })
}

function missing(uid: string, isKnown: boolean): string {
  const what = JSON.stringify(uid.slice(0, 600))
  return isKnown
    ? `${what}: its content is no longer kept (retention.payload); "explain" still has its story`
    : `${what} was never taken in, or its story has expired (retention.story)`
}
