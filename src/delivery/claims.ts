/**
 * Claims: how work leaves the ledger. A process claims what is due for a sink, in batches. A claim
 * changes no item: it only keeps other processes away until its lease ends. An attempt is opened
 * right before its send, by the same script call that writes the outcomes of earlier attempts. An
 * item is `sending` between these two calls, and at no other time.
 */
import type { AnsweredMessage } from '../grouping/freeze.ts'
import type { DeliveryMember, Sink } from '../sinks/sink.ts'
import type { AccountLedger } from '../store/account-ledger.ts'
import {
  type FoundItem,
  otherDestinations,
  parseRecord,
  type Payload,
  readItems,
  type SeenBefore,
} from '../store/records.ts'

/** A piece of work that this process has claimed. */
export type Claim =
  | Message
  /** An item whose wait for its full event is over. */
  | { kind: 'detail'; ref: string; rank: number }
  /** A sink's batch that is full or has waited long enough to be frozen. */
  | { kind: 'collection'; ref: string; rank: number }
  /**
   * A frozen message whose members are being returned to the queue; unfreezing has to be continued.
   */
  | { kind: 'unfreezing'; ref: string; rank: number }
  /** A summary with a known outcome; only its members remain to be settled. */
  | { kind: 'settling'; ref: string; rank: number; batch: AnsweredMessage }

/**
 * What one send carries: an item, a batch for a machine, or a summary, whose members are read
 * separately.
 */
export interface Message {
  kind: 'item' | 'batch' | 'summary'
  ref: string
  /** Rank of the worst severity in it, 1 to 5. */
  rank: number
  /**
   * Attempts before this one (`attempts`), and how many of them count in the retry schedule
   * (`tries`).
   */
  attempts: number
  tries: number
  createdAtMs: number
  /** The answer to an earlier attempt was lost, or its process died. */
  mayBeRepeat: boolean
  /** When the attempt began that failed last, also as a part of a larger batch, by Redis' clock, ms. */
  failedAtMs?: number | undefined
  /** It tests whether its destination, which was in trouble, takes anything again. */
  probesDestination?: boolean
  destination: string
  /** Empty for a summary. */
  members: Member[]
  /** Only for a summary: its stored `MessageAbout`, as JSON. */
  about: string | undefined
  /** How many events the message stands for. */
  total: number
}

export interface Member {
  id: string
  recordId: string
  uid: string
  severity: string
  routes: string[]
  feed: string
  labels: Record<string, string>
  raisedFrom: string | undefined
  destination: string
  /** Where else its event goes, and its logins and hosts known from before. */
  otherDestinations: string[]
  seenBefore: SeenBefore[]
  /** As written when the event was taken in; undefined: it was shown again, by another feed or more severe. */
  title: string | undefined
  /** What people did with the event upstream. */
  closed: 'ignored' | 'remediated' | undefined
  /** undefined once retention removed it; the member can no longer be sent. */
  payload: Payload | undefined
  /** What is sent, where it was made to measure a batch. */
  made?: DeliveryMember | undefined
}

/** The process that claims, and how long its leases last. */
export interface Holder {
  /** Names the process; contains no white space. */
  owner: string
  leaseMs: number
}

export interface ClaimRequest {
  sink: string
  /** Most pieces of work to claim. */
  max: number
  /**
   * Lowest rank to claim; 1 claims everything. The places reserved for the longest waiting ignore
   * it.
   */
  leastRank: number
  /** Claims only this piece of work, if it is due. */
  ref?: string
  /**
   * Claims one piece of work, to test whether the sink takes anything again. It is one that was
   * never tried, else the one that was tried longest ago.
   */
  probe?: 'any' | 'untried' | false
  /**
   * By destination in trouble: how long its messages are put off, ms; of 0, one of them is claimed
   * as its probe.
   */
  waits?: Readonly<Record<string, number>>
}

export interface ClaimResult {
  claims: Claim[]
  /** How many more are due, and the worst rank among them. */
  left: number
  topRank: number | undefined
  /**
   * Time until this sink's next piece of work is due, ms; a claimed one is due when its lease ends.
   */
  nextInMs: number | undefined
  /** Time until the first of those is due that were put off; undefined: none was. */
  putOffMs: number | undefined
}

interface StoredClaim {
  kind: Claim['kind']
  ref: string
  rank: number
  attempts: number
  tries: number
  created: number
  repeat: boolean
  failed?: number
  probe?: boolean
  members?: { rid: string; n: number; at: number }[]
  d?: string
  about?: string
  total?: number
  batch?: AnsweredMessage
}

/** What one claim takes at most, as far as the sink can send it within `aheadMs`. */
export const maxClaims = 100
export const aheadMs = 2_000

/** Most claims in hand: what the sink can send within `aheadMs`, as far as its limit is known. */
export function claimRoom({
  limitPerSecond,
  concurrency,
}: Pick<Sink, 'limitPerSecond' | 'concurrency'>): number {
  if (limitPerSecond === undefined) return Math.min(maxClaims, concurrency * 8)
  return Math.max(1, Math.min(maxClaims, Math.floor((limitPerSecond * aheadMs) / 1_000)))
}

