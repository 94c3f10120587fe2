/** The timers of groups, kept in Redis: a restart or a reload changes none of them. */
import { type AccountLedger, parseRef } from '../store/account-ledger.ts'
import type { Group, GroupFacts } from '../store/pending-items.ts'

/** A due group, claimed by this replica for `leaseMs`. */
export interface Flush {
  ledger: AccountLedger
  timer: string
  id: string
  sink: string
  kind: Group['kind']
  about: GroupFacts
  /** How many flushes the group had; part of the message id. */
  sequence: number
  dueAtMs: number
  claimedUntilMs: number
  openedAtMs: number
  fence: Fence
  /** The message of several groups, led by this one, that a crash interrupted. */
  stormId: string | undefined
  /** Digests only: where the window begins, and the counters noted at the end of the last one. */
  fromMs: number | undefined
  note: string | undefined
  /** Digests only: when somebody last asked for it before its time. */
  askedMs: number | undefined
}

/**
 * A group as it was when it was read. A script that finds it changed since then refuses the
 * operation.
 */
export interface Fence {
  /** When it was opened, as stored; false: it is not open. */
  opened: string | false
  seq: number
}

/** A replica that dies during a flush delays it by at most this long. */
const leaseMs = 30_000

/** Timers that are due, longest-waiting first. */
export function readDueTimers(
  ledger: AccountLedger,
  { nowMs, offset = 0, count }: { nowMs: number; offset?: number; count: number },
): Promise<string[]> {
  return ledger.redis.zrangebyscore(ledger.key('timers'), '-inf', nowMs, 'LIMIT', offset, count)
}

/** The destinations of groups, by their timers; '' where nothing is known of one. */
export function readDestinations(
  ledger: AccountLedger,
  timers: readonly string[],
): Promise<string[]> {
  const reading = timers.map(async (timer) => {
    const about = await ledger.redis.hget(ledger.key('group', timer.split(':')[1] ?? ''), 'about')
    return about === null ? '' : (JSON.parse(about) as GroupFacts).destination
  })
  return Promise.all(reading)
}

/** When the first group of an account is due, ms; undefined if none waits. */
export async function readEarliestTimerMs(ledger: AccountLedger): Promise<number | undefined> {
  const [, score] = await ledger.redis.zrange(ledger.key('timers'), '0', '0', 'WITHSCORES')
  return score === undefined ? undefined : Number(score)
}

interface StoredFlush {
  due: number
  kind?: Group['kind']
  about?: string
  seq: number
  opened?: number
  from?: number
  note?: string
  storm?: string
  asked?: number
}

/**
 * Claims a due timer. Resolves with undefined if it is no longer due or another replica holds it.
 */
export async function claimFlush(
  ledger: AccountLedger,
  timer: string,
  nowMs: number,
): Promise<Flush | undefined> {
  const answer = String(await ledger.run('claim-timer', timer, nowMs, leaseMs))
  const ref = parseRef(timer)
  if (answer === '' || ref.kind !== 'group') return undefined
  const stored = JSON.parse(answer) as StoredFlush
  if (stored.kind === undefined || stored.about === undefined) {
    await ledger.redis.zrem(ledger.key('timers'), timer) // nothing was ever collected under it
    return undefined
  }
  return {
    ledger,
    timer,
    id: ref.id,
    sink: ref.sink,
    kind: stored.kind,
    about: JSON.parse(stored.about) as GroupFacts,
    sequence: stored.seq,
    dueAtMs: stored.due,
    claimedUntilMs: nowMs + leaseMs,
    openedAtMs: stored.opened ?? stored.due,
    fence: { opened: stored.opened === undefined ? false : String(stored.opened), seq: stored.seq },
    stormId: stored.storm,
    fromMs: stored.from,
    note: stored.note,
    askedMs: stored.asked,
  }
}

export async function readFence(ledger: AccountLedger, id: string): Promise<Fence> {
  const [opened, seq] = await ledger.redis.hmget(ledger.key('group', id), 'opened', 'seq')
  return { opened: opened ?? false, seq: Number(seq ?? 0) }
}

/** Whom a group is for, and what its next message is made of, without claiming the flush. */
export async function peekFlush(
  ledger: AccountLedger,
  { id, nowMs }: { id: string; nowMs: number },
): Promise<Pick<Flush, 'ledger' | 'id' | 'openedAtMs' | 'sequence'> & { destination: string }> {
  const name = ledger.key('group', id)
  const [about, seq, opened] = await ledger.redis.hmget(name, 'about', 'seq', 'opened')
  return {
    ledger,
    id,
    sequence: Number(seq ?? 0),
    openedAtMs: opened ? Number(opened) : nowMs,
    destination: about ? (JSON.parse(about) as GroupFacts).destination : '',
  }
}

/** Postpones flushes; items that arrive meanwhile join them. */
export async function postponeTimers(
  ledger: AccountLedger,
  timers: readonly string[],
  atMs: number,
): Promise<void> {
  await ledger.run('postpone-timers', atMs, ...timers)
}

/** Makes every group due that waits for the end of a mute. */
export async function makeHeldDue(ledger: AccountLedger, nowMs: number): Promise<void> {
  await ledger.run('wake-held', nowMs)
}

/** References of a group's members, oldest first. */
export function readAllMemberRefs({ ledger, id }: Pick<Flush, 'ledger' | 'id'>): Promise<string[]> {
  return ledger.redis.zrange(ledger.key('collect', id), '0', '-1')
}

/** When a group is due, ms; undefined if no timer is set. */
export async function readTimerMs(
  ledger: AccountLedger,
  id: string,
  sink: string,
): Promise<number | undefined> {
  const score = await ledger.redis.zscore(ledger.key('timers'), `c:${id}:${sink}`)
  return score === null ? undefined : Number(score)
}
