import { InvalidArgumentError, Option, Command } from 'commander'
import { AuditError } from '../audit/audit-error.ts'
import { auditFeed } from '../audit/audit-feed.ts'
import { noteOf, readAuditNotes, writeAuditNote } from '../audit/audit-log.ts'
import { auditWindow } from '../audit/audit-window.ts'
import type { AuditResult, AuditWindow, Finding } from '../audit/finding.ts'
import { repair } from '../audit/repair.ts'
import { buildAuditParts, type AuditParts } from '../app/build-audits.ts'
import { collectingSinks } from '../app/build-flusher.ts'
import { buildSecrets } from '../app/build-secrets.ts'
import { polledFeeds } from '../app/polled-feeds.ts'
import type { Config } from '../config/config.ts'
import type { PolledFeed } from '../feeds/polled-feed.ts'
import { peekFeed } from '../ledger/feed-state.ts'
import { trimmedUntilMs } from '../ledger/trimmed.ts'
import { isWhole, type BookProof } from '../proof/ledger-proof.ts'
import { createRouter } from '../routing/router.ts'
import { systemClock } from '../runtime/clock.ts'
import { duration } from '../runtime/config-fields.ts'
import { auditLedger } from './audit-ledger.ts'
import { ledgerJson, ledgerLines } from './audit-ledger-words.ts'
import { auditJson, auditLines, type AuditReport } from './audit-words.ts'
import { ServiceError } from '../service/service-error.ts'
import { batchWaitOf } from './batch-wait.ts'
import { findNamed } from './command-error.ts'
import { loadConfigFile } from './config-file.ts'
import { addCommonOptions, print, type CommonOptions, type Context } from './context.ts'
import { destinationsBySink } from './destination-labels.ts'
import { bookOf, tellDaemon, withLedger, type OpenLedger } from './open-ledger.ts'
import { withService } from './with-service.ts'

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
