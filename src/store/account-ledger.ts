/**
 * One account's ledger: its keys, its fingerprints, how long it keeps what. Everything else in this
 * folder works on one; it holds no state outside Redis. Also the lead ledger, the active
 * configuration generation, and the ledger's sections of the configuration.
 */
import { hash, randomBytes, randomUUID } from 'node:crypto'
import { defaultTimings } from '../lib/clock.ts'
import { duration, section, size } from '../lib/config/config-fields.ts'
import type { Redis } from '../redis/client.ts'
import type { Keys } from '../redis/keys.ts'
import { pairsOf, redisNow, runScript } from '../redis/scripts.ts'

export interface AccountLedger {
  readonly account: string
  readonly redis: Redis
  readonly fingerprints: Fingerprints
  readonly horizonMs: number
  /** In the form that scripts take, ms. */
  readonly retention: { history: number; payload: number }
  /** How long an item waits for its full event before it is sent without, ms. */
  readonly detailWaitMs: number
  key(...parts: string[]): string
  /** Runs a ledger script on this account's keys. */
  run: (script: string, ...args: (string | number)[]) => Promise<unknown>
  /** Runs a ledger script whose reply is JSON of the shape T. */
  runJson: <T>(script: string, ...args: (string | number)[]) => Promise<T>
  /** Whether an account has a ledger in this Redis; false after an operator discarded it. */
  hasLedger: (account: string) => Promise<boolean>
  /**
   * Stores the fingerprint key again if Redis has none any more, so that what this process takes in
   * stays known. Returns whether Redis has this one: with another, it holds another ledger.
   */
  reassert: () => Promise<boolean>
}

export interface AccountLedgerOptions {
  redis: Redis
  keys: Keys
  account: string
  config: LedgerConfig
  detailWaitMs?: number
}

/** Opens an account's ledger, and creates it if there is none; registers the account first. */
export async function openLedger(options: AccountLedgerOptions): Promise<AccountLedger> {
  const { redis, keys, account } = options
  await registerAccount(options)
  const base = keys.account(account)
  await runScript(redis, 'open-ledger', [base], [randomBytes(32).toString('hex')])
  const ledger = await openExistingLedger(options)
  if (!ledger) throw new Error('the ledger key vanished while it was being read')
  return ledger
}

/** Accounts that are opened at the same time. */
const openedAtOnce = 50

/** Opens several account ledgers; returns them in the order of `accounts`. */
export async function openLedgers(
  options: Omit<AccountLedgerOptions, 'account'>,
  accounts: readonly string[],
): Promise<AccountLedger[]> {
  const ledgers: AccountLedger[] = []
  for (let at = 0; at < accounts.length; at += openedAtOnce) {
    const batch = accounts.slice(at, at + openedAtOnce)
    ledgers.push(
      ...(await Promise.all(batch.map((account) => openLedger({ ...options, account })))),
    )
  }
  return ledgers
}

/** Registers the account for good, so that it stays visible after it left the configuration. */
async function registerAccount({ redis, keys, account }: AccountLedgerOptions): Promise<void> {
  const [name, field] = [keys.shared('accounts'), `${account}|since`]
  if ((await redis.hexists(name, field)) === 1) return
  // also when memory is full: a new account must not keep what the others have from being delivered
  await runScript(redis, 'note-fields', [name], [field, await redisNow({ redis })])
}

/** Opens an account's ledger without creating it; undefined if there is none. */
export async function openExistingLedger({
  redis,
  keys,
  account,
  config,
  detailWaitMs = defaultTimings.detailWaitMs,
}: AccountLedgerOptions): Promise<AccountLedger | undefined> {
  const key = (...parts: string[]): string => keys.account(account, ...parts)
  const fingerprintKey = await redis.get(key('mark-key'))
  if (fingerprintKey === null) return undefined
  const fingerprints = createFingerprints(fingerprintKey)
  // scripts use the first key only; the second never exists. While the slot moves, a Cluster
  // answers TRYAGAIN to two keys, but runs a script that names one key where only half of the
  // ledger is
  const names = [key(), key('moved')]
  const run = (script: string, ...args: (string | number)[]): Promise<unknown> =>
    runScript(redis, script, names, args)
  return {
    account,
    redis,
    fingerprints,
    horizonMs: config.dedupeHorizonMs,
    retention: { history: config.historyRetentionMs, payload: config.payloadRetentionMs },
    detailWaitMs,
    key,
    run,
    runJson: async <T>(script: string, ...args: (string | number)[]) =>
      JSON.parse(String(await run(script, ...args))) as T,
    hasLedger: async (other) => (await redis.exists(keys.account(other, 'mark-key'))) === 1,
    async reassert() {
      await run('open-ledger', fingerprintKey)
      return (await redis.get(key('mark-key'))) === fingerprintKey
    },
  }
}

