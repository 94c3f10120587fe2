/**
 * The `audit` command: compares feeds with the API, checks the ledger's consistency, and prints
 * both.
 */

import { Command, Option } from 'commander'
import { isReserveReached, type PolledFeed, polledFeeds } from '../../feeds/types/polled-feed.ts'
import { systemClock } from '../../lib/clock.ts'
import {
  auditFeed,
  type AuditResult,
  auditWindow,
  type NoWindowReason,
} from '../../operator/audit/audit-feed.ts'
import { AuditError, type AuditWindow } from '../../operator/audit/audit-pages.ts'
import { checkLedgers, isConsistent, type LedgerCheck } from '../../operator/audit/ledger-check.ts'
import { type SinkCounts, sumPending } from '../../store/accounts.ts'
import { peekFeed } from '../../store/feed-state.ts'
import { readTrimmedUntilMs } from '../../store/records.ts'
import { movableStates } from '../../delivery/item-acts.ts'
import { stateOf } from '../../store/item-states.ts'
import type { UpstreamClient } from '../../upstream/client.ts'
import { UpstreamError } from '../../upstream/error.ts'
import { readQuota } from '../../upstream/rate-limits.ts'
import {
  addCommonOptions,
  type CommonOptions,
  type Context,
  loadConfigFile,
  print,
} from '../context.ts'
import { ledgerFor, type OpenStore, withStore } from '../open/open-store.ts'
import { withUpstream } from '../open/open-upstream.ts'
import { durationParser } from '../options.ts'
import {
  findNamed,
  formatIsoTime,
  formatUtcTime,
  pluralize,
  sanitize,
  type Terminal,
} from '../terminal.ts'

interface AuditCommandOptions extends CommonOptions {
  feed?: string
  since: number
  ledger?: true
}

export function auditCommand(context: Context): Command {
  return addCommonOptions(new Command('audit'))
    .option('--feed <name>', 'only this feed')
    .addOption(
      new Option('--since <duration>', 'how far back')
        .argParser(durationParser('1m'))
        .default(7 * dayMs, '7d'),
    )
    .addOption(
      new Option('--ledger', 'check the ledger alone; ask the service nothing').conflicts([
        'feed',
        'since',
      ]),
    )
    .action((options: AuditCommandOptions) => audit(context, options))
}

const dayMs = 86_400_000

export async function audit(context: Context, options: AuditCommandOptions): Promise<void> {
  const { config } = loadConfigFile(context, options.config)
  if (options.ledger) {
    const checks = await withStore(config, (store) => auditLedger(context, store))
    return printAudit(context, options, { reports: [], checks })
  }
  const feeds = polledFeeds(config)
  const chosen = options.feed ? [findNamed(feeds, options.feed, 'feed')] : feeds
  const found = await withStore(config, async (store) => ({
    reports: await withUpstream(config, store, async (upstream) => {
      const found: AuditReport[] = []
      for (const feed of chosen) {
        const client = upstream.client(feed.account)
        found.push(await auditOne({ context, store, client, backMs: options.since }, feed))
      }
      return found
    }),
    checks: options.feed === undefined ? await auditLedger(context, store) : [],
  }))
  printAudit(context, options, found)
}

interface AuditReports {
  reports: AuditReport[]
  /** Consistency checks of the account ledgers; empty when one feed was named. */
  checks: LedgerCheck[]
}

function printAudit(
  context: Context,
  options: AuditCommandOptions,
  { reports, checks }: AuditReports,
): void {
  const { terminal } = context
  print(context, options, {
    json: [...reports.map(auditJson), ...checks.map(ledgerJson)],
    lines: () => [
      ...reports.flatMap((report) => auditLines(terminal, report)),
      ...checks.flatMap((check) => ledgerLines(terminal, check)),
    ],
  })
  if (reports.some(isNotClean) || !checks.every(isConsistent)) context.exitCode = 1
}

function isNotClean(report: AuditReport): boolean {
  return 'failed' in report || ('result' in report && report.result.missing.length > 0)
}

interface AuditRun {
  context: Context
  store: OpenStore
  client: UpstreamClient
  backMs: number
}

