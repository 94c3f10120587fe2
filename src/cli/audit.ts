import { Command, InvalidArgumentError, Option } from 'commander'
import { auditFeed } from '../audit/audit-feed.ts'
import { noteOf, readAuditNotes, writeAuditNote } from '../audit/audit-schedule.ts'
import { writeProofNote } from '../audit/ledger-check-schedule.ts'
import {
  type BookProof,
  type DanglingRef,
  isWhole,
  type Lack,
  proveLedger,
  type StrandedItem,
} from '../audit/ledger-check.ts'
import {
  AuditError,
  type AuditResult,
  auditWindow,
  type AuditWindow,
  type Finding,
  type NoWindow,
} from '../audit/pages.ts'
import { repair } from '../audit/repair.ts'
import type { Config } from '../config/config.ts'
import { type AuditParts, buildAuditParts } from '../daemon/audits.ts'
import { collectingSinks } from '../daemon/grouping.ts'
import { polledFeeds } from '../daemon/polled-feeds.ts'
import { buildSecrets } from '../daemon/sinks.ts'
import type { PolledFeed } from '../feed-types/feed-type.ts'
import { systemClock } from '../lib/clock.ts'
import { duration } from '../lib/config-fields.ts'
import { createRouter } from '../routing/router.ts'
import { activeHash } from '../store/account-ledger.ts'
import { type FeedAccount, pendingOf, type SinkAccount } from '../store/accounts.ts'
import { peekFeed } from '../store/feed-state.ts'
import { trimmedUntilMs } from '../store/records.ts'
import { ServiceError } from '../upstream/error.ts'
import {
  addCommonOptions,
  type CommonOptions,
  type Context,
  loadConfigFile,
  print,
} from './context.ts'
import {
  bookOf,
  destinationsBySink,
  needIndex,
  type OpenLedger,
  tellDaemon,
  withLedger,
} from './open-ledger.ts'
import { withService } from './open-service.ts'
import { batchWaitOf } from './options.ts'
import { counted, findNamed, harmless, isoTime, type Terminal, timeInWords } from './terminal.ts'

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
      new Option('--since <duration>', 'how far back').argParser(span).default(7 * dayMs, '7d'),
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
const spanField = duration('How far back.', '1m')

function span(text: string): number {
  const parsed = spanField.safeParse(text)
  if (parsed.success) return parsed.data
  throw new InvalidArgumentError('Write a number and its unit, such as 12h or 7d.')
}

async function audit(context: Context, options: AuditCommandOptions): Promise<void> {
  const { config, hash } = loadConfigFile(context, options.config)
  if (options.ledger) return printAudit(context, options, await ledgerAlone(context, config, hash))
  const feeds = polledFeeds(config)
  const chosen = options.feed ? [findNamed(feeds, options.feed, 'feed')] : feeds
  const destinations = destinationsBySink(config)
  const sinks = new Map([...destinations].map(([name, own]) => [name, { destinations: own }]))
  const found = await withLedger(config, async (ledger) => ({
    reports: await withService(config, ledger, async (service, shared) => {
      const collecting = { sinks: collectingSinks(shared, sinks) }
      const router = createRouter(config.route)
      const delivery = { router, collecting, secrets: buildSecrets(shared) }
      const partsOf = buildAuditParts(shared, service, delivery)
      const asked = { context, options, config, ledger, partsOf }
      const found: AuditReport[] = []
      for (const feed of chosen) found.push(await auditOne(asked, feed))
      return found
    }),
    proofs: options.feed === undefined ? await auditLedger(context, ledger, hash) : [],
  }))
  printAudit(context, options, found)
}

interface Audited {
  reports: AuditReport[]
  /** Of the ledger itself; empty where one feed was asked for. */
  proofs: BookProof[]
}

async function ledgerAlone(context: Context, config: Config, hash: string): Promise<Audited> {
  const proofs = await withLedger(config, (ledger) => auditLedger(context, ledger, hash))
  return { reports: [], proofs }
}

function printAudit(
  context: Context,
  options: AuditCommandOptions,
  { reports, proofs }: Audited,
): void {
  const { terminal } = context
  print(context, options, {
    json: [...reports.map(auditJson), ...proofs.map(ledgerJson)],
    lines: () => [
      ...reports.flatMap((report) => auditLines(terminal, report)),
      ...proofs.flatMap((proof) => ledgerLines(terminal, proof)),
    ],
  })
  if (reports.some(isNotClean) || !proofs.every(isWhole)) context.exitCode = 1
}

function isNotClean(report: AuditReport): boolean {
  if ('failed' in report) return true
  if (!('result' in report)) return false
  const { result, left } = report
  return left ? left.length > 0 : result.missing.length + result.malformed.length > 0
}