/** A parsed reference to a piece of work. Jobs carry nothing else. */
type Ref =
  | { kind: 'item'; recordId: string; index: number; sink: string }
  | { kind: 'batch'; batchId: string; sink: string }
  | { kind: 'collection'; sink: string }
  | { kind: 'group'; id: string; sink: string }

/**
 * Parses a reference: `i:<record>:<index>:<sink>` an item, `b:<message>:<sink>` a frozen message,
 * `c:<sink>` a sink's waiting batch, `c:<group>:<sink>` a group. Throws on anything else.
 */
export function parseRef(text: string): Ref {
  const [kind, ...parts] = text.split(':')
  if (kind === 'i' && parts.length === 3) {
    return { kind: 'item', recordId: parts[0] ?? '', index: Number(parts[1]), sink: parts[2] ?? '' }
  }
  if (kind === 'b' && parts.length === 2) {
    return { kind: 'batch', batchId: parts[0] ?? '', sink: parts[1] ?? '' }
  }
  if (kind === 'c' && parts.length === 2) {
    return { kind: 'group', id: parts[0] ?? '', sink: parts[1] ?? '' }
  }
  if (kind === 'c' && parts.length === 1) return { kind: 'collection', sink: parts[0] ?? '' }
  throw new Error(`not a ledger reference: ${text}`)
}

interface Store {
  redis: Redis
  keys: Keys
}

/**
 * Puts the lead ledger first. The lead holds the windows of digests, which span all accounts, and
 * Tocsin's own events. It is chosen once, the first of `ledgers`, whatever their later order. If
 * its ledger is not open any more, the first takes over the lead and the open digest windows.
 */
export async function claimLead({ redis, keys }: Store, ledgers: AccountLedger[]): Promise<void> {
  const [first] = ledgers
  if (!first) return
  const name = keys.shared('lead')
  if ((await redis.exists(name)) === 0) await redis.set(name, first.account, 'NX')
  const lead = (await redis.get(name)) ?? first.account
  if (moveToFront(ledgers, lead)) return
  await takeOverDigests({ redis, keys }, { from: lead, to: first })
  await redis.set(name, first.account)
}

/** Puts the lead ledger first, if there is one; changes nothing in Redis. */
export async function findLead({ redis, keys }: Store, ledgers: AccountLedger[]): Promise<void> {
  const lead = await redis.get(keys.shared('lead'))
  if (lead !== null) moveToFront(ledgers, lead)
}

function moveToFront(ledgers: AccountLedger[], account: string): boolean {
  const index = ledgers.findIndex((ledger) => ledger.account === account)
  const [lead] = index === -1 ? [] : ledgers.splice(index, 1)
  if (lead) ledgers.unshift(lead)
  return lead !== undefined
}

/** Safe to repeat after a crash: a window that is set stays. */
async function takeOverDigests(
  { redis, keys }: Store,
  { from: account, to }: { from: string; to: AccountLedger },
): Promise<void> {
  const timers = await redis.zrange(keys.account(account, 'timers'), '0', '-1', 'WITHSCORES')
  for (const [timer, due] of pairsOf(timers)) {
    const ref = parseRef(timer)
    if (ref.kind !== 'group') continue
    const fields = ['kind', 'about', 'opened', 'from', 'note'] as const
    const name = keys.account(account, 'group', ref.id)
    const [kind, about, opened, from, note] = await redis.hmget(name, ...fields)
    if (kind !== 'digest' || !about || !opened || !from) continue
    const window = [opened, note ?? '{}', from]
    await to.run('ensure-digest', ref.id, ref.sink, due, about, ...window)
  }
}

/**
 * A fingerprint of 63 bits as the scripts take it. `m` is a signed decimal, `b` 32 further bits
 * that choose among the buckets that a week began with.
 */
interface Fingerprint {
  m: string
  b: number
}

/**
 * Identities as keyed digests; without a key, whoever controls uids could search for a collision
 * that hides an event. A fingerprint is compared with some 400 of each week, namely those in its
 * bucket. Over 13 similar weeks a false "already seen" has a probability of about 6e-16 per new
 * uid. In a first week, which begins with one bucket, it is 1e-13 once it holds a million
 * fingerprints. Those of one event share a bucket, so that they are written at once. 45 bits tell
 * them apart: any two are taken for one another with a probability of 3e-14.
 */
interface Fingerprints {
  ofEvent(uid: string): EventFingerprints
  /** Names a record in Redis: 24 hex characters. */
  recordId(uid: string): string
  malformed(feed: string, canonicalJson: string): Fingerprint
  /**
   * Names an identifier, login or host: 48 bits in 8 characters, and a bucket. A login is compared with
   * those of its bucket alone: of a million, one in 1e11 would be taken for another.
   */
  term(kind: string, text: string): { digest: string; bucket: number }
}

