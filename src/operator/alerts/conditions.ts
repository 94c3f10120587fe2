/**
 * Derives the troubles that operators are alerted to from the problems of a moment, those included
 * that have not lasted long enough yet. Each says how long it must last. Pure.
 */
import { describeLoss, type LedgerLoss } from '../../store/account-ledger.ts'
import {
  conditionId,
  isAlerted,
  type Problem,
  type TroubleKind,
  type TroubleName,
} from './troubles.ts'

/** How Tocsin is doing at one moment, as far as an operator may have to act. */
export interface Snapshot {
  /** When its reading began, ms. */
  atMs: number
  problems: readonly Problem[]
  redis: {
    /** Redis uses more than the share of its memory beyond which polling stops. */
    isFull: boolean
    /** Left out: none within a day. */
    loss?: LedgerLoss | undefined
  }
  /** Sinks that would take no message now. */
  deafSinks: readonly string[]
}

/** A trouble that exists now. */
export interface Condition extends TroubleName {
  /** Unique among all conditions; a sink or feed has at most one of a kind. */
  id: string
  /** When it began, ms; undefined: not recorded, so it counts from when it was first seen. */
  sinceMs: number | undefined
  /** How long it must have been seen before it is alerted, ms: a fresh start gets time to recover. */
  waitMs: number
  cause: string | null
  /** While one of these conditions stands, it explains this one, whose begin is not alerted. */
  coveredBy: string[]
}

interface AlertTiming {
  /** The configuration's `self_alerts.after`. */
  afterMs: number
  lagObjectiveMs: (feed: string) => number
}

export function findConditions(snapshot: Snapshot, timing: AlertTiming): Condition[] {
  const { problems, redis } = snapshot
  const found = problems.flatMap((problem) => conditionsOf(problem, timing))
  if (redis.isFull) {
    found.push(buildCondition({ kind: 'redis-full', name: null }, { waitMs: timing.afterMs }))
  }
  if (redis.loss) {
    const cause = `it holds ${describeLoss(redis.loss)}`
    const lasting = { sinceMs: redis.loss.atMs, waitMs: 0, cause }
    found.push(buildCondition({ kind: 'ledger-lost', name: null }, lasting))
  }
  return found
}

/** Alerted at once: they do not recover by themselves, or events are lost silently meanwhile. */
const urgentKinds: ReadonlySet<TroubleKind> = new Set([
  'account-refused',
  'feed-unreadable',
  'items-quarantined',
  'sink-disabled',
])

/** What explains a trouble of the same feed or sink. */
const covers: Partial<Record<TroubleKind, TroubleKind>> = {
  'items-quarantined': 'feed-unreadable',
  'circuit-open': 'sink-disabled',
  'feed-stalled': 'feed-unreadable',
}

/** What is not judged beside one: an alert about it is not over then. */
const hides: Partial<Record<TroubleKind, TroubleKind>> = {
  'sink-disabled': 'circuit-open',
  'feed-unreadable': 'feed-stalled',
}

function conditionsOf(
  { kind, subject: name, detail: cause, since, behindAccount }: Problem,
  timing: AlertTiming,
): Condition[] {
  if (!isAlerted(kind)) return []
  const cover = covers[kind]
  const sinceMs = since === undefined ? undefined : Date.parse(since)
  const condition = buildCondition(
    { kind, name },
    {
      sinceMs,
      waitMs: waitOf(kind, name, timing),
      cause,
      coveredBy: [
        ...(cover ? [conditionId({ kind: cover, name })] : []),
        ...(kind === 'feed-stalled' ? [conditionId({ kind: 'redis-full', name: null })] : []),
        ...(behindAccount === undefined
          ? []
          : [conditionId({ kind: 'account-refused', name: behindAccount })]),
      ],
    },
  )
  const hidden = hides[kind]
  if (hidden === undefined) return [condition]
  const coveredBy = [condition.id]
  return [condition, buildCondition({ kind: hidden, name }, { waitMs: 0, cause, coveredBy })]
}

/** A feed is seen from its lag objective on, and alerted at three times the objective. */
function waitOf(kind: TroubleKind, name: string, { afterMs, lagObjectiveMs }: AlertTiming): number {
  if (urgentKinds.has(kind)) return 0
  if (kind !== 'feed-stalled') return afterMs
  const objectiveMs = lagObjectiveMs(name)
  return Math.max(3 * objectiveMs, afterMs) - objectiveMs
}

function buildCondition(
  trouble: TroubleName,
  more: Partial<Omit<Condition, keyof TroubleName | 'id'>> & { waitMs: number },
): Condition {
  const defaults = { sinceMs: undefined, cause: null, coveredBy: [] }
  return { ...trouble, id: conditionId(trouble), ...defaults, ...more }
}

/** More than this at the same time have one cause, and get one alert. */
const mostOfAKind = 10

/**
 * Finds kinds of which many stand: one condition, from when that was first seen, explains all that
 * were not alerted yet. An outage would flood the operators otherwise.
 */
export function findMany(due: readonly Condition[]): Condition[] {
  return [...Map.groupBy(due, ({ kind }) => kind)]
    .filter(([, alike]) => alike.length > mostOfAKind)
    .map(([kind, alike]) => {
      const [one, two, three] = alike.map(({ name }) => name)
      const cause = `${[one, two, three].join(', ')} and ${alike.length - 3} others by now`
      return buildCondition({ kind: 'many', name: kind }, { waitMs: 0, cause })
    })
}

/** The condition that stands for all of a kind. */
export function manyId(kind: TroubleKind): string {
  return conditionId({ kind: 'many', name: kind })
}