interface Auditing {
  context: Context
  options: AuditCommandOptions
  config: Config
  ledger: OpenLedger
  partsOf: AuditParts
}

/** What fails of one feed is told with what was found of the others. */
async function auditOne(auditing: Auditing, feed: PolledFeed): Promise<AuditReport> {
  const { context, options, partsOf } = auditing
  const { book, clock } = partsOf(feed)
  const state = await peekFeed(book, feed.name, clock.now())
  const kept = { ...book, trimmedUntilMs: await trimmedUntilMs(book) }
  const window = auditWindow(kept, feed, state, options.since)
  if (typeof window === 'string') return { feed, why: window }
  try {
    const result = await runAudit(auditing, feed, window)
    if (options.repair !== true) return { feed, result }
    return { feed, result, left: await mend(auditing, feed, result) }
  } catch (error) {
    const isTold = error instanceof ServiceError || error instanceof AuditError
    if (!isTold || context.stop.aborted) throw error
    return { feed, failed: error.message }
  } finally {
    context.terminal.progress('')
  }
}

async function runAudit(
  auditing: Auditing,
  feed: PolledFeed,
  window: AuditWindow,
): Promise<AuditResult> {
  const { context, options, partsOf } = auditing
  const parts = { ...partsOf(feed), keepsEvents: options.repair === true }
  const steps = auditFeed(parts, feed, window, { kind: 'command', signal: context.stop })
  for (;;) {
    const step = await steps.next()
    if (!step.done) {
      context.terminal.progress(`${feed.name}: ${step.value} compared`)
      continue
    }
    await note(auditing, step.value)
    return step.value
  }
}

/** What metrics go by is made better by a look at less only as far as that took in what was missing. */
async function note(
  { ledger: { redis, keys } }: Auditing,
  result: AuditResult,
  takenIn = 0,
): Promise<void> {
  const before = (await readAuditNotes(redis, keys))[result.feed]
  const fresh = noteOf(result, systemClock.now())
  if (!before || before.missing === 0 || lengthOf(before) <= lengthOf(fresh) + slackMs) {
    return writeAuditNote(redis, keys, result.feed, fresh)
  }
  if (takenIn === 0) return
  const missing = Math.max(0, before.missing - takenIn)
  await writeAuditNote(redis, keys, result.feed, { ...before, missing })
}

/** Windows of one length differ by when the feed was last read. */
const slackMs = 3_600_000

function lengthOf({ fromMs, toMs }: AuditWindow): number {
  return toMs - fromMs
}

/** What is missing still; the note that metrics go by then says so. */
async function mend(auditing: Auditing, feed: PolledFeed, result: AuditResult): Promise<Finding[]> {
  const { config, ledger, partsOf } = auditing
  const { clock, plan } = partsOf(feed)
  const options = {
    book: bookOf(ledger, feed.account),
    clock,
    plan,
    batchWaitMs: (name: string) => batchWaitOf(config, name),
    queue: (account: string) => tellDaemon(ledger, [account]),
  }
  const left = await repair(options, feed, result)
  const takenIn = result.missing.length - left.length + result.malformed.length
  await note(auditing, { ...result, missing: left, malformed: [] }, takenIn)
  return left
}

export type AuditReport = { feed: PolledFeed } & (
  | { why: NoWindow }
  | { failed: string }
  /** `left`: what is missing still after a repair; undefined: none was asked for. */
  | { result: AuditResult; left?: Finding[] }
)

/** Named in lines for people; JSON has all of them. */
const shownFindings = 50

const whys = {
  never_taken_in: 'never taken in',
  record_gone: 'its record is gone',
  awaited: 'visible perhaps since the feed last passed its place; the next sweep takes it in',
} as const

export function auditJson(report: AuditReport): Record<string, unknown> {
  const { feed } = report
  if ('failed' in report) return { feed: feed.name, compared: false, failed: report.failed }
  if ('why' in report) return { feed: feed.name, compared: false, why: report.why }
  const { result, left } = report
  return {
    feed: feed.name,
    compared: true,
    from: isoTime(result.fromMs),
    to: isoTime(result.toMs),
    shown: result.shown,
    accounted: result.accounted,
    missing: result.missing.map(findingJson),
    quarantined: result.quarantined,
    malformed_missing: result.malformed.length,
    awaited: result.awaited.map(findingJson),
    extra: result.extra.map(({ uid, firstSeenMs, closed }) => ({
      uid,
      first_seen: isoTime(firstSeenMs),
      closed: closed ?? null,
    })),
    ...(left && { still_missing: left.map(findingJson) }),
  }
}

function findingJson({ uid, createdAtMs, why }: Finding): Record<string, unknown> {
  return { uid, created: isoTime(createdAtMs), why }
}

