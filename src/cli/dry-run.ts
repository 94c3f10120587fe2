/**
 * `run --dry`: the daemon itself for a while, on an empty ledger of its own that is deleted
 * afterwards, with sinks that say what they would send.
 */
import { rmSync } from 'node:fs'
import type { Config } from '../config/config.ts'
import type { LoadedConfig } from '../config/load.ts'
import { createApp, type Rehearsal } from '../daemon/daemon.ts'
import type { PolledFeed } from '../feed-types/feed-type.ts'
import { createLogger, type Logger, prettyLines } from '../lib/logger.ts'
import { createProcessFolder, removeLeftFolders } from '../lib/private-files.ts'
import { renderFirstLines } from '../messages/message.ts'
import { renderSummary } from '../messages/summary-message.ts'
import { ensureRedis } from '../redis/embedded-redis.ts'
import { StoreError } from '../redis/health.ts'
import { createKeys } from '../redis/keys.ts'
import type { Delivery, Sink } from '../sinks/sink.ts'
import type { AccountLedger } from '../store/account-ledger.ts'
import { type FeedCounts, readAccounting } from '../store/accounts.ts'
import { scanRecords } from '../store/records.ts'
import type { CommonOptions, Context } from './context.ts'
import { formatSuppressed } from './ledger/item-text.ts'
import { connectToRunning } from './open/open-store.ts'
import { formatDuration, formatIsoTime, jsonText, pluralize, sanitize } from './terminal.ts'
import { readVersion } from './version.ts'

type Limits = Config['accounts'][number]['limits']

type Poller = Parameters<Rehearsal['wrapPoller']>[0]
type PollOutcome = Awaited<ReturnType<Poller['pollOnce']>>

interface DryRunOptions extends Pick<CommonOptions, 'output'> {
  forMs: number
  /** Whether whole messages are shown, instead of their first lines. */
  full: boolean
}

/**
 * Polls, routes, groups and renders for `forMs` or until the process is asked to stop. Sends
 * nothing, leaves the configured Redis alone, and asks the API within its limits.
 */
export async function runDry(
  context: Context,
  loaded: LoadedConfig,
  options: DryRunOptions,
): Promise<void> {
  // What people look for stands on standard output; troubles of polling beside it.
  const logger = createLogger({
    level: 'warn',
    pretty: await prettyLines(false),
    destination: { write: (line) => context.terminal.printError(line.trimEnd()) },
  })
  removeLeftFolders(folderName)
  const folder = createProcessFolder(folderName)
  const remove = (): void => rmSync(folder, { recursive: true, force: true })
  context.ending?.addEventListener('abort', remove, { once: true }) // a second Ctrl-C
  const budget = await findBudget(loaded.config)
  try {
    const dry = toDryConfig(loaded.config, folder, budget)
    const server = await ensureRedis(dry.redis, logger)
    try {
      await poll(context, { ...loaded, config: dry }, { ...options, logger, budget })
    } finally {
      await server.release()
    }
  } finally {
    budget.store?.redis.disconnect()
    remove()
    context.ending?.removeEventListener('abort', remove)
  }
}

const folderName = 'tocsin-dry'

/** Whose API slots the dry run takes. */
interface Budget {
  /** Where a daemon takes them; undefined: out of reach, and half of each limit is left to it. */
  store: Rehearsal['upstreamStore']
  /** Why it is out of reach. */
  problem: string | undefined
}

/** Longer than a Redis that runs takes to answer, ms. */
const patienceMs = 1_000

async function findBudget({ redis: config }: Config): Promise<Budget> {
  try {
    const redis = await connectToRunning(config, patienceMs)
    return { store: { redis, keys: createKeys(config.prefix) }, problem: undefined }
  } catch (error) {
    if (!(error instanceof StoreError)) throw error
    return { store: undefined, problem: error.message }
  }
}

async function poll(
  context: Context,
  loaded: LoadedConfig,
  { logger, budget, ...options }: DryRunOptions & { logger: Logger; budget: Budget },
): Promise<void> {
  const { clock, stop, terminal } = context
  const seen: Seen = { sent: new Map(), polls: new Map() }
  const rehearsal: Rehearsal = {
    wrapSink: createSinkWrapper(context, options, seen.sent),
    wrapPoller: (poller) => watchPolls(poller, seen.polls),
    upstreamStore: budget.store,
  }
  const app = createApp({ ...loaded, version: readVersion(), logger, rehearsal })
  const over = new AbortController()
  const beginMs = clock.now()
  try {
    const started = app.start().then(() => true)
    const stopped = clock.sleep(Infinity, AbortSignal.any([stop, over.signal])).then(() => false)
    const hasStarted = await Promise.race([started, stopped])
    if (!hasStarted) return
    await clock.sleep(options.forMs, stop)
    const found = await readReport(app.ledgers, loaded.config, seen)
    const report: DryReport = { sharesLimits: budget.store !== undefined, ...found }
    const lines = reportLines(report, budget, clock.now() - beginMs)
    terminal.print(options.output === 'json' ? jsonText(report) : lines.join('\n'))
  } finally {
    over.abort()
    await app.stop()
  }
}