/** Most bytes of records and payloads in one answer; a single message may exceed it. */
const maxAnswerBytes = 1_048_576

/** Claims due work, the worst first; one place in ten goes to the longest waiting. */
export async function claimDue(
  ledger: AccountLedger,
  holder: Holder,
  request: ClaimRequest,
): Promise<ClaimResult> {
  const { leastRank, ...asked } = request
  const args = {
    ...asked,
    least: leastRank,
    ...toStoredHolder(holder),
    bytes: maxAnswerBytes,
  }
  const [head = '{}', ...texts] = (await ledger.run('claim-due', JSON.stringify(args))) as string[]
  const answer = JSON.parse(head) as {
    claims?: StoredClaim[]
    left: number
    top?: number
    next?: number
    off?: number
  }
  const events: Pick<FoundItem, 'record' | 'payload'>[] = []
  const claims = (answer.claims ?? []).map((claim) => {
    const members = (claim.members ?? []).map(({ rid, n, at }) => {
      const event = (events[at] ??= {
        record: parseRecord(ledger.account, rid, texts[2 * at] ?? ''),
        payload: parsePayload(texts[2 * at + 1] ?? ''),
      })
      const item = event.record.items[n]
      if (!item) throw new Error(`${claim.ref} was claimed, and its record has no item ${n}`)
      return toMember({ ...event, item })
    })
    return readClaim(claim, members)
  })
  const { left, top, next, off } = answer
  return { claims, left, topRank: top, nextInMs: next, putOffMs: off }
}

function toStoredHolder({ owner, leaseMs }: Holder): { owner: string; lease: number } {
  return { owner, lease: leaseMs }
}

function parsePayload(text: string): Payload | undefined {
  return text === '' ? undefined : (JSON.parse(text) as Payload)
}

function readClaim(claim: StoredClaim, members: Member[]): Claim {
  const { kind, ref, rank, batch } = claim
  if (kind === 'settling') return { kind, ref, rank, batch: batch ?? { o: 'dead', n: 0 } }
  if (kind !== 'item' && kind !== 'batch' && kind !== 'summary') return { kind, ref, rank }
  return readMessage({ ...claim, kind }, members)
}

function readMessage(claim: StoredClaim & Pick<Message, 'kind'>, members: Member[]): Message {
  const { kind, ref, rank, attempts, tries } = claim
  return {
    kind,
    ref,
    rank,
    attempts,
    tries,
    createdAtMs: claim.created,
    mayBeRepeat: claim.repeat,
    failedAtMs: claim.failed,
    probesDestination: claim.probe === true,
    destination: claim.d ?? '',
    members,
    about: claim.about,
    total: claim.total ?? members.length,
  }
}

/** An item as its message shows it. */
export function toMember({ record, item, payload }: Omit<FoundItem, 'ref'>): Member {
  const { feed = '', labels = {} } = record.sightings[item.sighting] ?? {}
  const { uid, recordId, seenBefore, closed } = record
  const { id, severity, routes, raisedFrom, destination } = item
  const about = { id, uid, severity, routes, feed, labels, raisedFrom, closed, payload }
  const others = otherDestinations(record.items, item)
  const title = record.sightings.length === 1 ? record.title : undefined
  return { ...about, recordId, destination, otherDestinations: others, seenBefore, title }
}

/** An item that waits in a sink's batch. */
export interface WaitingMember {
  ref: string
  /** Time since it joined the batch, by Redis' clock, ms. */
  ageMs: number
  /** undefined: its record is gone. */
  found: FoundItem | undefined
  made?: DeliveryMember | undefined
}

/** Returns the first `max` items that wait in a sink's batch, oldest first. */
export async function peekBatch(
  ledger: AccountLedger,
  sink: string,
  max: number,
): Promise<WaitingMember[]> {
  const name = ledger.key('collect', sink)
  const [[seconds, micros], pairs] = await Promise.all([
    ledger.redis.time(),
    ledger.redis.zrange(name, '0', String(max - 1), 'WITHSCORES'),
  ])
  const nowMs = Number(seconds) * 1_000 + Number(micros) / 1_000
  const refs = pairs.filter((_text, i) => i % 2 === 0)
  if (refs.length === 0) return []
  const items = new Map((await readItems(ledger, refs)).map((item) => [item.ref, item]))
  return refs.map((ref, i) => ({
    ref,
    ageMs: nowMs - Number(pairs[2 * i + 1]),
    found: items.get(ref),
  }))
}

/**
 * Freezes waiting members into a batch and claims it; undefined if none of them still waits, or this
 * process no longer holds what the sink collects.
 */
