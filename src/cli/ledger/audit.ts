/**
 * The `audit` command: compares feeds with the API, checks the ledger's consistency, and prints
 * both.
 */

import { Command, Option } from 'commander'
import { auditFeed } from '../../audit/audit-feed.ts'
import { recordAudit } from '../../audit/audit-schedule.ts'
import { writeLedgerCheckNote } from '../../audit/ledger-check-schedule.ts'
import {
  type LedgerCheck,
  type DanglingRef,
  isConsistent,
  type MissingPlace,
  checkLedgers,
  type StrandedItem,
} from '../../audit/ledger-check.ts'
import {
  AuditError,
  type AuditResult,
  auditWindow,
  type AuditWindow,
  type Finding,
  type NoWindowReason,
} from '../../audit/pages.ts'
import { repair } from '../../audit/repair.ts'
import type { Config } from '../../config/config.ts'
import { type AuditParts, openAudits } from '../../daemon/for-commands/audits.ts'
import { type PolledFeed, polledFeeds } from '../../feed-types/feed-type.ts'
import { systemClock } from '../../lib/clock.ts'
import { readActiveHash } from '../../store/account-ledger.ts'
import { type FeedCounts, sumPending, type SinkCounts } from '../../store/accounts.ts'
import { peekFeed } from '../../store/feed-state.ts'
import { readTrimmedUntilMs } from '../../store/records.ts'
import { movableStates } from '../../delivery/item-acts.ts'
import { stateOf } from '../../store/item-states.ts'
import { UpstreamError } from '../../upstream/error.ts'
import {
  addCommonOptions,
  type CommonOptions,
  type Context,
  loadConfigFile,
  print,
} from '../context.ts'
import { ledgerFor, type OpenStore, notifyDaemon, withStore } from '../open/open-store.ts'
import { withUpstream } from '../open/open-upstream.ts'
import { durationParser, findBatchWaitMs } from '../options.ts'
import {
  pluralize,
  findNamed,
  sanitize,
  formatIsoTime,
  type Terminal,
  formatUtcTime,
} from '../terminal.ts'

interface AuditCommandOptions extends CommonOptions {
  feed?: string
  since: number
  repair?: boolean
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
    .option('--repair', 'take in what is missing; a running daemon delivers it')
    .addOption(
      new Option('--ledger', 'only whether the ledger adds up; asks the service nothing').conflicts(
        ['feed', 'since', 'repair'],
      ),
    )
    .action((options: AuditCommandOptions) => audit(context, options))
}

const dayMs = 86_400_000
export async function audit(context: Context, options: AuditCommandOptions): Promise<void> {
  const { config, hash } = loadConfigFile(context, options.config)
  if (options.ledger)
    return printAudit(context, options, await auditLedgerOnly(context, config, hash))
  const feeds = polledFeeds(config)
  const chosen = options.feed ? [findNamed(feeds, options.feed, 'feed')] : feeds
  const found = await withStore(config, async (store) => ({
    reports: await withUpstream(config, store, async (upstream, engineContext) => {
      const partsFor = openAudits(engineContext, upstream)
      const run = { context, options, config, store, partsFor }
      const found: AuditReport[] = []
      for (const feed of chosen) found.push(await auditOne(run, feed))
      return found
    }),
    checks: options.feed === undefined ? await auditLedger(context, store, hash) : [],
  }))
  printAudit(context, options, found)
}

interface AuditReports {
  reports: AuditReport[]
  /** Consistency checks of the account ledgers; empty when one feed was named. */
  checks: LedgerCheck[]
}

async function auditLedgerOnly(
  context: Context,
  config: Config,
  hash: string,
): Promise<AuditReports> {
  const checks = await withStore(config, (store) => auditLedger(context, store, hash))
  return { reports: [], checks }
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
  if ('failed' in report) return true
  if (!('result' in report)) return false
  const { result, left } = report
  return left ? left.length > 0 : result.missing.length + result.malformed.length > 0
}

interface AuditRun {
  context: Context
  options: AuditCommandOptions
  config: Config
  store: OpenStore
  partsFor: AuditParts
}

