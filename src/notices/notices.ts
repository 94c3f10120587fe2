/**
 * Tells operators when Tocsin itself is in trouble: once when it begins, once when it is over, over
 * all replicas. Promised: what was said is noted only afterwards, and saying it twice is one event.
 * It mends nothing. That a sink is in trouble it says through another, and while its own takes nothing
 * all goes through another (`ways.ts`); the end goes where the begin went.
 */
import type { Keys } from '../redis/keys.ts'
import type { Redis } from '../redis/connection.ts'
import { runScript } from '../redis/scripts.ts'
import type { Clock } from '../runtime/clock.ts'
import type { Logger } from '../runtime/logger.ts'
import { findConditions, type Condition, type Snapshot } from './conditions.ts'
import type { NoticesConfig } from './config.ts'
import { nextStep, type Noted, type Step } from './next-step.ts'
import { beginNotice, beginUid, endNotice } from './notice-event.ts'
import type { Tell } from './teller.ts'
import type { Told } from './told.ts'
import { parseConditionId, sinkOf } from './troubles.ts'
import { chooseWay, takesMessages } from './ways.ts'

export interface NoticesOptions {
  config: Pick<NoticesConfig, 'afterMs'>
  /** The sinks that may be told, the first choice first. */
  ways: readonly string[]
  redis: Redis
  keys: Keys
  tell: Tell
  told: Told
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
  /** The sink through which it is told if that is decided now; null: none is fit for it. */
  via: string | null
}

export function createNotices(options: NoticesOptions): Notices {
  const { config, ways, redis, keys, readSnapshot, isActive, clock } = options
  return {
    async watchOnce() {
      if (!isActive()) return
      const nowMs = clock.now()
      const snapshot = await readSnapshot()
      const conditions = findConditions(snapshot, { nowMs, afterMs: config.afterMs })
      const stored = await redis.hgetall(keys.shared('notices'))
      const byId = new Map(conditions.map((condition) => [condition.id, condition]))
      const standing = new Set([...Object.keys(stored), ...byId.keys()])
      for (const id of standing) {
        const condition = byId.get(id)
        const isCovered = condition?.coveredBy.some((cover) => standing.has(cover)) ?? false
        const trouble = parseConditionId(id)
        const via = chooseWay(ways, snapshot.sinks, trouble ? sinkOf(trouble) : null)
        const watched = { id, condition, isCovered, nowMs, via }
        await advance(options, watched, stored[id])
        await passOn(options, watched, { stored: stored[id], sinks: snapshot.sinks })
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
  options: NoticesOptions,
  watched: Watched,
  { noted, step: { verb } }: { noted: Noted; step: Step },
): Promise<void> {
  const { id, condition, nowMs } = watched
  const trouble = parseConditionId(id)
  if (trouble === undefined || verb === 'note') return
  const decided = stillKnown(options.ways, noted.via) ?? watched.via
  if (noted.via === null || decided === null) return
  if (verb === 'say_begin') {
    const event = beginNotice(trouble, noted, condition?.cause ?? null)
    return options.tell(event, { route: 'notices', why: id, sinks: [decided] })
  }
  const sink = (await options.told.sinkOf(beginUid(trouble, noted))) ?? decided
  const event = endNotice(trouble, noted, nowMs)
  await options.tell(event, { route: 'notices', why: id, sinks: [sink] })
}

/** An older version noted none, an older configuration perhaps one that is no more. */
function stillKnown(ways: readonly string[], via: string | null | undefined): string | undefined {
  return ways.find((sink) => sink === via)
}

/** A begin that waits for a sink which takes nothing would wait unseen: it goes to one that does. */
async function passOn(
  { config, told, logger }: NoticesOptions,
  { id, nowMs, via: to }: Watched,
  { stored, sinks }: { stored: string | undefined; sinks: Snapshot['sinks'] },
): Promise<void> {
  const trouble = parseConditionId(id)
  const noted = stored === undefined ? undefined : (JSON.parse(stored) as Noted)
  if (trouble === undefined || noted?.saidMs === undefined || noted.goneMs !== undefined) return
  if (nowMs - noted.saidMs < config.afterMs || to === null || !takesMessages(sinks, to)) return
  const uid = beginUid(trouble, noted)
  const from = await told.sinkOf(uid)
  if (from === undefined || from === to || takesMessages(sinks, from)) return
  const moved = await told.passOn(uid, { from, to })
  if (moved > 0) logger.warn({ condition: id, from, to }, 'a notice goes another way')
}

function log({ logger }: NoticesOptions, { id, condition }: Watched, { verb }: Step): void {
  if (verb === 'say_end') logger.info({ condition: id }, 'trouble is over')
  if (verb === 'say_begin')
    logger.warn({ condition: id, cause: condition?.cause }, 'trouble begins')
}
