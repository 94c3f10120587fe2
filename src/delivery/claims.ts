/**
 * Claims: how work leaves the ledger. A process claims what is due for a sink, in batches; a claim keeps other
 * processes away until its lease ends and marks nothing. An attempt is opened right before its send, by the same
 * script that writes what came of the attempts before it. Between the two an item is `sending`, and only then.
 */
import type { AnsweredMessage } from '../grouping/freeze.ts'
import { type AccountLedger, itemId } from '../store/account-ledger.ts'
import type { Payload } from '../store/records.ts'

/** A piece of work in this process' hands. */
export type Claim =
  | Message
  /** The wait for its full event is over. */
  | { kind: 'detail'; ref: string; rank: number }
  /** A sink's batch has collected for long enough. */
  | { kind: 'collection'; ref: string; rank: number }
  /** Its members are being taken out of it, and somebody has to go on with that. */
  | { kind: 'unsealing'; ref: string; rank: number }
  /** A summary whose answer is known: only its members are left to be settled. */
  | { kind: 'settling'; ref: string; rank: number; batch: AnsweredMessage }

/** What one send carries: an item, a machine's batch, or a summary, whose members are read apart. */
export interface Message {
  kind: 'item' | 'batch' | 'summary'
  ref: string
  /** Of the worst severity in it, 1 to 5. */
  rank: number
  /** Attempts before this one, and those of them that the retry schedule counts. */
  attempts: number
  tries: number
  createdAtMs: number
  /** An earlier attempt's answer was lost, or its process died. */
  mayBeRepeat: boolean
  destination: string
  /** Empty for a summary. */
  members: Member[]
  /** Of a summary: what is kept of it (JSON). */
  about: string | undefined
  /** How many events it stands for. */
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
  /** What people did with it at the service. */
  closed: 'ignored' | 'remediated' | undefined
  /** undefined when it is no longer kept: nothing can be sent then. */
  payload: Payload | undefined
}

/** Who claims, and for how long. */
export interface Holder {
  /** Names the process; no white space. */
  owner: string
  leaseMs: number
}

export interface ClaimRequest {
  sink: string
  /** How many pieces of work at most. */
  max: number
  /** Takes nothing less severe, but for what its turn as the longest waiting brings; 1: it takes all. */
  leastRank: number
  /** That piece alone, where it is due. */
  ref?: string
}

export interface ClaimResult {
  claims: Claim[]
  /** How many more are due, and the rank of the worst of them. */
  left: number
  topRank: number | undefined
  /** How long until the next piece of this sink is due, ms; what is claimed counts from the end of its lease. */
  nextInMs: number | undefined
}

interface StoredMember {
  rid: string
  n: number
  u: string
  sv: string
  d: string
  q: string[]
  f: string
  l: Record<string, string>
  rf?: string
  cl?: 'ignored' | 'remediated'
}

interface StoredClaim {
  kind: Claim['kind']
  ref: string
  rank: number
  attempts: number
  tries: number
  created: number
  repeat: boolean
  members?: StoredMember[]
  d?: string
  about?: string
  total?: number
  batch?: AnsweredMessage
}

/** One answer carries so many bytes of payloads at most; a single message may be larger. */
const maxAnswerBytes = 1_048_576

/** The worst first; one place in ten goes to the longest waiting. */
export async function claimDue(
  ledger: AccountLedger,
  holder: Holder,
  request: ClaimRequest,
): Promise<ClaimResult> {
  const { sink, max, leastRank, ref } = request
  const args = {
    sink,
    max,
    least: leastRank,
    ref,
    ...toStoredHolder(holder),
    bytes: maxAnswerBytes,
  }
  const [head = '{}', ...payloads] = (await ledger.run(
    'claim-due',
    JSON.stringify(args),
  )) as string[]
  const answer = JSON.parse(head) as {
    claims?: StoredClaim[]
    left: number
    top?: number
    next?: number
  }
  let payloadIndex = 0
  const claims = (answer.claims ?? []).map((claim) => {
    const count = claim.members?.length ?? 0
    payloadIndex += count
    return readClaim(
      ledger,
      claim,
      payloads.slice(payloadIndex - count, payloadIndex).map(parsePayload),
    )
  })
  return { claims, left: answer.left, topRank: answer.top, nextInMs: answer.next }
}

function toStoredHolder({ owner, leaseMs }: Holder): { owner: string; lease: number } {
  return { owner, lease: leaseMs }
}

function parsePayload(text: string): Payload | undefined {
  return text === '' ? undefined : (JSON.parse(text) as Payload)
}