/** An error in one feed becomes its report, so that the reports of the others are still printed. */
async function auditOne(auditing: AuditRun, feed: PolledFeed): Promise<AuditReport> {
  const { context, options, partsFor } = auditing
  const { ledger, clock } = partsFor(feed)
  const state = await peekFeed(ledger, feed.name, clock.now())
  const bounds = { ...ledger, trimmedUntilMs: await readTrimmedUntilMs(ledger) }
  const window = auditWindow(bounds, feed, state, options.since)
  if (typeof window === 'string') return { feed, why: window }
  try {
    const result = await runAudit(auditing, feed, window)
    if (options.repair !== true) return { feed, result }
    return { feed, result, left: await repairFeed(auditing, feed, result) }
  } catch (error) {
    const isReportable = error instanceof UpstreamError || error instanceof AuditError
    if (!isReportable || context.stop.aborted) throw error
    return { feed, failed: error.message }
  } finally {
    context.terminal.progress('')
  }
}

async function runAudit(
  auditing: AuditRun,
  feed: PolledFeed,
  window: AuditWindow,
): Promise<AuditResult> {
  const { context, options, store, partsFor } = auditing
  const parts = { ...partsFor(feed), keepsEvents: options.repair === true }
  const steps = auditFeed(parts, feed, window, { kind: 'command', signal: context.stop })
  for (;;) {
    const step = await steps.next()
    if (!step.done) {
      context.terminal.progress(`${feed.name}: ${step.value} compared`)
      continue
    }
    await recordAudit(store.redis, store.keys, step.value)
    return step.value
  }
}

/**
 * Takes in what is missing, updates the note behind the metrics, and returns what is still missing.
 */
async function repairFeed(
  auditing: AuditRun,
  feed: PolledFeed,
  result: AuditResult,
): Promise<Finding[]> {
  const { config, store, partsFor } = auditing
  const { clock, plan } = partsFor(feed)
  const options = {
    ledger: ledgerFor(store, feed.account),
    clock,
    plan,
    batchWaitMs: (name: string) => findBatchWaitMs(config, name),
    queue: (account: string) => notifyDaemon(store, [account]),
  }
  const left = await repair(options, feed, result)
  const repaired = result.missing.length - left.length + result.malformed.length
  const after = { ...result, missing: left, malformed: [] }
  await recordAudit(store.redis, store.keys, after, repaired)
  return left
}

export type AuditReport = { feed: PolledFeed } & (
  | { why: NoWindowReason }
  | { failed: string }
  /** `left`: what is missing after a repair; undefined: no repair was asked for. */
  | { result: AuditResult; left?: Finding[] }
)

/** Findings printed for people; JSON has all of them. */
const shownFindings = 50

const findingReasons = {
  never_taken_in: 'never taken in',
  record_gone: 'its record is gone',
  awaited: 'visible perhaps since the feed last passed its place; the next rescan takes it in',
} as const

export function auditJson(report: AuditReport): Record<string, unknown> {
  const { feed } = report
  if ('failed' in report) return { feed: feed.name, compared: false, failed: report.failed }
  if ('why' in report) return { feed: feed.name, compared: false, why: report.why }
  const { result, left } = report
  return {
    feed: feed.name,
    compared: true,
    from: formatIsoTime(result.fromMs),
    to: formatIsoTime(result.toMs),
    shown: result.shown,
    accounted: result.accounted,
    missing: result.missing.map(findingJson),
    quarantined: result.quarantined,
    malformed_missing: result.malformed.length,
    awaited: result.awaited.map(findingJson),
    extra: result.extra.map(({ uid, firstSeenMs, closed }) => ({
      uid,
      first_seen: formatIsoTime(firstSeenMs),
      closed: closed ?? null,
    })),
    ...(left && { still_missing: left.map(findingJson) }),
  }
}

function findingJson({ uid, createdAtMs, why }: Finding): Record<string, unknown> {
  return { uid, created: formatIsoTime(createdAtMs), why }
}

export function auditLines(terminal: Terminal, report: AuditReport): string[] {
  const { feed } = report
  const head = terminal.paint('bold', feed.name)
  if ('failed' in report) {
    return [`${head}: ${terminal.paint('red', 'not compared')}: ${sanitize(report.failed, 1_000)}`]
  }
  if ('why' in report) return [`${head}: not compared: ${noWindowReasons[report.why]}`]
  const { result, left } = report
  const { fromMs, toMs, shown, accounted, quarantined, missing, malformed, awaited } = result
  const lost = missing.length + malformed.length
  const window = `${formatUtcTime(fromMs)} to ${formatUtcTime(toMs)}`
  return [
    `${head}: ${window}: ${pluralize(shown, 'event')} shown, ${accounted} in the ledger, ${verdict(terminal, lost, quarantined)}`,
    ...quarantineLines(feed.name, quarantined),
    ...findingLines(missing, 'missing'),
    ...malformedLines(malformed.length),
    ...findingLines(awaited, 'awaited'),
    ...extraLines(result.extra),
    ...leftLines(lost, left),
  ]
}