interface EventFingerprints {
  recordId: string
  seen(feed: string): Fingerprint
  /**
   * Of what a feed showed from before its start bound; separate, so that an earlier bound finds it
   * new.
   */
  baseline(feed: string): Fingerprint
  claim(severity: string, destination: string): Fingerprint
}

/** How many bits of a fingerprint choose its bucket: the lowest of its magnitude (lib/marks.lua). */
const bucketBits = 18

/** Buckets of logins and hosts: as many as a large account fills, of which Redis packs each (128 entries). */
const termBuckets = 2_048

/**
 * `key`: 64 hex characters, as many as SHA-256 takes in one step. No digest is told as a whole, so
 * nobody can go on from one. An HMAC would cost five times as much, six times an event.
 */
function createFingerprints(key: string): Fingerprints {
  function digest(...parts: string[]): string {
    return hash('sha256', key + parts.join('\0'))
  }
  /** `identity` decides the bucket: all bits that choose one are its own. */
  function fingerprint(identity: string, digits: string): Fingerprint {
    const top = BigInt.asIntN(45, BigInt(`0x${digits.slice(0, 12)}`))
    const low = BigInt(hexAt(identity, 32, 8) % 2 ** bucketBits)
    const size = top * 2n ** BigInt(bucketBits) + (top < 0n ? -low : low)
    return { m: size.toString(), b: hexAt(identity, 24, 8) }
  }
  function ofEvent(uid: string): EventFingerprints {
    const identity = digest('record', uid)
    return {
      recordId: identity.slice(0, 24),
      seen: (feed) => fingerprint(identity, digest('seen', feed, uid)),
      baseline: (feed) => fingerprint(identity, digest('baseline', feed, uid)),
      claim: (severity, destination) =>
        fingerprint(identity, digest('claim', uid, severity, destination)),
    }
  }
  return {
    ofEvent,
    recordId: (uid) => ofEvent(uid).recordId,
    malformed(feed, canonicalJson) {
      const digits = digest('malformed', feed, canonicalJson)
      return fingerprint(digits, digits)
    },
    term(kind, text) {
      const digits = digest('term', kind, text)
      return {
        digest: Buffer.from(digits.slice(0, 12), 'hex').toString('base64url'),
        bucket: hexAt(digits, 12, 4) % termBuckets,
      }
    },
  }
}

function hexAt(digits: string, from: number, count: number): number {
  return Number.parseInt(digits.slice(from, from + count), 16)
}

/** An item's id, 33 characters: a digest of what identifies it, the same on every attempt. */
export function itemId(
  account: string,
  uid: string,
  severity: string,
  destination: string,
): string {
  const identity = [account, uid, severity, destination].join('\0')
  return `e${hash('sha256', identity).slice(0, 32)}`
}

/** A configuration that no replica confirmed for so long gives way to any other. */
export const desertedAfterMs = 60_000

/**
 * Makes a configuration the active one. `hash`: of what it does with events; who differs in that
 * competes for cursors.
 */
export function activateGeneration(redis: Redis, keys: Keys, hash: string): Promise<Confirmation> {
  return runGenerationScript(redis, keys, { hash, verb: 'start', patienceMs: desertedAfterMs })
}

export interface Confirmation {
  /**
   * The number of the generation, which grows with the hash. undefined if another one is active:
   * one that was started later and that some replica confirmed within `patienceMs`.
   */
  active: number | undefined
  previous: PreviousConfirmation
}

/** The last confirmation before, as far as Redis knows. */
export interface PreviousConfirmation {
  /** ms; 0: there was none. */
  atMs: number
  /** How many there were up to it. */
  count: number
  /** Drawn for the ledger when its first configuration was confirmed; empty: it has none yet. */
  ledgerId: string
}

export const unconfirmed: PreviousConfirmation = { atMs: 0, count: 0, ledgerId: '' }

/** Confirms a configuration. */
export function confirmGeneration(
  redis: Redis,
  keys: Keys,
  hash: string,
  patienceMs = desertedAfterMs,
): Promise<Confirmation> {
  return runGenerationScript(redis, keys, { hash, verb: 'confirm', patienceMs })
}

/** Redis was emptied or came back with an older state while a replica ran. */
export interface LedgerLoss {
  /** When a replica noticed it, ms. */
  atMs: number
  /** The time of the state that Redis came back with, ms; 0: it was empty. */
  stateMs: number
}

/** What a crash of Redis or a failover may lose, and clocks of two nodes may differ, ms. */
const usualLossMs = 10_000

/**
 * Whether Redis has forgotten a confirmation that a process has seen: it holds an older state, of this
 * ledger or another. A clock that is set back makes the time earlier, but neither the count smaller nor
 * the id another.
 */
