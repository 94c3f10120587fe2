import { errorMessage, ReasonedError } from '../lib/errors.ts'
import type { Secret } from '../lib/config/secret.ts'
import type { Attachment } from '../messages/csv.ts'
import type { MessageSubject } from '../messages/message.ts'
import type { Summary } from '../messages/summary.ts'
import type { Audience } from './config.ts'

/**
 * The contract of every sink. It is given one delivery and sends it once. It returns (accepted), or
 * throws a SinkError with a reason of the closed set. It never retries, counts or sleeps.
 */
export interface Sink {
  readonly name: string
  readonly type: string
  readonly audience: Audience
  /**
   * One event becomes one item per destination: the sink's name, or each recipient of an e-mail
   * sink.
   */
  readonly destinations: readonly Destination[]
  /**
   * Limits of a batch for sinks that take several items per message; undefined: one item per
   * message.
   */
  readonly batch?: { max: number; waitMs: number; maxBytes: number } | undefined
  /** Messages per second that all replicas together may send; undefined: no limit. */
  readonly limitPerSecond?: number | undefined
  /** Concurrent sends in one process. */
  readonly concurrency: number
  /** Zone of the times that its readers see; undefined: UTC, in digests that of the schedule. */
  readonly timeZone?: string | undefined
  /** Whether leaked secrets reach it in clear (`reveal: true`). */
  readonly reveals?: boolean
  /** Whether it shows no excerpts, only facts (`excerpts: never`). */
  readonly hidesExcerpts?: boolean
  /** Whether it can attach a file. */
  readonly canAttach?: boolean
  /** The longest a send may take in all, milliseconds. */
  readonly sendTimeoutMs: number
  /** Resolves when the other side has accepted. Throws SinkError. */
  send(delivery: Delivery, options: SendOptions): Promise<Receipt>
  /**
   * Connects as `send` does, TLS and the sign-in of a mail server included, and sends nothing.
   * Throws SinkError.
   */
  reach(signal: AbortSignal): Promise<Receipt>
  /** Size of one member in this sink's body, bytes; called only if `batch` is set. */
  measure?(member: DeliveryMember): number
  /** What `send` would send, without sending it and without a secret of the configuration. */
  preview?(delivery: Delivery): Preview
  close(): Promise<void>
}

export interface Preview {
  /** undefined: messages of this type have none. */
  subject?: string
  text: string
  html?: string
  /** The body as it would be posted; undefined: a mail, which is none. */
  body?: unknown
  /** Headers of the request but for those of a signature. */
  headers?: Readonly<Record<string, string>>
  /** What is added only when it is sent: a signature, a key. */
  added?: string
}

/** `id` is stable and part of ledger identities: `soc`, or `oncall:<recipient digest>`. */
export interface Destination {
  id: string
  /** What an operator reads: the sink's name, or the recipient's address. */
  label: string
}

/** One message to one destination. */
export interface Delivery {
  /** Deterministic, the same on every attempt: `webhook-id`, part of `Message-ID`. [a-z0-9]+ */
  id: string
  destination: Destination
  members: readonly DeliveryMember[]
  /** 1 for the first try. */
  attempt: number
  /** An earlier attempt ended without an answer: this may be a repeat, and the message says so. */
  mayBeRepeat: boolean
  /** The sink's own. */
  timeZone?: string | undefined
  /** A message of `sinks test`: marked TEST for people and machines. */
  isTest?: boolean
  /**
   * Set for several events in one message for people: `members` are those to show, in this order,
   * and the summary counts all that the message covers. undefined: one event, or a machine's batch.
   */
  summary?: Summary
  /** With a summary: the file that a sink with `canAttach` sends along. */
  attachment?: Attachment | undefined
  /** With a summary: the message's page; left out: no page is known. */
  pageUrl?: string | undefined
}

/** One item of a delivery. */
export interface DeliveryMember extends MessageSubject {
  /** The item's own id, the same on every attempt; each element of a webhook batch carries it. */
  id: string
  /** The tenant that the account is configured for; left out: none. */
  tenantId?: number | undefined
  labels: Readonly<Record<string, string>>
  /** As `titleOf` gives it, where the ledger has it. */
  title?: string | undefined
}

export interface SendOptions {
  /** Ends the send; the caller lets it abort after the sink's `sendTimeoutMs`. */
  signal: AbortSignal
  /**
   * Asked right before the first byte of the message is written. If it answers no, nothing is
   * written and the send fails: a process that was frozen may have lost its claim meanwhile.
   */
  mayBegin?: () => boolean
}

/** Why a send fails whose `mayBegin` says no. */
export const tooLate = 'not sent: the claim was not renewed in time, and may be lost'

/** What the other side said on accepting: status line or id, at most 200 characters, no secret. */
export interface Receipt {
  answer: string
}

/**
 * Why a send failed. The retry table (`delivery/send/retry-policy.ts`) decides by this word; metrics
 * carry it.
 */
export type SinkReason =
  | 'rate_limited' // 429 and the like: retryAfterMs counts
  | 'unavailable' // 408, 425, 5xx, refused, DNS, TLS set-up: nothing was accepted
  | 'timeout' // sent, no answer in time: the outcome is unknown
  | 'connection_lost' // cut after the request went out: the outcome is unknown
  | 'rejected' // a 4xx that may recover (404 while deploying): a few retries, then dead
  | 'invalid' // 400, 413, 422: this payload will never pass; a batch is split
  | 'unauthorized' // 401, 403, EAUTH: the operator must act
  | 'gone' // 410, channel archived, no_service: the sink itself no longer exists
  | 'recipient_refused' // a permanent 5xx for this recipient
  | 'recipient_deferred' // a temporary refusal of this recipient: it alone waits
  | 'redirected' // 3xx: a configuration error
  | 'forbidden_address' // private address without allow_private
  | 'misconfigured' // TLS, certificates, unreadable secret file: the operator must act

export class SinkError extends ReasonedError<SinkReason> {
  override readonly name = 'SinkError'
  readonly code = 'TOCSIN_SINK'
  /** Status code of the other side's protocol, if it gave one. */
  readonly status: number | undefined
  readonly retryAfterMs: number | undefined
  /** The failure says nothing about other destinations; undefined: it concerns the whole sink. */
  readonly scope: 'destination' | undefined

  constructor(
    reason: SinkReason,
    message: string,
    options: {
      status?: number
      retryAfterMs?: number
      scope?: 'destination' | undefined
      cause?: unknown
    } = {},
  ) {
    super(reason, message, options)
    this.status = options.status
    this.retryAfterMs = options.retryAfterMs
    this.scope = options.scope
  }
}

/** Reads a secret at its use, since its file may have changed; `key` names it. Throws SinkError. */
export function revealSecret(secret: Secret, key: string): string {
  try {
    return secret.reveal()
  } catch (error) {
    throw new SinkError('misconfigured', `${key} cannot be read: ${errorMessage(error)}`)
  }
}

/** Whether the other side may have accepted although the send failed. */
export function isAnswerLost(reason: SinkReason): boolean {
  return reason === 'timeout' || reason === 'connection_lost'
}

/**
 * Returns the one member of a delivery to a sink without `batch`. Throws SinkError `invalid` for
 * any other number.
 */
export function soleMember({ id, members }: Delivery): DeliveryMember {
  const [member, ...others] = members
  if (member !== undefined && others.length === 0) return member
  throw new SinkError('invalid', `delivery ${id} has ${members.length} events, this sink takes one`)
}
