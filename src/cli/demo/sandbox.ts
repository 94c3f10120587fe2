/**
 * The demo's sandbox and mock receivers. Events and credentials of earlier runs are shown again,
 * and their sequences continue.
 */
import { appendFileSync, existsSync, readFileSync } from 'node:fs'
import { systemClock } from '../../lib/clock.ts'
import type { Logger } from '../../lib/logger.ts'
import { replacePrivateFile } from '../../lib/private-files.ts'
import { createCredentialGenerator } from '../../sandbox/credentials/generator.ts'
import { credentialUid, type SandboxCredential } from '../../sandbox/credentials/history.ts'
import { createGenerator } from '../../sandbox/history/generator.ts'
import type { SandboxEvent } from '../../sandbox/history/history.ts'
import { createArrivals } from '../../sandbox/history/supply.ts'
import { createRandom, withDefaults } from '../../sandbox/options.ts'
import { type Sandbox, startSandbox } from '../../sandbox/sandbox.ts'
import { type DemoFolder, demoLimits, demoSlackLimit } from './folder.ts'

export interface DemoSandbox extends Sandbox {
  /** Starts the arrival of events; the returned function stops it. */
  startArrivals(): () => Promise<void>
  /** Adds one event created `ageMs` ago: behind every cursor, so only a rescan finds it. */
  showLate(ageMs: number): void
  /** Adds `count` credentials to the feed of `demoIdentifier`. */
  showCredentials(count: number): void
  /**
   * Uids of the events that a search of the group at `atMs` shows, and of the late ones among them
   * that a rescan begun at `sweptAtMs` shows.
   */
  shownAt(groupId: number, atMs: number, sweptAtMs?: number): string[]
  /** Uids of the credentials that a poll of their feed at `atMs` shows. */
  credentialsShownAt(atMs: number): string[]
}

/** The sandbox identifier whose leaked credentials the demo shows. */
export const demoIdentifier = { id: 77, name: 'example.com' }

interface DemoSandboxOptions {
  folder: DemoFolder
  /** Mean number of events per second; above 0. */
  rate: number
  logger: Logger
}

/**
 * Events that exist at the first start, spread over `backlogMs`, and that arrived between two runs.
 */
const firstBacklogCount = 40
const backlogMs = 23 * 3_600_000
const laterBacklogCount = 10

/** Arrival times are whole milliseconds from the clocks of two processes. */
const toleranceMs = 50

export async function startDemoSandbox(options: DemoSandboxOptions): Promise<DemoSandbox> {
  const { folder, rate, logger } = options
  const { seed, apiKey, webhookSecret, ports } = folder.state
  const nowMs = systemClock.now()
  const history = openDemoHistory({ file: folder.at('history.jsonl'), seed, nowMs })
  const sandbox = await startSandbox({
    port: ports.sandbox,
    smtpPort: ports.smtp,
    seed,
    organizations: [{ id: 7, limits: demoLimits, keys: [{ key: apiKey, tenants: [42] }] }],
    webhookSecret,
    slackLimit: demoSlackLimit,
    shortPages: 0.1,
    emptyPages: 0.05,
    logger,
  })
  const file = folder.at('credentials.jsonl')
  const credentials = openDemoCredentials({ file, seed, nowMs, identifier: demoIdentifier })
  for (const event of history.earlierEvents) sandbox.addEvent(event)
  sandbox.addCredentials(credentials.earlier)
  addBacklog(sandbox, history, nowMs)

  function startArrivals(): () => Promise<void> {
    const arrivals = createArrivals({
      perSecond: rate,
      lateShare: 0,
      lateMinMs: 60_000,
      lateMaxMs: 60_000,
      random: createRandom(seed + sandbox.events().length),
      logger,
      arrive(ageMs) {
        const atMs = systemClock.now()
        sandbox.addEvent(history.next(atMs - ageMs, atMs))
      },
    })
    arrivals.start()
    return () => arrivals.stop()
  }

  return {
    ...sandbox,
    startArrivals,
    showLate(ageMs) {
      const atMs = systemClock.now()
      sandbox.addEvent(history.late(atMs - ageMs, atMs))
    },
    showCredentials(count) {
      const added = Array.from({ length: count }, () => credentials.next(systemClock.now()))
      sandbox.addCredentials(added)
    },
    shownAt(groupId, atMs, sweptAtMs = 0) {
      const inGroup = sandbox.events().filter(({ groupIds }) => groupIds.includes(groupId))
      const late = inGroup.filter(({ uid }) => history.isLate(uid))
      const onTime = inGroup.filter(({ uid }) => !history.isLate(uid))
      return [...arrivedBy(onTime, atMs), ...arrivedBy(late, sweptAtMs)].map(({ uid }) => uid)
    },
    credentialsShownAt: (atMs) =>
      arrivedBy(sandbox.credentials(), atMs).map(({ id }) => credentialUid(id)),
  }
}

