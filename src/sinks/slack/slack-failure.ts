/**
 * What Slack's answers mean. A word in the body says more than the status, and only `ok` with 200 is
 * acceptance. `unauthorized` is what the workspace's people can mend with the same URL, `gone` what
 * needs another URL.
 */
import { SinkError, type SinkReason } from '../sink.ts'

/** Incoming webhooks, "Handling errors", and the changelog of 2016-05-17. */
const reasonsByWord: Readonly<Record<string, SinkReason>> = {
  invalid_payload: 'invalid',
  invalid_blocks: 'invalid',
  invalid_blocks_format: 'invalid',
  no_text: 'invalid',
  too_many_attachments: 'invalid',
  msg_blocks_too_long: 'invalid',
  msg_too_long: 'invalid',
  invalid_attachments: 'invalid',
  no_service: 'gone',
  no_service_id: 'gone',
  invalid_token: 'gone',
  no_team: 'gone',
  team_disabled: 'gone',
  channel_not_found: 'gone',
  user_not_found: 'gone',
  channel_is_archived: 'gone',
  action_prohibited: 'unauthorized',
  posting_to_general_channel_denied: 'unauthorized',
  rate_limited: 'rate_limited',
  ratelimited: 'rate_limited',
  message_limit_exceeded: 'rate_limited',
  rollup_error: 'unavailable',
  internal_error: 'unavailable',
  service_unavailable: 'unavailable',
}

const advice: Partial<Record<SinkReason, string>> = {
  gone: '; make a new incoming webhook in Slack and put its URL into this sink',
  unauthorized: "; allow the app to post to the channel in the workspace's settings",
  redirected: '; the URL is not that of an incoming webhook',
}

export interface SlackAnswer {
  status: number
  body: string
  retryAfterMs: number | undefined
}

export function isAccepted({ status, body }: SlackAnswer): boolean {
  return status === 200 && body.trim() === 'ok'
}

/** The error for an answer that is not acceptance. Only Slack's own word of it is repeated. */
export function answerFailure({ status, body, retryAfterMs }: SlackAnswer): SinkError {
  const word = wordOf(body)
  const reason = reasonOf(status, word)
  return new SinkError(
    reason,
    `slack answered ${status}${word === '' ? '' : ` ${word}`}${advice[reason] ?? ''}`,
    { status, ...(retryAfterMs !== undefined && { retryAfterMs }) },
  )
}

function reasonOf(status: number, word: string): SinkReason {
  if (status === 429) return 'rate_limited'
  const known = Object.hasOwn(reasonsByWord, word) ? reasonsByWord[word] : undefined
  return known ?? reasonOfStatus(status)
}

function reasonOfStatus(status: number): SinkReason {
  if (status === 408 || status === 425 || status >= 500) return 'unavailable'
  if (status === 400 || status === 413 || status === 422) return 'invalid'
  if (status === 401 || status === 403) return 'unauthorized'
  if (status === 410) return 'gone'
  if (status >= 300 && status < 400) return 'redirected'
  return 'rejected'
}

/** Slack answers with a bare word, at times with `{"ok": false, "error": word}`. */
function wordOf(body: string): string {
  const match = /^\s*([a-z_]{2,60})\s*$/.exec(body) ?? /"error"\s*:\s*"([a-z_]{2,60})"/.exec(body)
  return match?.[1] ?? ''
}

/** How far a post came, written down while it happens. */
export interface Progress {
  /** From here on Slack may have got the message. */
  isConnected: boolean
  status: number | undefined
  retryAfterMs: number | undefined
}

/** The error for a post without an answer. */
export function transportFailure(
  error: unknown,
  { isConnected, status }: Progress,
  signal: AbortSignal,
): SinkError {
  const causes = causesOf(error)
  const refusal = causes.find((cause) => cause instanceof SinkError)
  if (refusal) return new SinkError(refusal.reason, refusal.message)
  const codes = causes.map(({ code }) => code).filter((code) => typeof code === 'string')
  const words = [...causes.map(({ name }) => name), ...codes]
  const has = (pattern: RegExp): boolean => words.some((word) => pattern.test(word))
  const hasTimedOut = signal.aborted || has(/^TimeoutError$|^AbortError$|^UND_ERR_\w+_TIMEOUT$/)
  const because = codes.length === 0 ? '' : ` (${codes.at(-1)})`
  if (status !== undefined && has(/^UND_ERR_RES_EXCEEDED_MAX_SIZE$/)) {
    return new SinkError('rejected', 'slack answered 200 with something else than ok', { status })
  }
  if (!isConnected) {
    const isCertificate = has(/CERT|SELF_SIGNED|UNABLE_TO_|ALTNAME|^ERR_SSL_|^ERR_TLS_/)
    return isCertificate
      ? new SinkError('misconfigured', `slack's certificate does not verify${because}`)
      : new SinkError('unavailable', `slack cannot be reached${hasTimedOut ? ' in time' : because}`)
  }
  return hasTimedOut
    ? new SinkError('timeout', 'slack was sent the message and did not answer in time')
    : new SinkError(
        'connection_lost',
        `the connection to slack was lost before its answer${because}`,
      )
}

/** A DOMException has a number, which says nothing to people. */
type Cause = Error & { code?: unknown }

/** The error and its causes, outermost first; of an AggregateError also the first of its errors. */
function causesOf(error: unknown): Cause[] {
  const causes: Cause[] = []
  let at: unknown = error
  while (at instanceof Error && causes.length < 10) {
    causes.push(at)
    at = at.cause ?? (at instanceof AggregateError ? at.errors[0] : undefined)
  }
  return causes
}