/** An error in one feed becomes its report, so that the reports of the others are still printed. */
async function auditOne(run: AuditRun, feed: PolledFeed): Promise<AuditReport> {
  const { context, store, backMs } = run
  const ledger = ledgerFor(store, feed.account)
  const state = await peekFeed(ledger, feed.name, systemClock.now())
  const bounds = { ...ledger, trimmedUntilMs: await readTrimmedUntilMs(ledger) }
  const window = auditWindow(bounds, feed, state, backMs)
  if (typeof window === 'string') return { feed, why: window }
  try {
    return { feed, result: await runAudit(run, feed, window) }
  } catch (error) {
    const isReportable = error instanceof UpstreamError || error instanceof AuditError
    if (!isReportable || context.stop.aborted) throw error
    return { feed, failed: error.message }
  } finally {
    context.terminal.progress('')
  }
}

async function runAudit(
  { context, store, client }: AuditRun,
  feed: PolledFeed,
  window: AuditWindow,
): Promise<AuditResult> {
  const steps = auditFeed(
    {
      client,
      ledger: ledgerFor(store, feed.account),
      clock: systemClock,
      signal: context.stop,
      async isReserveReached() {
        const quota = await readQuota(store.redis, store.keys, feed.account)
        return isReserveReached(feed, quota, systemClock.now())
      },
    },
    feed,
    window,
  )
  for (;;) {
    const step = await steps.next()
    if (step.done) return step.value
    context.terminal.progress(`${feed.name}: ${step.value} compared`)
  }
}

type AuditReport = { feed: PolledFeed } & (
  | { why: NoWindowReason }
  | { failed: string }
  | { result: AuditResult }
)

/** Findings of a kind that are printed for people; JSON has all of them. */
const shownFindings = 50

/** `  missing  <what>: <why>`, a line each. */
function findingLines(kind: string, findings: readonly (readonly [string, string])[]): string[] {
  const more = findings.length - shownFindings
  return [
    ...findings
      .slice(0, shownFindings)
      .map(([what, why]) => `  ${kind}  ${sanitize(what)}: ${why.replaceAll('_', ' ')}`),
    ...(more > 0 ? [`  … and ${more} more: --output json`] : []),
  ]
}

function auditJson(report: AuditReport): Record<string, unknown> {
  const { feed } = report
  if (!('result' in report)) {
    const { feed: _feed, ...why } = report
    return { feed: feed.name, compared: false, ...why }
  }
  const { result } = report
  return {
    feed: feed.name,
    compared: true,
    from: formatIsoTime(result.fromMs),
    to: formatIsoTime(result.toMs),
    shown: result.shown,
    accounted: result.accounted,
    missing: result.missing.map(({ uid, createdAtMs, why }) => ({
      uid,
      created: formatIsoTime(createdAtMs),
      why,
    })),
    malformed: result.malformed,
    awaited: result.awaited,
  }
}

function auditLines(terminal: Terminal, report: AuditReport): string[] {
  const head = terminal.paint('bold', report.feed.name)
  if ('failed' in report) {
    return [`${head}: ${terminal.paint('red', 'not compared')}: ${sanitize(report.failed, 1_000)}`]
  }
  if ('why' in report) return [`${head}: not compared: ${noWindowReasons[report.why]}`]
  const { result } = report
  const { fromMs, toMs, shown, accounted, malformed, missing, awaited } = result
  const window = `${formatUtcTime(fromMs)} to ${formatUtcTime(toMs)}`
  const listed = `tocsin items list --feed ${report.feed.name} --state quarantined`
  return [
    `${head}: ${window}: ${pluralize(shown, 'event')} shown, ${accounted} in the ledger, ${verdict(terminal, result)}`,
    ...(malformed > 0 ? [`  malformed  ${pluralize(malformed, 'item')}: ${listed}`] : []),
    ...(awaited > 0
      ? [`  awaited  ${pluralize(awaited, 'event')}: the next reading takes in`]
      : []),
    ...findingLines(
      'missing',
      missing.map(({ uid, createdAtMs, why }) => [
        `${uid}, created ${formatUtcTime(createdAtMs)}`,
        why,
      ]),
    ),
    ...(missing.some(({ why }) => why === 'never_taken_in')
      ? [
          `  takes in what was never taken in: tocsin feeds rewind ${report.feed.name} --to <duration>`,
        ]
      : []),
  ]
}