export function auditLines(terminal: Terminal, report: AuditReport): string[] {
  const { feed } = report
  const head = terminal.paint('bold', feed.name)
  if ('failed' in report) {
    return [`${head}: ${terminal.paint('red', 'not compared')}: ${harmless(report.failed, 1_000)}`]
  }
  if ('why' in report) return [`${head}: not compared: ${whyNot[report.why]}`]
  const { result, left } = report
  const { fromMs, toMs, shown, accounted, quarantined, missing, malformed, awaited } = result
  const lost = missing.length + malformed.length
  const window = `${timeInWords(fromMs)} to ${timeInWords(toMs)}`
  return [
    `${head}: ${window}: ${counted(shown, 'event')} shown, ${accounted} in the ledger, ${verdict(terminal, lost, quarantined)}`,
    ...quarantineLines(feed.name, quarantined),
    ...listed(missing, 'missing'),
    ...malformedLines(malformed.length),
    ...listed(awaited, 'awaited'),
    ...extraLines(result.extra),
    ...leftLines(lost, left),
  ]
}

/** What cannot be read is in safe hands, and nobody was told of it: that never reads as "nothing is missing". */
function verdict(terminal: Terminal, lost: number, quarantined: number): string {
  if (lost > 0) return terminal.paint('red', `${lost} missing`)
  return quarantined > 0
    ? terminal.paint('yellow', `${quarantined} could not be read`)
    : terminal.paint('green', 'nothing is missing')
}

function quarantineLines(feed: string, count: number): string[] {
  if (count === 0) return []
  return [
    `  quarantined  ${counted(count, 'item')}, not read and not sent: tocsin quarantine list --feed ${feed}`,
  ]
}

function malformedLines(count: number): string[] {
  if (count === 0) return []
  return [
    `  missing  ${counted(count, 'malformed item')}: not in the quarantine; --repair sets them aside`,
  ]
}

function leftLines(lost: number, left: readonly Finding[] | undefined): string[] {
  if (left === undefined || lost === 0) return []
  if (left.length === 0) return ['  all of it is taken in; a running daemon delivers it']
  return [`  ${lost - left.length} taken in, ${left.length} still missing: run it again`]
}

function listed(findings: readonly Finding[], word: string): string[] {
  const lines = findings.slice(0, shownFindings).map(({ uid, createdAtMs, why }) => {
    return `  ${word}  ${harmless(uid)}, created ${timeInWords(createdAtMs)}: ${whys[why]}`
  })
  return [...lines, ...more(findings.length)]
}

function extraLines(extra: AuditResult['extra']): string[] {
  const lines = extra.slice(0, shownFindings).map(({ uid, firstSeenMs, closed }) => {
    const what =
      closed === undefined ? 'no longer shown by the service' : `${closed} at the service`
    return `  extra  ${harmless(uid)}, taken in ${timeInWords(firstSeenMs)}: ${what}`
  })
  return [...lines, ...more(extra.length)]
}

function more(count: number): string[] {
  return count > shownFindings ? [`  … and ${count - shownFindings} more: --output json`] : []
}

const whyNot: Record<NoWindow, string> = {
  reports: 'each report is asked for until it is there',
  not_read: 'the feed was not read to its end yet, or not since it was changed or rewound',
  behind: 'the feed was last read to its end before all that is to be compared; tocsin feeds list',
}

/** Looks at the ledger as a whole, and leaves for the metrics what it found. */
export async function auditLedger(
  context: Context,
  ledger: OpenLedger,
  hash: string,
): Promise<BookProof[]> {
  await needIndex(context, ledger)
  const { terminal, stop } = context
  const steps = proveLedger(ledger.books)
  try {
    for (;;) {
      const step = await steps.next()
      stop.throwIfAborted()
      if (step.done) {
        await ledgerNote(ledger, hash, step.value)
        return step.value
      }
      terminal.progress(`ledger: ${counted(step.value, 'record')} read`)
    }
  } finally {
    terminal.progress('')
  }
}

/** Another configuration than the replicas' may lack an account that messages are made of. */
async function ledgerNote(
  { redis, keys }: OpenLedger,
  hash: string,
  proofs: BookProof[],
): Promise<void> {
  const active = (await activeHash(redis, keys)) ?? hash
  if (active === hash) await writeProofNote(redis, keys, proofs, systemClock.now())
}

/** What a look at the ledger itself found, in words and in JSON. */

export function ledgerJson(proof: BookProof): Record<string, unknown> {
  const { account, atMs, records, unfiled, accounting, stranded, dangling, hasMore } = proof
  return {
    ledger: account,
    whole: isWhole(proof),
    at: isoTime(atMs),
    records,
    ...(unfiled !== 0 && { unfiled }),
    feeds: Object.entries(accounting.feeds).map(([feed, counts]) => ({ feed, ...counts })),
    sinks: Object.entries(accounting.sinks).map(([sink, counts]) => ({
      sink,
      ...counts,
      pending_in_records: foundOf(proof, sink, counts),
    })),
    stranded: stranded.map(({ heldFor, ...item }) => ({ ...item, held_for: heldFor ?? null })),
    dangling,
    has_more: hasMore,
  }
}

