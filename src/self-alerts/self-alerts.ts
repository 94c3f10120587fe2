/**
 * Self-alerts: tell operators when Tocsin itself is in trouble, once when it begins and once when
 * it is over, over all replicas. An alert is noted as sent only afterwards, and publishing it twice
 * makes one event. Trouble of a sink is alerted through another sink, and while the first choice
 * takes nothing every alert goes through another (see `chooseTarget`); the end goes where the begin
 * went. Nothing here repairs anything.
 */
import { blankEvent, ownUidPrefixes, type ThreatEvent } from '../event.ts'
import type { Clock } from '../lib/clock.ts'
import type { Logger } from '../lib/logger.ts'
import { formatDuration } from '../lib/time-zone.ts'
import type { Redis } from '../redis/connection.ts'
import type { Keys } from '../redis/keys.ts'
import { runScript } from '../redis/scripts.ts'
import type { AccountLedger } from '../store/account-ledger.ts'
import { moveItem, type RecordItem } from '../store/pending-items.ts'
import { pendingStates, readRecord } from '../store/records.ts'
import {
  type Condition,
  findConditions,
  findMany,
  manyId,
  type Snapshot,
  takesMessages,
} from './conditions.ts'
import type { SelfAlertsConfig } from './config.ts'
import { chooseTarget, type Publish } from './publisher.ts'
import {
  conditionId,
  parseConditionId,
  troubledSink,
  type TroubleName,
  troubleTexts,
} from './troubles.ts'

interface SelfAlertsOptions {
  config: Pick<SelfAlertsConfig, 'afterMs'>
  /** The sinks that may get the alerts, first choice first. */
  targets: readonly string[]
  redis: Redis
  keys: Keys
  publish: Publish
  sentLog: SentLog
  readSnapshot: () => Promise<Snapshot>
  /** Whether this configuration is the active one: another one may have other feeds and sinks. */
  isActive: () => boolean
  clock: Clock
  logger: Logger
}

export interface SelfAlerts {
  /**
   * Checks all conditions once and publishes what is due; `alive` is called between them. Throws
   * what reading or the ledger throws.
   */
  watchOnce(alive?: () => void): Promise<void>
}

/** One condition as seen by this check. */
interface WatchedCondition {
  id: string
  condition: Condition | undefined
  isCovered: boolean
  nowMs: number
  /** When the reading began that shows the condition, or does not, ms. */
  readMs: number
  /** The sink for an alert that is decided now; null: none is fit for it. */
  via: string | null
}

export function createSelfAlerts(options: SelfAlertsOptions): SelfAlerts {
  const { config, targets, redis, keys, readSnapshot, isActive, clock } = options
  return {
    async watchOnce(alive = () => undefined) {
      if (!isActive()) return
      const nowMs = clock.now()
      const snapshot = await readSnapshot()
      const stored = await redis.hgetall(keys.shared('notices'))
      const each = findConditions(snapshot, { nowMs, afterMs: config.afterMs })
      const conditions = [...findMany(selectFresh(each, stored, nowMs)), ...each]
      const byId = new Map(conditions.map((condition) => [condition.id, condition]))
      const standing = new Set([...Object.keys(stored), ...byId.keys()])
      for (const id of standing) {
        alive()
        const condition = byId.get(id)
        const covers = condition ? [...condition.coveredBy, manyId(condition.kind)] : []
        const isCovered = covers.some((cover) => standing.has(cover))
        const trouble = parseConditionId(id)
        const via = chooseTarget(targets, snapshot.sinks, trouble ? troubledSink(trouble) : null)
        const watched = { id, condition, isCovered, nowMs, readMs: snapshot.atMs, via }
        await advanceCondition(options, watched, stored[id])
        await rerouteAlert(options, watched, { stored: stored[id], sinks: snapshot.sinks })
      }
    },
  }
}

/**
 * Selects the conditions whose begin is due now, or was published within `settleMs`; however long
 * ago while an alert stands for all of the kind, so that it is not over before they are.
 */