function arrivedBy<Shown extends { arrivedAtMs: number }>(
  all: readonly Shown[],
  atMs: number,
): Shown[] {
  return all.filter(({ arrivedAtMs }) => arrivedAtMs < atMs - toleranceMs)
}

/** Adds events spread evenly between the last event and now. */
function addBacklog(sandbox: Sandbox, history: DemoHistory, nowMs: number): void {
  const last = history.earlierEvents.at(-1)
  const sinceMs = Math.max(last?.createdAtMs ?? 0, nowMs - backlogMs)
  const count = last ? laterBacklogCount : firstBacklogCount
  for (let place = 1; place <= count; place++) {
    const createdAtMs = Math.floor(sinceMs + ((nowMs - sinceMs) * place) / count)
    sandbox.addEvent(history.next(createdAtMs, nowMs))
  }
}

/**
 * The demo's sequence of events, which continues where the last run stopped. An event is on disk
 * before the sandbox shows it, so no uid is used twice; and each event but the late ones is younger
 * than all before it, so no cursor has passed it.
 */

export interface DemoHistory {
  /** Events of earlier runs that are still shown, in the order of the sequence. */
  readonly earlierEvents: readonly SandboxEvent[]
  /** The next event of the sequence, shown at `nowMs`; it chooses its group. */
  next(createdAtMs: number, nowMs: number): SandboxEvent
  /** As `next`, but created exactly then, even where a cursor has passed that time. */
  late(createdAtMs: number, nowMs: number): SandboxEvent
  isLate(uid: string): boolean
}

interface DemoHistoryOptions {
  file: string
  seed: number
  nowMs: number
  /** Maximum number of events of earlier runs that are shown again. */
  keep?: number
}

interface EventLine extends LogLine {
  event: SandboxEvent
  isLate?: true
}

/** Far shorter than the ledger remembers an event. */
const keptForMs = 30 * 86_400_000

export function openDemoHistory(options: DemoHistoryOptions): DemoHistory {
  const { file, seed, nowMs, keep: maxKept = 2_000 } = options
  const isCurrent = ({ event }: EventLine): boolean => event.createdAtMs > nowMs - keptForMs
  const log = openDemoLog<EventLine>({ file, maxKept, isCurrent })
  const lateUids = new Set(log.lines.filter(({ isLate }) => isLate).map(({ event }) => event.uid))
  let number = log.lastNumber
  let newestMs = Math.max(-Infinity, ...log.lines.map(({ event }) => event.createdAtMs))
  const nextEvent = createEventSource(seed, number)

  function add(event: SandboxEvent, isLate: boolean): SandboxEvent {
    number += 1
    if (isLate) lateUids.add(event.uid)
    log.append({ number, event, ...(isLate && { isLate }) })
    return event
  }

  return {
    earlierEvents: log.lines.map(({ event }) => event),
    next(createdAtMs, atMs) {
      newestMs = Math.max(newestMs + 1, createdAtMs)
      return add(nextEvent(newestMs, atMs), false)
    },
    late: (createdAtMs, atMs) => add(nextEvent(createdAtMs, atMs), true),
    isLate: (uid) => lateUids.has(uid),
  }
}