function foundOf({ differences }: BookProof, sink: string, account: SinkAccount): number {
  return differences.find((one) => one.sink === sink)?.found ?? pendingOf(account)
}

export function ledgerLines(terminal: Terminal, proof: BookProof): string[] {
  const { account, atMs, records, accounting, stranded, dangling } = proof
  const verdict = isWhole(proof)
    ? terminal.paint('green', 'all of it adds up')
    : terminal.paint('red', 'it does not add up')
  const head = terminal.paint('bold', `ledger of ${account}`)
  return [
    `${head}: ${counted(records, 'record')} as of ${timeInWords(atMs)}, ${verdict}`,
    ...Object.entries(accounting.feeds).map(([feed, counts]) => feedLine(feed, counts)),
    ...Object.entries(accounting.sinks).map(([sink, counts]) => sinkLine(proof, sink, counts)),
    ...unfiledLines(proof),
    ...stranded.slice(0, shownFindings).map(strandedLine),
    ...more(stranded.length),
    ...dangling.slice(0, shownFindings).map(danglingLine),
    ...more(dangling.length),
    ...remedyLines(proof),
  ]
}

function feedLine(feed: string, counts: FeedAccount): string {
  const { fetched, new: fresh, duplicate, quarantined, baseline, unaccounted } = counts
  const sum = `${fresh} new + ${duplicate} duplicate + ${quarantined} quarantined + ${baseline} baseline`
  return `  feed ${harmless(feed)}: ${fetched} fetched = ${sum}${offWords(unaccounted)}`
}

function sinkLine(proof: BookProof, sink: string, counts: SinkAccount): string {
  const { created, replayed, delivered, dead, suppressed, diverted, unaccounted } = counts
  const pending = pendingOf(counts)
  const found = foundOf(proof, sink, counts)
  const ended = `${delivered} delivered + ${dead} dead + ${suppressed} suppressed + ${diverted} diverted`
  const scan = found === pending ? 'the records agree' : `the records have ${found} pending`
  return `  sink ${harmless(sink)}: ${created} created + ${replayed} replayed = ${ended} + ${pending} pending${offWords(unaccounted)}; ${scan}`
}

function offWords(unaccounted: number): string {
  return unaccounted === 0 ? '' : `, ${unaccounted} unaccounted for`
}

function unfiledLines({ unfiled }: BookProof): string[] {
  if (unfiled === 0) return []
  const what = unfiled > 0 ? 'that were made are not in it' : 'are in it that nobody made'
  return [`  the index of records: ${counted(Math.abs(unfiled), 'record')} ${what}`]
}

const lackWords: Record<Lack, string> = {
  due: 'nothing says when it is due',
  orphans: 'nothing would take it back with its sink',
  collection: 'it is not in its collection',
  timer: 'its collection has no timer',
  message: 'its sealed message is gone',
  message_due: 'nothing says when its sealed message is due',
}

function strandedLine({ uid, sink, state, lacks }: StrandedItem): string {
  return `  stranded  ${harmless(uid)} for ${harmless(sink)}, ${state}: ${lackWords[lacks]}`
}

const placeWords: Record<DanglingRef['place'], string> = {
  due: 'what is due',
  timers: 'the timers',
  orphans: 'what waits for a removed sink',
  dead: 'the dead letters',
  collect: 'a collection',
  records: 'the index of records',
}

const whyWords: Record<DanglingRef['why'], string> = {
  gone: 'what it names is gone',
  other_state: 'what it names does not belong there',
  unfiled: 'the record that it names is not in the index',
}

function danglingLine({ ref, place, why }: DanglingRef): string {
  return `  dangling  ${harmless(ref)}, among ${placeWords[place]}: ${whyWords[why]}`
}

/** What `sinks move` and `sinks discard` take. */
const movable = ['queued', 'held', 'group', 'digest', 'retrying']

function remedyLines(proof: BookProof): string[] {
  if (isWhole(proof)) return []
  const waiting = proof.stranded.filter(({ state }) => movable.includes(state))
  const sinks = [...new Set(waiting.map(({ sink }) => harmless(sink)))]
  return [
    ...sinks.map(
      (sink) =>
        `  all that waits for ${sink}, not only this, can be sent elsewhere: tocsin sinks move ${sink} --to <sink>; or given up: tocsin sinks discard ${sink}`,
    ),
    '  somebody changed the ledger, or Tocsin has a defect: keep the log and a copy of Redis, and report it',
  ]
}
