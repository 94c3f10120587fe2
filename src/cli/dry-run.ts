/**
 * `run --dry`: the daemon itself for a while, on an empty ledger of its own that is deleted
 * afterwards, with sinks that say what they would send.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Config } from '../config/config.ts'
import type { LoadedConfig } from '../config/load.ts'
import { createApp } from '../daemon/daemon.ts'
import { createLogger, type Logger, prettyLines } from '../lib/logger.ts'
import { renderMessage } from '../messages/message.ts'
import { renderSummary } from '../messages/summary-message.ts'
import { ensureRedis } from '../redis/embedded-redis.ts'
import type { Delivery, Sink } from '../sinks/sink.ts'
import type { AccountLedger } from '../store/account-ledger.ts'
import { type FeedCounts, readAccounting } from '../store/accounts.ts'
import { scanRecords } from '../store/records.ts'
import type { CommonOptions, Context } from './context.ts'
import { formatSuppressed } from './ledger/explain.ts'
import { formatDuration, formatIsoTime, jsonText, pluralize, sanitize } from './terminal.ts'
import { readVersion } from './version.ts'

type Limits = Config['accounts'][number]['limits']

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
  const folder = mkdtempSync(join(tmpdir(), 'tocsin-dry-'))
  try {
    const dry = toDryConfig(loaded.config, folder)
    const server = await ensureRedis(dry.redis, logger)
    try {
      await poll(context, { ...loaded, config: dry }, { ...options, logger })
    } finally {
      await server.release()
    }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

async function poll(
  context: Context,
  loaded: LoadedConfig,
  { logger, ...options }: DryRunOptions & { logger: Logger },
): Promise<void> {
  const { clock, stop, terminal } = context
  const sent = new Map<string, number>()
  const wrapSink = createSinkWrapper(context, options, sent)
  const app = createApp({ ...loaded, version: readVersion(), logger, wrapSink })
  const over = new AbortController()
  const beginMs = clock.now()
  try {
    const started = app.start().then(() => true)
    const stopped = clock.sleep(Infinity, AbortSignal.any([stop, over.signal])).then(() => false)
    const hasStarted = await Promise.race([started, stopped])
    if (!hasStarted) return
    await clock.sleep(options.forMs, stop)
    const report = await readReport(app.ledgers, sent)
    const lines = reportLines(report, clock.now() - beginMs)
    terminal.print(options.output === 'json' ? jsonText(report) : lines.join('\n'))
  } finally {
    over.abort()
    await app.stop()
  }
}

/**
 * Tocsin's own alerts and canary would tell of the dry run, not of what is watched; an audit would
 * compare with a ledger that is empty. Half of each limit is left to a daemon that runs beside it,
 * because the two do not share a ledger of requests.
 */
function toDryConfig(config: Config, folder: string): Config {
  const halved = ({ search, basic }: Limits): Limits => ({
    search: search / 2,
    basic: basic / 2,
  })
  return {
    ...config,
    accounts: config.accounts.map((account) => ({ ...account, limits: halved(account.limits) })),
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
  const { summary: title } = renderMessage(first, delivery)
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

interface DryReport {
  feeds: FeedReport[]
  sinks: SinkReport[]
}

type FeedReport = { account: string; feed: string } & Pick<
  FeedCounts,
  'fetched' | 'new' | 'late' | 'duplicate' | 'quarantined'
>

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
  sent: ReadonlyMap<string, number>,
): Promise<DryReport> {
  const report: DryReport = { feeds: [], sinks: [] }
  for (const ledger of ledgers) {
    const { account } = ledger
    const { feeds, sinks } = await readAccounting(ledger)
    const suppressed = await countSuppressed(ledger)
    for (const [feed, { fetched, new: fresh, late, duplicate, quarantined }] of Object.entries(
      feeds,
    )) {
      report.feeds.push({ account, feed, fetched, new: fresh, late, duplicate, quarantined })
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

function reportLines({ feeds, sinks }: DryReport, ranMs: number): string[] {
  return [
    '',
    `after ${formatDuration(ranMs)}; nothing was sent, and the ledger was not touched`,
    ...feeds.map(
      ({ account, feed, fetched, new: fresh, late, quarantined }) =>
        `  feed ${feed} (account ${account}): ${fetched} fetched, ${fresh} new (${late} late), ${quarantined} quarantined`,
    ),
    ...sinks.flatMap(sinkLines),
    ...(sinks.length === 0 ? ['  no event came, so nothing would have been sent'] : []),
  ]
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