function readClaim(
  ledger: AccountLedger,
  claim: StoredClaim,
  payloads: readonly (Payload | undefined)[],
): Claim {
  const { kind, ref, rank, batch } = claim
  if (kind === 'settling') return { kind, ref, rank, batch: batch ?? { o: 'dead', n: 0 } }
  if (kind !== 'item' && kind !== 'batch' && kind !== 'summary') return { kind, ref, rank }
  return readMessage(ledger, { ...claim, kind }, payloads)
}

function readMessage(
  ledger: AccountLedger,
  claim: StoredClaim & Pick<Message, 'kind'>,
  payloads: readonly (Payload | undefined)[],
): Message {
  const { kind, ref, rank, attempts, tries, members = [] } = claim
  return {
    kind,
    ref,
    rank,
    attempts,
    tries,
    createdAtMs: claim.created,
    mayBeRepeat: claim.repeat,
    destination: claim.d ?? members[0]?.d ?? '',
    members: members.map((member, i) => readMember(ledger, member, payloads[i])),
    about: claim.about,
    total: claim.total ?? members.length,
  }
}

function readMember(
  ledger: AccountLedger,
  member: StoredMember,
  payload: Payload | undefined,
): Member {
  return {
    id: itemId(ledger.account, member.u, member.sv, member.d),
    recordId: member.rid,
    uid: member.u,
    severity: member.sv,
    routes: member.q,
    feed: member.f,
    labels: member.l,
    raisedFrom: member.rf,
    closed: member.cl,
    payload,
  }
}

/** A member of a sink's collection. */
export interface WaitingMember {
  ref: string
  /** How long ago it was collected, by Redis' clock, ms. */
  ageMs: number
  payload: Payload | undefined
}

/** The first members that wait in a sink's collection, oldest first. */
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
  const payloads = await ledger.redis.mget(
    refs.map((ref) => ledger.key('pay', ref.split(':')[1] ?? '')),
  )
  return refs.map((ref, i) => {
    const payload = parsePayload(payloads[i] ?? '')
    return { ref, ageMs: nowMs - Number(pairs[2 * i + 1]), payload }
  })
}

/** Freezes members of a sink's collection into a batch that is claimed; undefined where none was waiting any more. */
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
  const payloads = new Map(members.map(({ ref, payload }) => [ref, payload]))
  return readMessage(
    ledger,
    { ...claim, kind: 'batch' },
    claim.refs.map((ref) => payloads.get(ref)),
  )
}

export interface Outcome {
  /** `unsent`: nothing left this process, and the attempt is none. */
  outcome: 'delivered' | 'retry' | 'dead' | 'split' | 'unsent'
  /** With `retry`: how long until then, by Redis' clock, ms. */
  inMs?: number
  /** The try counts against the retry schedule. */
  counts?: boolean
  /** The other side may have accepted. */
  answerLost?: boolean
  reason?: string
  answer?: string
}

/** What a process has to say of what it holds, all in one step. */
export interface ClaimUpdate {
  settle?: readonly { ref: string; token: string; outcome: Outcome }[]
  begin?: readonly { ref: string; token: string }[]
  /** Whose lease is to last. */
  renew?: readonly string[]
  /** Not begun, and for others: due in `inMs`, or since when it was. */
  giveBack?: readonly { ref: string; rank: number; inMs?: number }[]
}

export interface ClaimUpdateResult {
  /** In the order of `settle`. */
  settled: SettleResult[]
  /** In the order of `begin`; undefined: it is another holder's by now, or there is nothing to send any more. */
  begun: ({ attempt: number; mayBeRepeat: boolean } | undefined)[]
  /** Those of `renew` that another process holds, or that are settled. */
  lost: string[]
}

export interface SettleResult {
  /** `already`: another attempt had settled it; `stale`: a later attempt is running, nothing changed. */
  status: 'settled' | 'already' | 'stale'
  /** With `split`: the two frozen batches that took its place. */
  halves?: string[]
  /** Of a summary: its members are to be settled next. */
  batch?: AnsweredMessage
}

/** `by` names the process in the histories of what it settles. */
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

/** A summary whose outcome is known, with members left to be settled. */
export async function readAnsweredMessage(
  ledger: AccountLedger,
  ref: string,
): Promise<AnsweredMessage | undefined> {
  const text = await ledger.redis.get(ledger.key('batch', ref.split(':')[1] ?? ''))
  const batch = text === null ? {} : (JSON.parse(text) as Partial<AnsweredMessage>)
  return batch.o === undefined ? undefined : (batch as AnsweredMessage)
}

/** References that a machine's frozen batch holds; empty for a summary, whose members are kept apart. */
export async function readBatchRefs(ledger: AccountLedger, ref: string): Promise<string[]> {
  const text = await ledger.redis.get(ledger.key('batch', ref.split(':')[1] ?? ''))
  const { m = [] } = text === null ? {} : (JSON.parse(text) as { m?: string[] })
  return m
}