/** Nobody was told of what is malformed, so with any the verdict is never "nothing is missing". */
function verdict(
  terminal: Terminal,
  { missing, malformed }: Pick<AuditResult, 'missing' | 'malformed'>,
): string {
  if (missing.length > 0) return terminal.paint('red', `${missing.length} missing`)
  return malformed > 0
    ? terminal.paint('yellow', `${malformed} could not be read`)
    : terminal.paint('green', 'nothing is missing')
}

const noWindowReasons: Record<NoWindowReason, string> = {
  not_read: 'the feed was not read to its end yet, or not since it was changed or rewound',
  behind: 'the feed was last read to its end before all that is to be compared; tocsin feeds list',
}

/** Checks the consistency of the account ledgers. */
async function auditLedger(
  { terminal, stop }: Context,
  { ledgers }: OpenStore,
): Promise<LedgerCheck[]> {
  const steps = checkLedgers(ledgers)
  try {
    for (;;) {
      const step = await steps.next()
      stop.throwIfAborted()
      if (step.done) return step.value
      terminal.progress(`ledger: ${pluralize(step.value, 'record')} read`)
    }
  } finally {
    terminal.progress('')
  }
}

function ledgerJson(check: LedgerCheck): Record<string, unknown> {
  const { account, atMs, records, unfiled, accounting, stranded, misfiled } = check
  return {
    ledger: account,
    whole: isConsistent(check),
    at: formatIsoTime(atMs),
    records,
    ...(unfiled !== 0 && { unfiled }),
    feeds: Object.entries(accounting.feeds).map(([feed, counts]) => ({ feed, ...counts })),
    sinks: Object.entries(accounting.sinks).map(([sink, counts]) => ({
      sink,
      ...counts,
      pending_in_records: countPendingInRecords(check, sink, counts),
    })),
    stranded: stranded.map(({ heldFor, ...item }) => ({
      ...item,
      state: stateOf(item),
      held_for: heldFor ?? null,
    })),
    misfiled: misfiled.map(({ recordId, why }) => ({ record: recordId, why })),
  }
}

function countPendingInRecords(
  { differences }: LedgerCheck,
  sink: string,
  account: SinkCounts,
): number {
  return differences.find((one) => one.sink === sink)?.found ?? sumPending(account)
}

function ledgerLines(terminal: Terminal, check: LedgerCheck): string[] {
  const { account, atMs, records, unfiled, stranded, misfiled } = check
  const isWhole = isConsistent(check)
  const said = isWhole
    ? terminal.paint('green', 'all of it adds up')
    : terminal.paint('red', 'it does not add up')
  const head = terminal.paint('bold', `ledger of ${account}`)
  const waiting = stranded.filter((item) => movableStates.has(stateOf(item)))
  const sinks = [...new Set(waiting.map(({ sink }) => sanitize(sink)))]
  return [
    `${head}: ${pluralize(records, 'record')} as of ${formatUtcTime(atMs)}, ${said}`,
    ...findingLines('uneven', unevenSums(check)),
    ...(unfiled === 0 ? [] : [`  unfiled  ${pluralize(unfiled, 'record')} not in the index`]),
    ...findingLines(
      'stranded',
      stranded.map((item) => [
        `${item.uid} for ${item.sink}, ${stateOf(item)}`,
        `lacks ${item.lacks}`,
      ]),
    ),
    ...findingLines(
      'misfiled',
      misfiled.map(({ recordId, why }) => [recordId, why]),
    ),
    ...sinks.map(
      (sink) =>
        `  sends all that waits for ${sink} elsewhere: tocsin items move --sink ${sink} --to <sink>`,
    ),
    ...(isWhole
      ? []
      : [
          '  somebody changed the ledger, or Tocsin has a defect: keep the log and a copy of Redis, and report it',
        ]),
  ]
}

function unevenSums({ accounting, differences }: LedgerCheck): [string, string][] {
  const sums = [
    ...Object.entries(accounting.feeds).map(([name, counts]) => [`feed ${name}`, counts] as const),
    ...Object.entries(accounting.sinks).map(([name, counts]) => [`sink ${name}`, counts] as const),
  ].filter(([, { unaccounted }]) => unaccounted !== 0)
  return [
    ...sums.map(([what, { unaccounted }]): [string, string] => [
      what,
      `${unaccounted} unaccounted for`,
    ]),
    ...differences.map(({ sink, counted, found }): [string, string] => [
      `sink ${sink}`,
      `the counters have ${counted} pending, the records ${found}`,
    ]),
  ]
}