function selectFresh(
  conditions: readonly Condition[],
  stored: Readonly<Record<string, string>>,
  nowMs: number,
): Condition[] {
  const standing = new Set([...Object.keys(stored), ...conditions.map(({ id }) => id)])
  return conditions.filter((condition) => {
    const noted = parseNote(stored[condition.id])
    const { saidMs = Infinity } = noted ?? {}
    const isCovered = condition.coveredBy.some((cover) => standing.has(cover))
    const isOld = nowMs - saidMs > settleMs && !standing.has(manyId(condition.kind))
    return !isCovered && !isOld && isDue(noted, condition, nowMs)
  })
}

function parseNote(stored: string | undefined): ConditionNote | undefined {
  return stored === undefined ? undefined : (JSON.parse(stored) as ConditionNote)
}

/** Repeats until there is nothing to do, another replica was first, or the snapshot is too old. */
async function advanceCondition(
  options: SelfAlertsOptions,
  watched: WatchedCondition,
  stored: string | undefined,
): Promise<void> {
  const { redis, keys, clock } = options
  // while a process stands still, trouble that it saw may come and go, and the note of it go, too
  if (clock.now() - watched.readMs >= settleMs) return
  const noted = parseNote(stored)
  const step = nextStep(noted, watched.condition, watched)
  if (step === undefined) return
  if (noted !== undefined) await publishStep(options, watched, { noted, step })
  const next = step.to && JSON.stringify(step.to)
  const change = [watched.id, stored ?? '', next ?? '']
  const isOurs = await runScript(redis, 'notice-change', [keys.shared('notices')], change)
  if (Number(isOurs) === 0) return
  logStep(options, watched, step)
  if (next !== undefined) await advanceCondition(options, watched, next)
}

async function publishStep(
  options: SelfAlertsOptions,
  watched: WatchedCondition,
  { noted, step: { verb } }: { noted: ConditionNote; step: Step },
): Promise<void> {
  const { id, condition, nowMs } = watched
  const trouble = parseConditionId(id)
  if (trouble === undefined || verb === 'note') return
  const decided = findKnownTarget(options.targets, noted.via) ?? watched.via
  if (noted.via === null || decided === null) return
  if (verb === 'say_begin') {
    const event = buildBeginAlert(trouble, noted, condition?.cause ?? null)
    return options.publish(event, { route: 'notices', why: id, sinks: [decided] })
  }
  const sink = (await options.sentLog.findSink(beginUid(trouble, noted))) ?? decided
  const event = buildEndAlert(trouble, noted, nowMs)
  await options.publish(event, { route: 'notices', why: id, sinks: [sink] })
}

/**
 * The noted sink if it is still a target: an older configuration may have noted one that is gone.
 */
function findKnownTarget(
  ways: readonly string[],
  via: string | null | undefined,
): string | undefined {
  return ways.find((sink) => sink === via)
}

/** Moves a begin alert that waits for a sink which takes nothing to one that does. */
async function rerouteAlert(
  { config, sentLog, logger }: SelfAlertsOptions,
  { id, nowMs, via: to }: WatchedCondition,
  { stored, sinks }: { stored: string | undefined; sinks: Snapshot['sinks'] },
): Promise<void> {
  const trouble = parseConditionId(id)
  const noted = parseNote(stored)
  if (trouble === undefined || noted?.saidMs === undefined || noted.goneMs !== undefined) return
  if (nowMs - noted.saidMs < config.afterMs || to === null || !takesMessages(sinks, to)) return
  const uid = beginUid(trouble, noted)
  const from = await sentLog.findSink(uid)
  if (from === undefined || from === to || takesMessages(sinks, from)) return
  const moved = await sentLog.reroute(uid, { from, to })
  if (moved > 0) logger.warn({ condition: id, from, to }, 'a self-alert goes to another sink')
}

function logStep(
  { logger }: SelfAlertsOptions,
  { id, condition }: WatchedCondition,
  { verb }: Step,
): void {
  if (verb === 'say_end') logger.info({ condition: id }, 'trouble is over')
  if (verb === 'say_begin')
    logger.warn({ condition: id, cause: condition?.cause }, 'trouble begins')
}

