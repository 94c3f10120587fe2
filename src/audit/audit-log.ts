/** What the last audit of each feed found, for metrics and notices; and whose turn it is to audit. */
import type { Redis } from '../redis/connection.ts'
import type { Keys } from '../redis/keys.ts'
import { holdLease, releaseLease } from '../redis/lease.ts'
import type { AuditResult } from './finding.ts'

/** Of an audit that ended; ms, and how many. */
export interface AuditNote {
  endedAtMs: number
  fromMs: number
  toMs: number
  shown: number
  missing: number
  awaited: number
  extra: number
}

export function noteOf(result: AuditResult, endedAtMs: number): AuditNote {
  const { fromMs, toMs, shown, missing, awaited, extra, malformed } = result
  return {
    endedAtMs: Math.floor(endedAtMs),
    fromMs: Math.floor(fromMs),
    toMs: Math.floor(toMs),
    shown,
    missing: missing.length + malformed.length,
    awaited: awaited.length,
    extra: extra.length,
  }
}

export async function writeAuditNote(
  redis: Redis,
  keys: Keys,
  feed: string,
  note: AuditNote,
): Promise<void> {
  await redis.hset(keys.shared('audits'), feed, JSON.stringify(note))
  await redis.hdel(keys.shared('audit-failures'), feed)
}

/** By feed; those of feeds that were never audited are left out. */
export async function readAuditNotes(redis: Redis, keys: Keys): Promise<Record<string, AuditNote>> {
  const stored = await redis.hgetall(keys.shared('audits'))
  return Object.fromEntries(
    Object.entries(stored).map(([feed, text]) => [feed, JSON.parse(text) as AuditNote]),
  )
}

/** Failures in a row since an audit of the feed last ended. */
export interface AuditFailures {
  count: number
  lastMs: number
}

export async function noteFailure(
  redis: Redis,
  keys: Keys,
  feed: string,
  failures: AuditFailures,
): Promise<void> {
  await redis.hset(keys.shared('audit-failures'), feed, JSON.stringify(failures))
}

export async function readFailures(
  redis: Redis,
  keys: Keys,
): Promise<Record<string, AuditFailures>> {
  const stored = await redis.hgetall(keys.shared('audit-failures'))
  return Object.fromEntries(
    Object.entries(stored).map(([feed, text]) => [feed, JSON.parse(text) as AuditFailures]),
  )
}

/** How long a replica that no longer says so is believed to audit, ms. */
const leaseMs = 120_000

interface Lease {
  feed: string
  holder: string
}

/** Whether this replica may audit the feed, or goes on with it. */
export function holdAudit(redis: Redis, keys: Keys, { feed, holder }: Lease): Promise<boolean> {
  return holdLease(redis, keys.shared('auditing', feed), { holder, ms: leaseMs })
}

export function releaseAudit(redis: Redis, keys: Keys, { feed, holder }: Lease): Promise<void> {
  return releaseLease(redis, keys.shared('auditing', feed), holder)
}
