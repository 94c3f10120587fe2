/** Attempts: one script before a send, one after it. Between them an item is `sending`, and only then. */
import type { Book } from './book.ts'
import { itemId } from './digests.ts'
import type { Payload } from './records.ts'

/** What a send needs, or why there is nothing to send. */
export type BegunAttempt =
  | { status: 'missing' | 'final' }
  | {
      status: 'send'
      attempt: number
      /** An earlier attempt's answer was lost, or its worker died. */
      mayBeRepeat: boolean
      /** Tries already used up of the retry schedule. */
      tries: number
      createdAtMs: number
      destination: string
      members: AttemptMember[]
    }

export interface AttemptMember {
  id: string
  uid: string
  severity: string
  routes: string[]
  feed: string
  labels: Record<string, string>
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
}

interface StoredAttempt {
  status: 'send' | 'missing' | 'final'
  attempt: number
  repeat: boolean
  tries: number
  created: number
  members: StoredMember[]
}

/** `leaseMs`: after it the reconciler looks whether the job still exists; not a limit on the send. */
export async function beginAttempt(
  book: Book,
  ref: string,
  token: string,
  leaseMs: number,
): Promise<BegunAttempt> {
  const [head, ...payloads] = (await book.run('begin-attempt', ref, token, leaseMs)) as string[]
  const stored = JSON.parse(head ?? '{}') as StoredAttempt
  if (stored.status !== 'send') return { status: stored.status }
  return {
    status: 'send',
    attempt: stored.attempt,
    mayBeRepeat: stored.repeat,
    tries: stored.tries,
    createdAtMs: stored.created,
    destination: stored.members[0]?.d ?? '',
    members: stored.members.map((member, i) => memberOf(book, member, payloads[i] ?? '')),
  }
}

function memberOf(book: Book, member: StoredMember, payload: string): AttemptMember {
  return {
    id: itemId(book.account, member.u, member.sv, member.d),
    uid: member.u,
    severity: member.sv,
    routes: member.q,
    feed: member.f,
    labels: member.l,
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