export async function freezeBatch(
  ledger: AccountLedger,
  holder: Holder,
  batch: { sink: string; destination: string; members: readonly WaitingMember[] },
): Promise<Message | undefined> {
  const { sink, destination, members } = batch
  const refs = members.map(({ ref }) => ref)
  const args = JSON.stringify({ sink, destination, refs, ...toStoredHolder(holder) })
  const answer = await ledger.run('freeze-batch', args)
  if (answer === '') return undefined
  const claim = JSON.parse(String(answer)) as StoredClaim & { refs: string[] }
  const waiting = new Map(members.map((member) => [member.ref, member]))
  const frozen = claim.refs.map((ref) => {
    const { found, made } = waiting.get(ref) ?? {}
    if (!found) throw new Error(`${ref} was frozen, and its record had not been there`)
    return { ...toMember(found), made }
  })
  return readMessage({ ...claim, kind: 'batch' }, frozen)
}

export interface Outcome {
  /** `unsent`: nothing left this process, so the attempt does not count. */
  outcome: 'delivered' | 'retry' | 'dead' | 'split' | 'unsent'
  /** With `retry`: time until the next try, by Redis' clock, ms. */
  inMs?: number
  /** Whether the try counts in the retry schedule. */
  counts?: boolean
  /** The receiver may have accepted the message although its answer was lost. */
  answerLost?: boolean
  reason?: string
  answer?: string
}

/** What a process changes about its claims, all in one script call. */
export interface ClaimUpdate {
  settle?: readonly { ref: string; token: string; outcome: Outcome }[]
  begin?: readonly { ref: string; token: string }[]
  /** References whose leases are extended. */
  renew?: readonly string[]
  /**
   * Claims that were not begun, for others to take: due in `inMs`, or since they first were due.
   */
  giveBack?: readonly { ref: string; rank: number; inMs?: number }[]
}

export interface ClaimUpdateResult {
  /** In the order of `settle`. */
  settled: SettleResult[]
  /** In the order of `begin`; undefined: another process holds it, or nothing is left to send. */
  begun: ({ attempt: number; mayBeRepeat: boolean } | undefined)[]
  /** References from `renew` that another process holds or that are settled. */
  lost: string[]
}

export interface SettleResult {
  /**
   * `already`: another attempt had settled it; `stale`: a later attempt is running and nothing
   * changed.
   */
  status: 'settled' | 'already' | 'stale'
  /** With `split`: references of the two frozen batches that replaced it. */
  halves?: string[]
  /** Only for a summary: its members have to be settled next. */
  batch?: AnsweredMessage
}

/** Applies a claim update; `by` names the process in the histories of the items it settles. */
export async function advanceClaims(
  ledger: AccountLedger,
  holder: Holder & { by: string },
  update: ClaimUpdate,
): Promise<ClaimUpdateResult> {
  const args = {
    ...toStoredHolder(holder),
    by: holder.by,
    retention: ledger.retention,
    settle: update.settle?.map(toStoredOutcome),
    begin: update.begin,
    renew: update.renew,
    back: update.giveBack?.map(({ ref, rank, inMs }) => ({ ref, rank, wait: inMs })),
  }
  const answer = await ledger.runJson<{
    settled?: SettleResult[]
    begun?: ({ attempt: number; repeat: boolean } | { attempt?: never })[]
    lost?: string[]
  }>('advance-claims', JSON.stringify(args))
  const { settled = [], begun = [], lost = [] } = answer
  return {
    settled,
    begun: begun.map((open) =>
      open.attempt === undefined ? undefined : { attempt: open.attempt, mayBeRepeat: open.repeat },
    ),
    lost,
  }
}

function toStoredOutcome({
  ref,
  token,
  outcome,
}: {
  ref: string
  token: string
  outcome: Outcome
}): Record<string, unknown> {
  return {
    ref,
    token,
    outcome: outcome.outcome,
    wait: outcome.inMs,
    counts: outcome.counts,
    lost: outcome.answerLost,
    reason: outcome.reason,
    answer: outcome.answer?.slice(0, 200),
  }
}

/**
 * Reads a summary whose outcome is known while members remain to be settled; undefined otherwise.
 */
export async function readAnsweredMessage(
  ledger: AccountLedger,
  ref: string,
): Promise<AnsweredMessage | undefined> {
  const text = await ledger.redis.get(ledger.key('batch', ref.split(':')[1] ?? ''))
  const batch = text === null ? {} : (JSON.parse(text) as Partial<AnsweredMessage>)
  return batch.o === undefined ? undefined : (batch as AnsweredMessage)
}

/**
 * Returns whom a frozen message is for, and the item references in a batch; none for a summary,
 * which stores its members separately.
 */
export async function readMessageHead(
  ledger: AccountLedger,
  ref: string,
): Promise<{ destination?: string | undefined; refs: string[] }> {
  const text = await ledger.redis.get(ledger.key('batch', ref.split(':')[1] ?? ''))
  const { d, m = [] } = JSON.parse(text ?? '{}') as { d?: string; m?: string[] }
  return { destination: d, refs: m }
}