/** Fields of Tocsin's own event; its describer in `messages/` reads them by these names. */
type Fields = Record<string, string | null>

/** Builds an event about Tocsin itself. */
export function ownEvent(
  given: Pick<ThreatEvent, 'uid' | 'type' | 'severity' | 'createdAtMs'>,
  fields: Fields,
): ThreatEvent {
  const highlights = Object.entries(fields).flatMap(([name, text]): [string, string[]][] =>
    text === null ? [] : [[name, [text]]],
  )
  return {
    ...blankEvent(given.type),
    ...given,
    source: 'tocsin',
    highlights: Object.fromEntries(highlights),
  }
}

/** Replicas that publish at the same time make the same uid, so it is one event. */
export function buildBeginAlert(
  trouble: TroubleName,
  noted: ConditionNote,
  cause: string | null,
): ThreatEvent {
  const { sinceMs, dueMs = sinceMs } = noted
  const { severity, now, toDo } = troubleTexts(trouble)
  const name = trouble.name ?? ''
  const lastedMs = dueMs - sinceMs
  const forSoLong = lastedMs < 60_000 ? '' : ` for ${formatMinutes(lastedMs)}`
  return ownEvent(
    { uid: beginUid(trouble, noted), type: 'notice', severity, createdAtMs: sinceMs },
    {
      headline: `${now(name)}${forSoLong}`,
      since: formatIso(sinceMs),
      cause,
      what_to_do: toDo(name),
    },
  )
}

export function buildEndAlert(
  trouble: TroubleName,
  { sinceMs, goneMs }: ConditionNote,
  nowMs: number,
): ThreatEvent {
  const overMs = goneMs ?? nowMs
  const name = trouble.name ?? ''
  return ownEvent(
    {
      uid: alertUid(trouble, sinceMs, 'end'),
      type: 'notice',
      severity: 'info',
      createdAtMs: overMs,
    },
    {
      headline: `over after ${formatMinutes(overMs - sinceMs)}: ${troubleTexts(trouble).was(name)}`,
      since: formatIso(sinceMs),
      over_at: formatIso(overMs),
    },
  )
}

/** The uid under which the ledger has the begin alert. */
function beginUid(trouble: TroubleName, { sinceMs }: ConditionNote): string {
  return alertUid(trouble, sinceMs, 'begin')
}

function alertUid(trouble: TroubleName, sinceMs: number, edge: 'begin' | 'end'): string {
  return `${ownUidPrefixes.notice}${conditionId(trouble)}-${sinceMs}-${edge}`
}

/** Shows seconds only below a minute. */
function formatMinutes(ms: number): string {
  return formatDuration(ms < 60_000 ? Math.max(0, ms) : ms - (ms % 60_000))
}

function formatIso(atMs: number): string {
  return new Date(atMs).toISOString()
}

/** What Redis holds of a condition, shared by all replicas. */
export interface ConditionNote {
  /** When it began, ms; part of the alerts' uids, so it stays once the begin is published. */
  sinceMs: number
  /** When it was first seen, ms. */
  seenMs: number
  /** When its begin was decided, ms: from then on it is published, whatever happens. */
  dueMs?: number
  /** The sink of the begin alert; null: none was fit for it. */
  via?: string | null
  /** When the begin was published, ms. */
  saidMs?: number
  /** When a condition whose begin was published was seen to be over, ms. */
  goneMs?: number
}

/**
 * `say_…`: publish first, then note `to` (undefined: forget), so that a crash in between loses
 * nothing.
 */
export interface Step {
  verb: 'note' | 'say_begin' | 'say_end'
  to: ConditionNote | undefined
}

/**
 * How long a condition stays away before its end is published, ms. If it comes back within this
 * time it is the same condition, and its begin is not published again.
 */
export const settleMs = 10 * 60_000

/**
 * Returns what to do next about one condition; undefined: nothing for now. `via`: the sink chosen
 * by this check.
 */