/**
 * Tocsin's own alerts and canary would tell of the dry run, not of what is watched; an audit would
 * compare with a ledger that is empty. Half of each limit is left to a daemon that may run beside it
 * where the two cannot share their API slots.
 */
function toDryConfig(config: Config, folder: string, { store }: Budget): Config {
  const halved = ({ search, basic }: Limits): Limits => ({
    search: search / 2,
    basic: basic / 2,
  })
  return {
    ...config,
    accounts: store
      ? config.accounts
      : config.accounts.map((account) => ({ ...account, limits: halved(account.limits) })),
    feeds: config.feeds.map((feed) => ({ ...feed, audit: undefined })),
    redis: {
      ...config.redis,
      url: undefined,
      sentinels: undefined,
      cluster: undefined,
      embedded: folder,
    },
    http: { ...config.http, host: '127.0.0.1', port: 0 },
    selfAlerts: undefined,
    canary: undefined,
  }
}

interface DryMessage {
  sink: string
  destination: string
  /** Title, subject or first line. */
  headline: string
  events: readonly string[]
  text: string | null
}

function createSinkWrapper(
  { terminal, clock }: Context,
  { output, full }: Pick<DryRunOptions, 'output' | 'full'>,
  sent: Map<string, number>,
): (sink: Sink) => Sink {
  return (sink) => ({
    ...sink,
    reveals: false, // a terminal is no place for leaked secrets
    async send(delivery) {
      const message = describeMessage(sink, delivery)
      sent.set(sink.name, (sent.get(sink.name) ?? 0) + 1)
      const at = formatIsoTime(clock.now())
      if (output === 'json') terminal.print(jsonText({ at, ...message }))
      else terminal.print(messageLines(message, full).join('\n'))
      return { answer: 'dry run: not sent' }
    },
  })
}

function describeMessage(sink: Sink, delivery: Delivery): DryMessage {
  const { members, destination } = delivery
  const text = sink.preview?.(delivery).text ?? null
  const events = members.map(({ event }) => event.uid)
  const headline = formatHeadline(delivery)
  return { sink: sink.name, destination: destination.label, headline, events, text }
}

/** The same for every kind of sink; a batch for machines is named by its first event. */
function formatHeadline(delivery: Delivery): string {
  const { members, summary } = delivery
  if (summary !== undefined) return renderSummary({ ...delivery, summary }).title
  const [first, ...others] = members
  if (first === undefined) return 'no event'
  const { summary: title } = renderFirstLines(first, delivery)
  return others.length === 0 ? title : `${title}, and ${others.length} more`
}

function messageLines({ sink, destination, headline, text }: DryMessage, full: boolean): string[] {
  const to = destination === sink ? sink : `${sink} (${destination})`
  const rest = full && text !== null ? text.split('\n').map(bodyLine) : []
  return [sanitize(`would send to ${to}: ${headline}`, 2000), ...rest]
}

function bodyLine(line: string): string {
  const [indent = ''] = /^ */.exec(line) ?? []
  return `    ${indent}${sanitize(line, 2000)}`.trimEnd()
}

/** What was seen while it ran. */
interface Seen {
  /** Messages by sink. */
  sent: Map<string, number>
  /** How the polls of each feed ended. */
  polls: Map<string, PollsSeen>
}

interface PollsSeen {
  isRead: boolean
  /** Polls that failed, by reason; 1 for a reason not to poll, which is looked at again and again. */
  troubles: Record<string, number>
}

function watchPolls(poller: Poller, polls: Seen['polls']): Poller {
  return {
    async pollOnce(feed, asked) {
      const outcome = await poller.pollOnce(feed, asked)
      notePoll(polls, feed, asked.kind, outcome)
      return outcome
    },
  }
}

function notePoll(
  polls: Seen['polls'],
  { name }: PolledFeed,
  kind: 'feed' | 'sweep',
  outcome: PollOutcome,
): void {
  const { isRead, troubles } = polls.get(name) ?? { isRead: false, troubles: {} }
  polls.set(name, {
    isRead: isRead || (kind === 'feed' && outcome.status === 'caught_up'),
    troubles: { ...troubles, ...findTrouble(outcome, troubles) },
  })
}

function findTrouble(
  outcome: PollOutcome,
  troubles: Record<string, number>,
): Record<string, number> {
  const { status } = outcome
  if (status === 'failed') return { [outcome.reason]: (troubles[outcome.reason] ?? 0) + 1 }
  const isObstacle = !['caught_up', 'more', 'not_due', 'stopped'].includes(status)
  return isObstacle ? { [status]: 1 } : {}
}

interface DryReport {
  /** Whether API slots were those of the configured Redis. */
  sharesLimits: boolean
  feeds: FeedReport[]
  sinks: SinkReport[]
}

