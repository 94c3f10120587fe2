/**
 * Tells operators when Tocsin itself is in trouble: once when it begins, once when it is over, over
 * all replicas. Promised: what was said is noted only afterwards, and saying it twice is one event.
 * It mends nothing. That a sink is in trouble it says through another, and while its own takes nothing
 * all goes through another (`ways.ts`); the end goes where the begin went.
 */
import { ownUidPrefixes, type ThreatEvent } from '../event.ts'
import type { Clock } from '../lib/clock.ts'
import type { Logger } from '../lib/logger.ts'
import { spanInWords } from '../lib/time-zone.ts'
import type { Redis } from '../redis/connection.ts'
import type { Keys } from '../redis/keys.ts'
import { runScript } from '../redis/scripts.ts'
import type { Book } from '../store/account-ledger.ts'
import { moveItem, type PlacedItem } from '../store/pending-items.ts'
import { pendingStates, readRecord } from '../store/records.ts'
import { type Condition, findConditions, type Snapshot } from './conditions.ts'
import type { NoticesConfig } from './config.ts'
import { chooseWay, takesMessages, type Tell } from './publisher.ts'
import { conditionId, parseConditionId, sinkOf, type Trouble, wordsOf } from './troubles.ts'

interface NoticesOptions {
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

/** Fields of an event of Tocsin's own; its describer in `messages/` reads them by these names. */
type Fields = Record<string, string | null>

/** An event that Tocsin tells of itself. */
export function ownEvent(
  given: Pick<ThreatEvent, 'uid' | 'type' | 'severity' | 'createdAtMs'>,
  fields: Fields,
): ThreatEvent {
  const said = Object.entries(fields).flatMap(([name, text]): [string, string[]][] =>
    text === null ? [] : [[name, [text]]],
  )
  return {
    ...given,
    kind: 'event',
    source: 'tocsin',
    originalSeverity: null,
    matchedAtMs: null,
    ignoredAtMs: null,
    remediatedAtMs: null,
    url: null,
    tags: [],
    notes: null,
    identifiers: [],
    highlights: Object.fromEntries(said),
  }
}

/** Replicas that say it at once make the same uid, so it is one event. */
export function beginNotice(trouble: Trouble, noted: Noted, cause: string | null): ThreatEvent {
  const { sinceMs, dueMs = sinceMs } = noted
  const { severity, now, toDo } = wordsOf(trouble)
  const name = trouble.name ?? ''
  const lastedMs = dueMs - sinceMs
  const forSoLong = lastedMs < 60_000 ? '' : ` for ${inMinutes(lastedMs)}`
  return ownEvent(
    { uid: beginUid(trouble, noted), type: 'notice', severity, createdAtMs: sinceMs },
    {
      headline: `${now(name)}${forSoLong}`,
      since: isoTime(sinceMs),
      cause,
      what_to_do: toDo(name),
    },
  )
}

export function endNotice(
  trouble: Trouble,
  { sinceMs, goneMs }: Noted,
  nowMs: number,
): ThreatEvent {
  const overMs = goneMs ?? nowMs
  const name = trouble.name ?? ''
  return ownEvent(
    { uid: uidOf(trouble, sinceMs, 'end'), type: 'notice', severity: 'info', createdAtMs: overMs },
    {
      headline: `over after ${inMinutes(overMs - sinceMs)}: ${wordsOf(trouble).was(name)}`,
      since: isoTime(sinceMs),
      over_at: isoTime(overMs),
    },
  )
}

/** Under which the ledger has the begin. */
function beginUid(trouble: Trouble, { sinceMs }: Noted): string {
  return uidOf(trouble, sinceMs, 'begin')
}

function uidOf(trouble: Trouble, sinceMs: number, edge: 'begin' | 'end'): string {
  return `${ownUidPrefixes.notice}${conditionId(trouble)}-${sinceMs}-${edge}`
}

/** Seconds only where there is nothing more. */
function inMinutes(ms: number): string {
  return spanInWords(ms < 60_000 ? Math.max(0, ms) : ms - (ms % 60_000))
}

function isoTime(atMs: number): string {
  return new Date(atMs).toISOString()
}

/** What Redis holds of a condition, the same for all replicas. */
export interface Noted {
  /** When it began, ms; part of the notices' uids, so it stays once the begin is said. */
  sinceMs: number
  /** When it was first seen, ms. */
  seenMs: number
  /** When it was decided that its begin is to be said, ms: from then on it is, whatever happens. */
  dueMs?: number
  /** The sink that its begin goes through; null: none was fit for it. An older version noted none. */
  via?: string | null
  /** When that was done, ms. */
  saidMs?: number
  /** When a condition whose begin was said was seen to be over, ms. */
  goneMs?: number
}

/** `say_…`: say it first, then note `to` (undefined: forget), so that a crash between loses nothing. */
export interface Step {
  verb: 'note' | 'say_begin' | 'say_end'
  to: Noted | undefined
}

/**
 * How long a condition stays away before its end is said, ms. One that comes back within this time
 * is the same one: it was never said to be over, and its begin is not said again.
 */
export const settleMs = 10 * 60_000

/** What is to be done next about one condition; undefined: nothing, for now. `via`: the way at this look. */
export function nextStep(
  noted: Noted | undefined,
  condition: Pick<Condition, 'sinceMs' | 'waitMs' | 'steadyMs'> | undefined,
  { nowMs, isCovered, via }: { nowMs: number; isCovered: boolean; via: string | null },
): Step | undefined {
  if (noted?.dueMs !== undefined && noted.saidMs === undefined) {
    return { verb: 'say_begin', to: { ...noted, saidMs: nowMs } }
  }
  if (condition === undefined) return noted && whenGone(noted, nowMs)
  const sinceMs = condition.sinceMs ?? noted?.sinceMs ?? nowMs
  if (noted === undefined) return { verb: 'note', to: { sinceMs, seenMs: nowMs } }
  if (noted.goneMs !== undefined) {
    const { goneMs: _over, ...still } = noted
    return { verb: 'note', to: still }
  }
  if (noted.saidMs !== undefined) return undefined
  if (noted.sinceMs !== sinceMs) return { verb: 'note', to: { ...noted, sinceMs } }
  const hasLasted = nowMs - sinceMs >= condition.waitMs
  const isSteady = nowMs - noted.seenMs >= condition.steadyMs
  if (isCovered || !hasLasted || !isSteady) return undefined
  return { verb: 'note', to: { ...noted, dueMs: nowMs, via } }
}

function whenGone(noted: Noted, nowMs: number): Step | undefined {
  if (noted.saidMs === undefined) return { verb: 'note', to: undefined }
  if (noted.goneMs === undefined) return { verb: 'note', to: { ...noted, goneMs: nowMs } }
  return nowMs - noted.goneMs >= settleMs ? { verb: 'say_end', to: undefined } : undefined
}

/** Where a notice is that was told: its items in the ledger know, whoever moved them. */

interface Told {
  /** The sink that has it, or had it last; undefined: the ledger does not know it, or the sink is no more. */
  sinkOf(uid: string): Promise<string | undefined>
  /** What of it still waits for `from` goes to `to`, and never back; how many items did. */
  passOn(uid: string, way: { from: string; to: string }): Promise<number>
}

export interface ToldOptions {
  book: Book
  destinationsOf: (sink: string) => readonly string[]
  batchWaitMs: (sink: string) => number | undefined
}

export function createTold({ book, destinationsOf, batchWaitMs }: ToldOptions): Told {
  async function placedItems(uid: string): Promise<PlacedItem[]> {
    const record = await readRecord(book, book.digests.recordId(uid))
    if (record === undefined) return []
    return record.items.map((item) => {
      const ref = `i:${record.recordId}:${item.index}:${item.sink}`
      return { ref, record, item }
    })
  }
  return {
    async sinkOf(uid) {
      const placed = await placedItems(uid)
      const last = placed.findLast(({ item }) => item.state !== 'diverted')?.item.sink
      return last !== undefined && destinationsOf(last).length > 0 ? last : undefined
    },
    async passOn(uid, { from, to }) {
      const targets = destinationsOf(to).map((destination) => {
        return { sink: to, destination, batchWaitMs: batchWaitMs(to) }
      })
      let moved = 0
      for (const placed of await placedItems(uid)) {
        const { sink, state } = placed.item
        const waits = (pendingStates as readonly string[]).includes(state)
        if (sink !== from || !waits) continue
        const by = `to ${to}, as ${from} takes nothing`
        if ((await moveItem(book, placed, targets, by)) === 'done') moved += 1
      }
      return moved
    },
  }
}