export function nextStep(
  noted: ConditionNote | undefined,
  condition: Pick<Condition, 'sinceMs' | 'waitMs' | 'steadyMs'> | undefined,
  { nowMs, readMs, isCovered, via }: Omit<WatchedCondition, 'id' | 'condition'>,
): Step | undefined {
  if (noted?.dueMs !== undefined && noted.saidMs === undefined) {
    return { verb: 'say_begin', to: { ...noted, saidMs: nowMs } }
  }
  if (condition === undefined) return noted && stepWhenGone(noted, nowMs)
  const sinceMs = condition.sinceMs ?? noted?.sinceMs ?? nowMs
  if (noted === undefined) return { verb: 'note', to: { sinceMs, seenMs: nowMs } }
  if (noted.goneMs !== undefined) {
    // what another replica read before it was gone does not show that it is back
    if (readMs <= noted.goneMs) return undefined
    const { goneMs: _over, ...still } = noted
    return { verb: 'note', to: still }
  }
  if (noted.saidMs !== undefined) return undefined
  if (noted.sinceMs !== sinceMs) return { verb: 'note', to: { ...noted, sinceMs } }
  if (isCovered || !isDue(noted, condition, nowMs)) return undefined
  return { verb: 'note', to: { ...noted, dueMs: nowMs, via } }
}

function isDue(
  noted: Pick<ConditionNote, 'sinceMs' | 'seenMs'> | undefined,
  condition: Pick<Condition, 'sinceMs' | 'waitMs' | 'steadyMs'>,
  nowMs: number,
): boolean {
  const sinceMs = condition.sinceMs ?? noted?.sinceMs ?? nowMs
  const hasLasted = nowMs - sinceMs >= condition.waitMs
  return hasLasted && nowMs - (noted?.seenMs ?? nowMs) >= condition.steadyMs
}

function stepWhenGone(noted: ConditionNote, nowMs: number): Step | undefined {
  if (noted.saidMs === undefined) return { verb: 'note', to: undefined }
  if (noted.goneMs === undefined) return { verb: 'note', to: { ...noted, goneMs: nowMs } }
  return nowMs - noted.goneMs >= settleMs ? { verb: 'say_end', to: undefined } : undefined
}

/** Finds where a published alert is now: its items in the ledger show it, whoever moved them. */
interface SentLog {
  /**
   * The sink that has it or had it last; undefined: the ledger does not have it, or the sink is
   * gone.
   */
  findSink(uid: string): Promise<string | undefined>
  /** Moves its pending items from `from` to `to`; returns how many. An item never moves back. */
  reroute(uid: string, way: { from: string; to: string }): Promise<number>
}

export interface SentLogOptions {
  ledger: AccountLedger
  destinationsFor: (sink: string) => readonly string[]
  batchWaitMs: (sink: string) => number | undefined
}

export function createSentLog({ ledger, destinationsFor, batchWaitMs }: SentLogOptions): SentLog {
  async function placedItems(uid: string): Promise<RecordItem[]> {
    const record = await readRecord(ledger, ledger.fingerprints.recordId(uid))
    if (record === undefined) return []
    return record.items.map((item) => {
      const ref = `i:${record.recordId}:${item.index}:${item.sink}`
      return { ref, record, item }
    })
  }
  return {
    async findSink(uid) {
      const placed = await placedItems(uid)
      const last = placed.findLast(({ item }) => item.state !== 'diverted')?.item.sink
      return last !== undefined && destinationsFor(last).length > 0 ? last : undefined
    },
    async reroute(uid, { from, to }) {
      const targets = destinationsFor(to).map((destination) => {
        return { sink: to, destination, batchWaitMs: batchWaitMs(to) }
      })
      let moved = 0
      for (const placed of await placedItems(uid)) {
        const { sink, state } = placed.item
        const waits = (pendingStates as readonly string[]).includes(state)
        if (sink !== from || !waits) continue
        const by = `to ${to}, as ${from} takes nothing`
        if ((await moveItem(ledger, placed, targets, by)) === 'done') moved += 1
      }
      return moved
    },
  }
}