/**
 * Quarantined items are stored but nobody was alerted to them, so with any the verdict is never
 * "nothing is missing".
 */
function verdict(terminal: Terminal, lost: number, quarantined: number): string {
  if (lost > 0) return terminal.paint('red', `${lost} missing`)
  return quarantined > 0
    ? terminal.paint('yellow', `${quarantined} could not be read`)
    : terminal.paint('green', 'nothing is missing')
}

function quarantineLines(feed: string, count: number): string[] {
  if (count === 0) return []
  return [
    `  quarantined  ${pluralize(count, 'item')}, not read and not sent: tocsin items list --feed ${feed} --state quarantined`,
  ]
}

function malformedLines(count: number): string[] {
  if (count === 0) return []
  return [
    `  missing  ${pluralize(count, 'malformed item')}: not in the quarantine; --repair sets them aside`,
  ]
}

function leftLines(lost: number, left: readonly Finding[] | undefined): string[] {
  if (left === undefined || lost === 0) return []
  if (left.length === 0) return ['  all of it is taken in; a running daemon delivers it']
  return [`  ${lost - left.length} taken in, ${left.length} still missing: run it again`]
}

function findingLines(findings: readonly Finding[], word: string): string[] {
  const lines = findings.slice(0, shownFindings).map(({ uid, createdAtMs, why }) => {
    return `  ${word}  ${sanitize(uid)}, created ${formatUtcTime(createdAtMs)}: ${findingReasons[why]}`
  })
  return [...lines, ...moreLines(findings.length)]
}

function extraLines(extra: AuditResult['extra']): string[] {
  const lines = extra.slice(0, shownFindings).map(({ uid, firstSeenMs, closed }) => {
    const what =
      closed === undefined ? 'no longer shown by the service' : `${closed} at the service`
    return `  extra  ${sanitize(uid)}, taken in ${formatUtcTime(firstSeenMs)}: ${what}`
  })
  return [...lines, ...moreLines(extra.length)]
}

function moreLines(count: number): string[] {
  return count > shownFindings ? [`  … and ${count - shownFindings} more: --output json`] : []
}

const noWindowReasons: Record<NoWindowReason, string> = {
  not_read: 'the feed was not read to its end yet, or not since it was changed or rewound',
  behind: 'the feed was last read to its end before all that is to be compared; tocsin feeds list',
}

/** Checks the consistency of the account ledgers and records the result for the metrics. */
export async function auditLedger(
  context: Context,
  store: OpenStore,
  hash: string,
): Promise<LedgerCheck[]> {
  const { terminal, stop } = context
  const steps = checkLedgers(store.ledgers)
  try {
    for (;;) {
      const step = await steps.next()
      stop.throwIfAborted()
      if (step.done) {
        await recordLedgerCheck(store, hash, step.value)
        return step.value
      }
      terminal.progress(`ledger: ${pluralize(step.value, 'record')} read`)
    }
  } finally {
    terminal.progress('')
  }
}

/**
 * Records the result only if the replicas run this configuration: another one may lack an account
 * that leads messages.
 */
async function recordLedgerCheck(
  { redis, keys }: OpenStore,
  hash: string,
  checks: LedgerCheck[],
): Promise<void> {
  const active = (await readActiveHash(redis, keys)) ?? hash
  if (active === hash) await writeLedgerCheckNote(redis, keys, checks, systemClock.now())
}

/** The result of a consistency check, as JSON and as text. */

export function ledgerJson(check: LedgerCheck): Record<string, unknown> {
  const { account, atMs, records, unfiled, undated, accounting, stranded, dangling, hasMore } =
    check
  return {
    ledger: account,
    whole: isConsistent(check),
    at: formatIsoTime(atMs),
    records,
    ...(unfiled !== 0 && { unfiled }),
    ...(Object.keys(undated).length > 0 && { undated }),
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
    dangling,
    has_more: hasMore,
  }
}

function countPendingInRecords(
  { differences }: LedgerCheck,
  sink: string,
  account: SinkCounts,
): number {
  return differences.find((one) => one.sink === sink)?.found ?? sumPending(account)
}

