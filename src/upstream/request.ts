/** Types of a request as its caller gives it: who it is for, how long it may wait, and what is sent. */
import type { Tier } from './config.ts'
import type { Operation } from './resources/operation.ts'

/**
 * `token`: renewing or testing the token, which everything else waits for. `feed`: a page of a
 * feed. `rescan`: a page of a feed's rescan, which looks for late arrivals. `detail`: the full event
 * of a message about to be sent. `command`: a request of an operator's command.
 */
export type RequestKind = 'token' | 'feed' | 'rescan' | 'detail' | 'command'

export interface SlotRequest {
  kind: RequestKind
  /** Name of the feed, sink, command or account. */
  name: string
  /** Wall clock ms since which the request is due. */
  dueSinceMs: number
  /** Of the event that it asks for: among requests of a kind the higher rank goes first. Default 0. */
  rank?: number
  /** Called when only the slot is still missing: token and organization are known. */
  onJoin?: (() => void) | undefined
  /** Called when the slot has come and the request goes out. */
  onSlot?: (() => void) | undefined
}

export interface TakeOptions {
  signal?: AbortSignal | undefined
  maxWaitMs?: number | undefined
}

/** Who a request's slot is for, and how long it may wait for the slot. */
export interface CallOptions extends TakeOptions {
  slot: SlotRequest
  /** Default: the tier of the operation. */
  tier?: Tier | undefined
  /**
   * Called right before a write is written: from now on it may reach the API. If this throws, the
   * write is not sent.
   */
  onSend?: () => void
}

/**
 * Sends an operation and returns what it answers. Throws UpstreamError: `invalid` before anything
 * is sent, with each mistake. `mayBeDone` is set where an operation that changes something may have
 * been carried out all the same: it must not be repeated blindly.
 */
export type CallOperation = <Request, Result>(
  operation: Operation<Request, Result>,
  request: Request,
  asked: CallOptions,
) => Promise<Result>
