/** Attempts: one script before a send, one after it. Between them an item is `sending`, and only then. */
import type { Book } from './book.ts'
import { itemId } from './digests.ts'
import type { Payload } from './records.ts'

/** What a send needs, or why there is nothing to send. */
export type BegunAttempt =
  /** `unsealing`: its members are being taken out of it, and somebody has to go on with that. */
  | { status: 'missing' | 'final' | 'unsealing' }
  /** A summary whose answer is known: only its members are left to be settled. */
  | { status: 'settling'; batch: SettlingBatch }
  | {
      status: 'send'
      attempt: number
      /** An earlier attempt's answer was lost, or its worker died. */
      mayBeRepeat: boolean
      /** Tries already used up of the retry schedule. */
      tries: number
      createdAtMs: number
      destination: string
      /** Empty for a summary, whose members are read apart. */
      members: AttemptMember[]
      /** Of a summary: what is kept of it (JSON), and how many events it stands for. */
      about: string | undefined
      total: number
    }

/** A summary as stored, once its outcome is known. */
export interface SettlingBatch {
  /** The outcome. */
  o: 'delivered' | 'dead'
  /** Attempts, their notes, and how many answers were lost. */
  n: number
  h?: unknown
  rr?: number
  about?: string
}

export interface AttemptMember {
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

interface StoredAttempt {
  status: 'send' | 'missing' | 'final' | 'unsealing'
  attempt: number
  repeat: boolean
  tries: number
  created: number
  members?: StoredMember[]
  d?: string
  about?: string
  total?: number
}

/** `leaseMs`: after it the reconciler looks whether the job still exists; not a limit on the send. */
export async function beginAttempt(
  book: Book,
  ref: string,
  token: string,
  leaseMs: number,
): Promise<BegunAttempt> {
  const [head, ...payloads] = (await book.run('begin-attempt', ref, token, leaseMs)) as string[]
  const stored = JSON.parse(head ?? '{}') as StoredAttempt | Settling
  if (stored.status === 'settling') return stored
  if (stored.status !== 'send') return { status: stored.status }
  const { members = [] } = stored
  return {
    status: 'send',
    attempt: stored.attempt,
    mayBeRepeat: stored.repeat,
    tries: stored.tries,
    createdAtMs: stored.created,
    destination: stored.d ?? members[0]?.d ?? '',
    members: members.map((member, i) => memberOf(book, member, payloads[i] ?? '')),
    about: stored.about,
    total: stored.total ?? members.length,
  }
}

/** A summary whose outcome is known, with members left to be settled. */
export async function readAnswered(book: Book, ref: string): Promise<SettlingBatch | undefined> {
  const text = await book.redis.get(book.key('batch', ref.split(':')[1] ?? ''))
  const batch = text === null ? {} : (JSON.parse(text) as Partial<SettlingBatch>)
  return batch.o === undefined ? undefined : (batch as SettlingBatch)
}

/** References that a machine's sealed batch holds; empty for a summary, whose members are kept apart. */
export async function batchMembers(book: Book, ref: string): Promise<string[]> {
  const text = await book.redis.get(book.key('batch', ref.split(':')[1] ?? ''))
  const { m = [] } = text === null ? {} : (JSON.parse(text) as { m?: string[] })
  return m
}

interface Settling {
  status: 'settling'
  batch: SettlingBatch
}

function memberOf(book: Book, member: StoredMember, payload: string): AttemptMember {
  return {
    id: itemId(book.account, member.u, member.sv, member.d),
    recordId: member.rid,
    uid: member.u,
    severity: member.sv,
    routes: member.q,
    feed: member.f,
    labels: member.l,
    raisedFrom: member.rf,
    closed: member.cl,
    payload: payload === '' ? undefined : (JSON.parse(payload) as Payload),
  }
}

export interface Outcome {
  outcome: 'delivered' | 'retry' | 'dead' | 'split'
  /** With `retry`: when, wall clock ms. */
  atMs?: number
  /** The try counts against the retry schedule. */
  counts?: boolean
  /** The other side may have accepted. */
  answerLost?: boolean
  reason?: string
  answer?: string
}

export interface SettledAttempt {
  /** `already`: another attempt had settled it; `stale`: a later attempt is running, nothing changed. */
  status: 'settled' | 'already' | 'stale'
  /** With `split`: the two sealed batches that took its place. */
  halves?: string[]
  /** Of a summary: its members are to be settled next. */
  batch?: SettlingBatch
}

export async function settleAttempt(
  book: Book,
  attempt: { ref: string; token: string; replica: string },
  result: Outcome,
): Promise<SettledAttempt> {
  const ask = {
    ref: attempt.ref,
    token: attempt.token,
    by: attempt.replica,
    outcome: result.outcome,
    at: result.atMs,
    counts: result.counts,
    lost: result.answerLost,
    reason: result.reason,
    answer: result.answer?.slice(0, 200),
    retention: book.retention,
  }
  return book.ask<SettledAttempt>('settle-attempt', JSON.stringify(ask))
}
