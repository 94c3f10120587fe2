/**
 * Self-alerts: tell operators when Tocsin itself is in trouble, once when it begins and once when
 * it is over, over all replicas. An alert is noted as sent only afterwards, and publishing it twice
 * makes one event. Trouble of a sink is alerted through another sink. While the first choice takes
 * nothing every alert goes through another (see `chooseTarget`); the end goes to the sink that was
 * chosen for the begin. Nothing here repairs anything.
 */
import { blankEvent, ownUidPrefixes, type ThreatEvent } from '../../event.ts'
import type { Clock } from '../../lib/clock.ts'
import type { Logger } from '../../lib/logger.ts'
import { formatDuration } from '../../lib/time-zone.ts'
import type { Redis } from '../../redis/client.ts'
import type { Keys } from '../../redis/keys.ts'
import { runScript } from '../../redis/scripts.ts'
import { type Condition, findConditions, findMany, manyId, type Snapshot } from './conditions.ts'
import type { SelfAlertsConfig } from './config.ts'
import { chooseTarget, type Publish } from './publisher.ts'
import {
  conditionId,
  describeTrouble,
  parseConditionId,
  troubledSink,
  type TroubleName,
} from './troubles.ts'

interface SelfAlertsOptions {
  config: Pick<SelfAlertsConfig, 'afterMs'>
  /** The sinks that may get the alerts, first choice first. */
  targets: readonly string[]
  redis: Redis
  keys: Keys
  publish: Publish
  readSnapshot: () => Promise<Snapshot>
  lagObjectiveMs: (feed: string) => number
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
  const timing = { afterMs: config.afterMs, lagObjectiveMs: options.lagObjectiveMs }
  return {
    async watchOnce(alive = () => undefined) {
      if (!isActive()) return
      const nowMs = clock.now()
      const snapshot = await readSnapshot()
      const stored = await redis.hgetall(keys.shared('notices'))
      const each = findConditions(snapshot, timing)
      const conditions = [...findMany(selectDue(each, stored, nowMs)), ...each]
      const byId = new Map(conditions.map((condition) => [condition.id, condition]))
      const standing = new Set([...Object.keys(stored), ...byId.keys()])
      for (const id of standing) {
        alive()
        const condition = byId.get(id)
        const covers = condition ? [...condition.coveredBy, manyId(condition.kind)] : []
        const isCovered = covers.some((cover) => standing.has(cover))
        const trouble = parseConditionId(id)
        const via = chooseTarget(
          targets,
          snapshot.deafSinks,
          trouble ? troubledSink(trouble) : null,
        )
        const watched = { id, condition, isCovered, nowMs, readMs: snapshot.atMs, via }
        await advanceCondition(options, watched, stored[id])
      }
    },
  }
}

/** Those that have lasted long enough, and that no other one explains. */
function selectDue(
  conditions: readonly Condition[],
  stored: Readonly<Record<string, string>>,
  nowMs: number,
): Condition[] {
  const standing = new Set([...Object.keys(stored), ...conditions.map(({ id }) => id)])
  return conditions.filter(
    (condition) =>
      !condition.coveredBy.some((cover) => standing.has(cover)) &&
      isDue(parseNote(stored[condition.id]), condition, nowMs),
  )
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
  // an older configuration may have noted a sink that is gone
  const noticed = options.targets.find((sink) => sink === noted.via)
  const sink = noticed ?? watched.via
  if (noted.via === null || sink === null) return
  const event =
    verb === 'say_begin'
      ? buildBeginAlert(trouble, noted, condition?.cause ?? null)
      : buildEndAlert(trouble, noted, nowMs)
  await options.publish(event, { route: 'notices', why: id, sinks: [sink] })
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
  const { severity, title, toDo } = describeTrouble(trouble)
  const lastedMs = dueMs - sinceMs
  const forSoLong = lastedMs < 60_000 ? '' : ` for ${formatMinutes(lastedMs)}`
  return ownEvent(
    {
      uid: alertUid(trouble, sinceMs, 'begin'),
      type: 'notice',
      severity,
      createdAtMs: sinceMs,
    },
    { headline: `${title}${forSoLong}`, since: formatIso(sinceMs), cause, what_to_do: toDo },
  )
}

export function buildEndAlert(
  trouble: TroubleName,
  { sinceMs, goneMs }: ConditionNote,
  nowMs: number,
): ThreatEvent {
  const overMs = goneMs ?? nowMs
  return ownEvent(
    {
      uid: alertUid(trouble, sinceMs, 'end'),
      type: 'notice',
      severity: 'info',
      createdAtMs: overMs,
    },
    {
      headline: `over after ${formatMinutes(overMs - sinceMs)}: ${describeTrouble(trouble).title}`,
      since: formatIso(sinceMs),
      over_at: formatIso(overMs),
    },
  )
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
  condition: Pick<Condition, 'sinceMs' | 'waitMs'> | undefined,
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
  noted: Pick<ConditionNote, 'seenMs'> | undefined,
  { waitMs }: Pick<Condition, 'waitMs'>,
  nowMs: number,
): boolean {
  return nowMs - (noted?.seenMs ?? nowMs) >= waitMs
}

function stepWhenGone(noted: ConditionNote, nowMs: number): Step | undefined {
  if (noted.saidMs === undefined) return { verb: 'note', to: undefined }
  if (noted.goneMs === undefined) return { verb: 'note', to: { ...noted, goneMs: nowMs } }
  return nowMs - noted.goneMs >= settleMs ? { verb: 'say_end', to: undefined } : undefined
}
