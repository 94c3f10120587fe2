/**
 * Tells operators when Tocsin itself is in trouble: once when it begins, once when it is over, over
 * all replicas. Promised: what was said is noted only afterwards, and saying it twice is one event.
 * It mends nothing, and it never says through a sink that this very sink is down.
 */
import type { Keys } from '../redis/keys.ts'
import type { Redis } from '../redis/connection.ts'
import { runScript } from '../redis/scripts.ts'
import type { Clock } from '../runtime/clock.ts'
import type { Logger } from '../runtime/logger.ts'
import { findConditions, type Condition, type Snapshot } from './conditions.ts'
import type { NoticesConfig } from './config.ts'
import { nextStep, type Noted, type Step } from './next-step.ts'
import { beginNotice, endNotice } from './notice-event.ts'
import type { Tell } from './teller.ts'
import { conditionId, parseConditionId } from './troubles.ts'

export interface NoticesOptions {
  config: NoticesConfig
  redis: Redis
  keys: Keys
  tell: Tell
  readSnapshot: () => Promise<Snapshot>
  /** Whether this configuration is the active one: another one may not have the same feeds and sinks. */
  isActive: () => boolean
  clock: Clock
  logger: Logger
}

export interface Notices {
  /** Looks once and says what is to be said. Throws what reading or the ledger throws. */
  watchOnce(): Promise<void>
}

/** One condition at this look. */
interface Watched {
  id: string
  condition: Condition | undefined
  isCovered: boolean
  nowMs: number
}

export function createNotices(options: NoticesOptions): Notices {
  const { config, redis, keys, readSnapshot, isActive, clock } = options
  return {
    async watchOnce() {
      if (!isActive()) return
      const nowMs = clock.now()
      const snapshot = await readSnapshot()
      const conditions = findConditions(snapshot, { nowMs, afterMs: config.afterMs })
      const stored = await redis.hgetall(keys.shared('notices'))
      const standing = new Set([...Object.keys(stored), ...conditions.map(({ id }) => id)])
      for (const id of standing) {
        const condition = conditions.find((one) => one.id === id)
        const isCovered = condition?.coveredBy.some((cover) => standing.has(cover)) ?? false
        await advance(options, { id, condition, isCovered, nowMs }, stored[id])
      }
    },
  }
}

/** Goes on until nothing is to be done, or another replica was first. */
async function advance(
  options: NoticesOptions,
  watched: Watched,
  stored: string | undefined,
): Promise<void> {
  const noted = stored === undefined ? undefined : (JSON.parse(stored) as Noted)
  const step = nextStep(noted, watched.condition, watched)
  if (step === undefined) return
  if (noted !== undefined) await say(options, watched, { noted, step })
  const next = step.to && JSON.stringify(step.to)
  const { redis, keys } = options
  const change = [watched.id, stored ?? '', next ?? '']
  const isOurs = await runScript(redis, 'notice-change', [keys.shared('notices')], change)
  if (Number(isOurs) === 0) return
  log(options, watched, step)
  if (next !== undefined) await advance(options, watched, next)
}

async function say(
  { config, tell }: NoticesOptions,
  { id, condition, nowMs }: Watched,
  { noted, step }: { noted: Noted; step: Step },
): Promise<void> {
  const isOfItself = id === conditionId({ kind: 'circuit-open', name: config.sink })
  const trouble = parseConditionId(id)
  if (isOfItself || trouble === undefined) return
  const way = { route: 'notices', why: id, sinks: [config.sink] } as const
  const cause = condition?.cause ?? null
  if (step.verb === 'say_begin') await tell(beginNotice(trouble, noted, cause), way)
  if (step.verb === 'say_end') await tell(endNotice(trouble, noted, nowMs), way)
}

function log({ logger }: NoticesOptions, { id, condition }: Watched, { verb }: Step): void {
  if (verb === 'say_end') logger.info({ condition: id }, 'trouble is over')
  if (verb === 'say_begin')
    logger.warn({ condition: id, cause: condition?.cause }, 'trouble begins')
}