/** Generates the same events for the same seed, beginning after the first `skip`. */
function createEventSource(
  seed: number,
  skip: number,
): (createdAtMs: number, nowMs: number) => SandboxEvent {
  const { groups } = withDefaults({})
  const generator = createGenerator(seed)
  const nextEvent = (createdAtMs: number, nowMs: number): SandboxEvent =>
    generator.make(generator.pickGroup(groups), nowMs, { createdAtMs })
  for (let skipped = 0; skipped < skip; skipped++) nextEvent(0, 0)
  return nextEvent
}

/** The demo's sequence of leaked credentials, which continues as that of the events does. */

export interface DemoCredentials {
  /** Those of earlier runs that are still shown, oldest first. */
  readonly earlier: readonly SandboxCredential[]
  /** The next credential, imported and shown at `nowMs`. */
  next(nowMs: number): SandboxCredential
}

interface DemoCredentialsOptions {
  file: string
  seed: number
  nowMs: number
  /** The identifier whose feed shows them. */
  identifier: { id: number; name: string }
}

interface CredentialLine extends LogLine {
  credential: SandboxCredential
}

/** Limits as for events. */
const maxKeptLines = 2_000

export function openDemoCredentials(options: DemoCredentialsOptions): DemoCredentials {
  const { file, seed, nowMs, identifier } = options
  const isCurrent = ({ credential }: CredentialLine): boolean =>
    credential.importedAtMs > nowMs - keptForMs
  const log = openDemoLog<CredentialLine>({ file, maxKept: maxKeptLines, isCurrent })
  const generator = createCredentialGenerator(seed)
  for (let skipped = 0; skipped < log.lastNumber; skipped++) generator.make(identifier, 0)
  let number = log.lastNumber
  return {
    earlier: log.lines.map(({ credential }) => credential),
    next(atMs) {
      number += 1
      const credential = generator.make(identifier, atMs)
      log.append({ number, credential })
      return credential
    },
  }
}

/**
 * A line of JSON on disk, written before the sandbox shows it. `number` is its place in the
 * sequence, from 1.
 */
interface LogLine {
  number: number
}

interface DemoLog<Line extends LogLine> {
  /** Those of earlier runs that are still shown, in the order of the sequence. */
  readonly lines: readonly Line[]
  /** The last number written, even if its line is gone; 0: none yet. */
  readonly lastNumber: number
  append(line: Line): void
}

interface DemoLogOptions<Line> {
  file: string
  /** Maximum number of lines of earlier runs that are shown again. */
  maxKept: number
  isCurrent: (line: Line) => boolean
}

function openDemoLog<Line extends LogLine>(options: DemoLogOptions<Line>): DemoLog<Line> {
  const { file, maxKept, isCurrent } = options
  const { lines, isTorn } = readLines<Line>(file)
  const current = lines.slice(-maxKept).filter(isCurrent)
  if (isTorn || current.length < lines.length)
    rewrite(file, current.length > 0 ? current : lines.slice(-1))
  return {
    lines: current,
    lastNumber: lines.at(-1)?.number ?? 0,
    append: (line) => appendFileSync(file, toJsonLine(line), { mode: 0o600 }),
  }
}

function readLines<Line>(file: string): { lines: Line[]; isTorn: boolean } {
  if (!existsSync(file)) return { lines: [], isTorn: false }
  const texts = readFileSync(file, 'utf8').split('\n')
  const torn = texts.pop() // what a crash cut off was never shown
  return { lines: texts.map((text) => JSON.parse(text) as Line), isTorn: torn !== '' }
}

function rewrite(file: string, lines: readonly LogLine[]): void {
  replacePrivateFile(file, lines.map(toJsonLine).join(''))
}

function toJsonLine(line: LogLine): string {
  return `${JSON.stringify(line)}\n`
}