export function ledgerLines(terminal: Terminal, check: LedgerCheck): string[] {
  const { account, atMs, records, accounting, stranded, dangling } = check
  const verdict = isConsistent(check)
    ? terminal.paint('green', 'all of it adds up')
    : terminal.paint('red', 'it does not add up')
  const head = terminal.paint('bold', `ledger of ${account}`)
  return [
    `${head}: ${pluralize(records, 'record')} as of ${formatUtcTime(atMs)}, ${verdict}`,
    ...Object.entries(accounting.feeds).map(([feed, counts]) => feedLine(feed, counts)),
    ...Object.entries(accounting.sinks).map(([sink, counts]) => sinkLine(check, sink, counts)),
    ...unfiledLines(check),
    ...undatedLines(check),
    ...stranded.slice(0, shownFindings).map(strandedLine),
    ...moreLines(stranded.length),
    ...dangling.slice(0, shownFindings).map(danglingLine),
    ...moreLines(dangling.length),
    ...remedyLines(check),
  ]
}

function feedLine(feed: string, counts: FeedCounts): string {
  const { fetched, new: fresh, duplicate, quarantined, baseline, unaccounted } = counts
  const sum = `${fresh} new + ${duplicate} duplicate + ${quarantined} quarantined + ${baseline} baseline`
  return `  feed ${sanitize(feed)}: ${fetched} fetched = ${sum}${formatUnaccounted(unaccounted)}`
}

function sinkLine(check: LedgerCheck, sink: string, counts: SinkCounts): string {
  const { created, replayed, delivered, dead, suppressed, diverted, unaccounted } = counts
  const pending = sumPending(counts)
  const found = countPendingInRecords(check, sink, counts)
  const ended = `${delivered} delivered + ${dead} dead + ${suppressed} suppressed + ${diverted} diverted`
  const scan = found === pending ? 'the records agree' : `the records have ${found} pending`
  return `  sink ${sanitize(sink)}: ${created} created + ${replayed} replayed = ${ended} + ${pending} pending${formatUnaccounted(unaccounted)}; ${scan}`
}

function formatUnaccounted(unaccounted: number): string {
  return unaccounted === 0 ? '' : `, ${unaccounted} unaccounted for`
}

function unfiledLines({ unfiled }: LedgerCheck): string[] {
  if (unfiled === 0) return []
  const what = unfiled > 0 ? 'that were made are not in it' : 'are in it that nobody made'
  return [`  the index of records: ${pluralize(Math.abs(unfiled), 'record')} ${what}`]
}

function undatedLines({ undated }: LedgerCheck): string[] {
  return Object.entries(undated).map(
    ([sink, count]) =>
      `  sink ${sanitize(sink)}: the counts by day have ${pluralize(Math.abs(count), 'item')} too ${count > 0 ? 'few' : 'many'}`,
  )
}

const lackReasons: Record<MissingPlace, string> = {
  due: 'nothing says when it is due',
  orphans: 'nothing would take it back with its sink',
  collection: 'it is not in its group',
  timer: 'its group has no timer',
  message: 'its frozen message is gone',
  message_due: 'nothing says when its frozen message is due',
}

function strandedLine({ uid, sink, lacks, ...item }: StrandedItem): string {
  return `  stranded  ${sanitize(uid)} for ${sanitize(sink)}, ${stateOf(item)}: ${lackReasons[lacks]}`
}

const placeNames: Record<DanglingRef['place'], string> = {
  due: 'what is due',
  timers: 'the timers',
  orphans: 'what waits for a removed sink',
  dead: 'the dead letters',
  collect: 'the members of a group or batch',
  records: 'the index of records',
}

const danglingReasons: Record<DanglingRef['why'], string> = {
  gone: 'what it names is gone',
  other_state: 'what it names does not belong there',
  unfiled: 'the record that it names is not in the index',
}

function danglingLine({ ref, place, why }: DanglingRef): string {
  return `  dangling  ${sanitize(ref)}, among ${placeNames[place]}: ${danglingReasons[why]}`
}

function remedyLines(check: LedgerCheck): string[] {
  if (isConsistent(check)) return []
  const waiting = check.stranded.filter((item) => movableStates.has(stateOf(item)))
  const sinks = [...new Set(waiting.map(({ sink }) => sanitize(sink)))]
  return [
    ...sinks.map(
      (sink) =>
        `  all that waits for ${sink}, not only this, can be sent elsewhere: tocsin items move --sink ${sink} --to <sink>; or given up: tocsin items discard --sink ${sink}`,
    ),
    '  somebody changed the ledger, or Tocsin has a defect: keep the log and a copy of Redis, and report it',
  ]
}