export function isForgotten(seen: PreviousConfirmation, found: PreviousConfirmation): boolean {
  const isAnother = seen.ledgerId !== '' && found.ledgerId !== seen.ledgerId
  return (isAnother || found.count < seen.count) && seen.atMs - found.atMs > usualLossMs
}

export const lossRemedy =
  'stop every replica, restore the newest backup if this was none, and start them'

/** What follows "Redis holds". */
export function describeLoss({ stateMs }: Pick<LedgerLoss, 'stateMs'>): string {
  return stateMs === 0
    ? 'nothing of the ledger any more: what waited is gone, and what the feeds show from their start on is sent as new'
    : `an older state of the ledger, of ${new Date(stateMs).toISOString()}: what was delivered since is sent again`
}

/** How long a loss is shown, ms. */
const lossShownMs = 24 * 3_600_000

/** Notes the loss for all replicas and commands. A backup that is restored afterwards ends it. */
export async function noteLoss(redis: Redis, keys: Keys, loss: LedgerLoss): Promise<void> {
  const args = [JSON.stringify(loss), lossShownMs]
  await runScript(redis, 'write-note', [keys.shared('loss')], args)
}

/** The last loss; undefined: none within a day. */
export async function readLoss(redis: Redis, keys: Keys): Promise<LedgerLoss | undefined> {
  const noted = await redis.get(keys.shared('loss'))
  return noted === null ? undefined : (JSON.parse(noted) as LedgerLoss)
}

/** How long ago the last sign of a replica was, ms; each gives one every two seconds. */
export async function readSilenceMs(redis: Redis, keys: Keys): Promise<number> {
  const confirmedMs = Number(await redis.hget(keys.shared('generation'), 'confirmed'))
  return (await redisNow({ redis })) - confirmedMs
}

/** Whether some replica has run within the last minute. */
export async function hasReplicas(redis: Redis, keys: Keys): Promise<boolean> {
  return (await readSilenceMs(redis, keys)) < desertedAfterMs
}

/**
 * Whether no other configuration was started since this one. One that another merely stands in for,
 * because its replicas are gone, stays the newest for an hour.
 */
export async function isNewestGeneration(redis: Redis, keys: Keys, hash: string): Promise<boolean> {
  return (await redis.hget(keys.shared('generation'), 'newest')) === hash
}

/** What the configuration of a process is among those that replicas run. */
export interface Standing {
  /** It polls. */
  readonly isActive: boolean
  /** No other was started since, as of the last look. */
  readonly isNewest: boolean
  /**
   * Looks again. Only the newest calls a recipient, a sink, a digest or an account removed: what
   * another one does not know, the newest may have.
   */
  checkNewest(): Promise<boolean>
  /** Whether a newer configuration brought the account, and serves it. */
  isForeign(account: string): boolean
}

async function runGenerationScript(
  redis: Redis,
  keys: Keys,
  { hash, verb, patienceMs }: { hash: string; verb: string; patienceMs: number },
): Promise<Confirmation> {
  const args = [hash, verb, patienceMs, randomUUID()]
  const reply = await runScript(redis, 'activate-generation', [keys.shared('generation')], args)
  const [number, atMs, count, ledgerId] = reply as [number, number, number, string]
  return {
    active: number === 0 ? undefined : number,
    previous: { atMs, count, ledgerId },
  }
}

export interface LedgerConfig {
  /** How long an event is recognised after it was last seen. */
  dedupeHorizonMs: number
  /** How long the payload is kept after the last item became final. */
  payloadRetentionMs: number
  /** How long the record is kept after the last item became final. */
  historyRetentionMs: number
  /**
   * Limit of records, payloads and the quarantine together; only settled records are dropped for
   * it.
   */
  maxBytes: number
}

/** The ledger's two sections of the configuration file; `ledgerConfig` puts them together. */
export const ledgerSections = {
  dedupe: section(
    {
      horizon: duration('How long an event is remembered after it was last seen.').prefault('90d'),
    },
    { describe: 'How long a repeated event is recognised.' },
  ).prefault({}),
  retention: section(
    {
      payload: duration('How long the content of an event is kept once it is settled.').prefault(
        '14d',
      ),
      history: duration('How long the record of what happened to it is kept.').prefault('90d'),
      max_bytes: size(
        'What is kept of all events together; the oldest settled ones go first.',
        '1MiB',
      ).prefault('1GiB'),
    },
    { describe: 'How long settled events are kept.' },
  ).prefault({}),
}

export function ledgerConfig(file: {
  dedupe: { horizon: number }
  retention: { payload: number; history: number; max_bytes: number }
}): LedgerConfig {
  return {
    dedupeHorizonMs: file.dedupe.horizon,
    // a payload without its record cannot be used
    payloadRetentionMs: Math.min(file.retention.payload, file.retention.history),
    historyRetentionMs: file.retention.history,
    maxBytes: file.retention.max_bytes,
  }
}