type FeedReport = { account: string; feed: string } & PollsSeen &
  Pick<FeedCounts, 'fetched' | 'new' | 'late' | 'duplicate' | 'quarantined'>

interface SinkReport {
  account: string
  sink: string
  messages: number
  /** Events in those messages. */
  events: number
  /** Events that still wait at the end, by state: `group`, `digest`, `held` and the like. */
  waiting: Record<string, number>
  /** Events that nobody would be told of, by reason. */
  suppressed: Record<string, number>
}

async function readReport(
  ledgers: readonly AccountLedger[],
  config: Config,
  { sent, polls }: Seen,
): Promise<Pick<DryReport, 'feeds' | 'sinks'>> {
  const report: Pick<DryReport, 'feeds' | 'sinks'> = { feeds: [], sinks: [] }
  for (const ledger of ledgers) {
    const { account } = ledger
    const { feeds, sinks } = await readAccounting(ledger)
    const suppressed = await countSuppressed(ledger)
    for (const { name: feed } of config.feeds.filter((one) => one.account === account)) {
      const counted = feeds[feed]
      const {
        fetched = 0,
        new: fresh = 0,
        late = 0,
        duplicate = 0,
        quarantined = 0,
      } = counted ?? {}
      const { isRead = false, troubles = {} } = polls.get(feed) ?? {}
      const counts = { fetched, new: fresh, late, duplicate, quarantined }
      report.feeds.push({ account, feed, ...counts, isRead, troubles })
    }
    for (const [sink, { delivered, pending }] of Object.entries(sinks)) {
      const waiting = Object.fromEntries(Object.entries(pending).filter(([, count]) => count > 0))
      report.sinks.push({
        account,
        sink,
        messages: sent.get(sink) ?? 0,
        events: delivered,
        waiting,
        suppressed: suppressed.get(sink) ?? {},
      })
    }
  }
  return report
}

async function countSuppressed(
  ledger: AccountLedger,
): Promise<Map<string, Record<string, number>>> {
  const bySink = new Map<string, Record<string, number>>()
  for await (const { items } of scanRecords(ledger)) {
    for (const item of items.filter(({ state }) => state === 'suppressed')) {
      const reasons = bySink.get(item.sink) ?? {}
      const reason = formatSuppressed(item)
      bySink.set(item.sink, { ...reasons, [reason]: (reasons[reason] ?? 0) + 1 })
    }
  }
  return bySink
}

function reportLines(
  { feeds, sinks }: Pick<DryReport, 'feeds' | 'sinks'>,
  { problem }: Budget,
  ranMs: number,
): string[] {
  return [
    '',
    `after ${formatDuration(ranMs)}; nothing was sent, and the ledger was not touched`,
    ...(problem === undefined ? [] : [`  asked at half of the limits: ${sanitize(problem)}`]),
    ...feeds.flatMap(feedLines),
    ...sinks.flatMap(sinkLines),
    ...conclusionLines(feeds, sinks),
  ]
}

function feedLines(report: FeedReport): string[] {
  const { account, feed, fetched, new: fresh, late, quarantined, isRead, troubles } = report
  return [
    `  feed ${feed} (account ${account}): ${fetched} fetched, ${fresh} new (${late} late), ${quarantined} quarantined`,
    ...(isRead ? [] : ['    never read to its end']),
    ...Object.entries(troubles).map(
      ([reason, count]) =>
        `    ${troubleWords[reason] ?? `${pluralize(count, 'poll')} failed: ${reason}`}`,
    ),
  ]
}

const troubleWords: Readonly<Record<string, string>> = {
  refused: 'refused: the service does not have it, or the key may not use it',
  quota: 'not polled: quota_reserve is reached',
  full: 'not polled: the private Redis is full',
}

/** An empty report says something of the feeds only if they were read. */
function conclusionLines(feeds: readonly FeedReport[], sinks: readonly SinkReport[]): string[] {
  const unread = feeds.filter(({ isRead }) => !isRead).length
  if (unread > 0) {
    const which = `${unread} of ${pluralize(feeds.length, 'feed')}`
    return [`  not all is known: ${which} never read to the end; see above, or run longer (--for)`]
  }
  return sinks.length === 0 ? ['  no event came, so nothing would have been sent'] : []
}

const waitingWords: Readonly<Record<string, string>> = {
  group: 'waiting for its group',
  digest: 'waiting for its digest',
}

function sinkLines({ sink, messages, events, waiting, suppressed }: SinkReport): string[] {
  const open = Object.entries(waiting).map(
    ([state, count]) => `    ${count} ${waitingWords[state] ?? `pending (${state})`}`,
  )
  const hidden = Object.entries(suppressed).map(
    ([reason, count]) => `    ${count} not sent: ${reason}`,
  )
  const told = `${pluralize(messages, 'message')} with ${pluralize(events, 'event')}`
  return [`  sink ${sink}: ${told}`, ...open, ...hidden]
}
