/**
 * Sends messages, about one event or a summary, to a Slack channel through an incoming webhook.
 * Accepted means that Slack answered 200 `ok`. If Slack refuses the blocks, the same is sent once
 * more as plain text.
 */
import { lookup } from 'node:dns'
import type { LookupFunction } from 'node:net'
import {
  IncomingWebhook,
  type IncomingWebhookDefaultArguments,
  IncomingWebhookHTTPError,
} from '@slack/webhook'
import { Agent, buildConnector, errors, fetch } from 'undici'
import { type Clock, timeoutSignal } from '../../lib/clock.ts'
import type { Logger } from '../../lib/logger.ts'
import { parseRetryAfter } from '../../lib/web-address.ts'
import { guardConnector, publicLookup } from '../address-guard.ts'
import { listDestinations } from '../destinations.ts'
import { type Delivery, type Receipt, type Sink, SinkError, type SinkReason } from '../sink.ts'
import type { SlackConfig } from './config.ts'
import { previewSlack, type SlackMessage } from './slack-message.ts'

export interface SlackEnvironment {
  logger: Logger
  clock: Clock
}

/** Covers both the message and, if needed, its plain form. */
const slackSendTimeoutMs = 15_000

export function createSlackSink(config: SlackConfig, { logger, clock }: SlackEnvironment): Sink {
  const { name, limitPerSecond } = config
  const closing = new AbortController()

  async function post(message: SlackMessage, signal: AbortSignal): Promise<SinkError | undefined> {
    const answer = await postToSlack(config, message, {
      signal,
      timeoutMs: slackSendTimeoutMs,
      clock,
    })
    return isAccepted(answer) ? undefined : errorFromAnswer(answer)
  }

  async function send(delivery: Delivery, signal: AbortSignal): Promise<Receipt> {
    const message = previewSlack(delivery)
    const refusal = await post(message.inBlocks, signal)
    if (refusal === undefined) return { answer: '200 ok' }
    if (refusal.reason !== 'invalid') throw refusal
    logger.warn({ sink: name, delivery: delivery.id, err: refusal }, 'slack refused the blocks')
    const failure = await post(message.plainText, signal)
    if (failure !== undefined) throw failure
    return { answer: '200 ok (in plain words: slack refused the blocks)' }
  }

  return {
    name,
    type: 'slack',
    destinations: listDestinations(config),
    limitPerSecond,
    reveals: config.reveal,
    concurrency: 1,
    sendTimeoutMs: slackSendTimeoutMs,
    send: (delivery, { signal }) =>
      send(delivery, timeoutSignal(slackSendTimeoutMs, signal, closing.signal)),
    close() {
      closing.abort()
      return Promise.resolve()
    },
  }
}

const connectTimeoutMs = 5000
const maxAnswerBytes = 64 * 1024

export interface PostOptions {
  signal: AbortSignal
  timeoutMs: number
  clock: Clock
}

/**
 * Posts once to an incoming webhook: one connection, no retry, no redirect, no private address.
 * Resolves with whatever Slack answered; throws SinkError if there was no answer. The URL is the
 * credential, so no error of the layers below is passed on, not even as a cause.
 */
export async function postToSlack(
  config: SlackConfig,
  message: SlackMessage,
  options: PostOptions,
): Promise<SlackAnswer> {
  const url = readSlackUrl(config)
  const progress: Progress = { isConnected: false, status: undefined, retryAfterMs: undefined }
  const agent = createAgent(config.allowPrivate, progress)
  const webhook = new IncomingWebhook(url, {
    timeout: options.timeoutMs,
    retryConfig: { retries: 0 },
    fetch: watchedFetch(agent, progress, options),
  })
  try {
    const { text } = await webhook.send(message)
    return { status: progress.status ?? 0, body: text, retryAfterMs: undefined }
  } catch (error) {
    return answerFromError(error, progress, options.signal)
  } finally {
    await agent.destroy()
  }
}

/**
 * Each post has a connection of its own: the reset of a stale one would look like a lost answer.
 */
function createAgent(allowPrivate: boolean, progress: Progress): Agent {
  const connect = allowPrivate
    ? buildConnector({ timeout: connectTimeoutMs })
    : guardConnector(
        buildConnector({
          timeout: connectTimeoutMs,
          lookup: publicLookup(lookup as LookupFunction),
        }),
      )
  return new Agent({
    maxResponseSize: maxAnswerBytes,
    connect: (target, callback) =>
      connect(target, (...result) => {
        progress.isConnected = result[0] === null
        callback(...result)
      }),
  })
}

type Fetch = NonNullable<IncomingWebhookDefaultArguments['fetch']>

/** The library keeps neither the status of a success nor the headers of a failure. */
function watchedFetch(agent: Agent, progress: Progress, { signal, clock }: PostOptions): Fetch {
  return async (url, { method = 'POST', headers = {}, body, signal: deadline } = {}) => {
    const response = await fetch(url, {
      method,
      headers,
      body: typeof body === 'string' ? body : '',
      redirect: 'manual',
      dispatcher: agent,
      signal: deadline ? AbortSignal.any([signal, deadline]) : signal,
    })
    progress.status = response.status
    const retryAfter = response.headers.get('retry-after') ?? undefined
    progress.retryAfterMs = parseRetryAfter(retryAfter, clock.now())
    return Object.assign(response, { text: () => answerText(response.body, maxAnswerBytes) })
  }
}

function answerFromError(error: unknown, progress: Progress, signal: AbortSignal): SlackAnswer {
  const { status, retryAfterMs } = progress
  if (error instanceof IncomingWebhookHTTPError) {
    return { status: error.statusCode, body: String(error.body ?? ''), retryAfterMs }
  }
  // If the status already says no, it does not matter that the rest of the answer was cut.
  if (status !== undefined && status !== 200) return { status, body: '', retryAfterMs }
  throw errorFromFailure(error, progress, signal)
}

/**
 * Reads the webhook's URL anew, file included. Throws SinkError `misconfigured`, never with a part
 * of it.
 */
function readSlackUrl(config: SlackConfig): string {
  const url = URL.parse(readUrlText(config))
  if (url === null) throw misconfiguredError(config, 'url is not a URL')
  if (url.protocol !== 'https:' && !(config.allowPrivate && url.protocol === 'http:')) {
    throw misconfiguredError(config, 'url must begin with https://')
  }
  if (url.username !== '' || url.password !== '') {
    throw misconfiguredError(config, 'url may not hold a user or a password')
  }
  return url.href
}

function readUrlText(config: SlackConfig): string {
  try {
    return config.url.reveal()
  } catch {
    throw misconfiguredError(config, 'the file of the URL cannot be read; check url_file')
  }
}

function misconfiguredError(config: SlackConfig, what: string): SinkError {
  return new SinkError('misconfigured', `sink ${config.name}: ${what}`)
}

/**
 * Slack's error words (Incoming webhooks, "Handling errors", and the changelog of 2016-05-17).
 * `unauthorized` can be fixed in the workspace with the same URL, `gone` needs another URL.
 */
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

/**
 * Builds the error for an answer that is not acceptance. Of the body only Slack's own error word is
 * repeated; except for 429, it decides before the status.
 */
function errorFromAnswer({ status, body, retryAfterMs }: SlackAnswer): SinkError {
  const word = readAnswerWord(body)
  const reason = classifyAnswer(status, word)
  return new SinkError(
    reason,
    `slack answered ${status}${word === '' ? '' : ` ${word}`}${advice[reason] ?? ''}`,
    { status, ...(retryAfterMs !== undefined && { retryAfterMs }) },
  )
}

function classifyAnswer(status: number, word: string): SinkReason {
  if (status === 429) return 'rate_limited'
  const known = Object.hasOwn(reasonsByWord, word) ? reasonsByWord[word] : undefined
  return known ?? classifyStatus(status)
}

function classifyStatus(status: number): SinkReason {
  if (status === 408 || status === 425 || status >= 500) return 'unavailable'
  if (status === 400 || status === 413 || status === 422) return 'invalid'
  if (status === 401 || status === 403) return 'unauthorized'
  if (status === 410) return 'gone'
  if (status >= 300 && status < 400) return 'redirected'
  return 'rejected'
}

/** Slack answers with a bare word, at times with `{"ok": false, "error": word}`. */
function readAnswerWord(body: string): string {
  const match = /^\s*([a-z_]{2,60})\s*$/.exec(body) ?? /"error"\s*:\s*"([a-z_]{2,60})"/.exec(body)
  return match?.[1] ?? ''
}

/** How far a post came, recorded while it happens. */
export interface Progress {
  /** Once true, Slack may have received the message. */
  isConnected: boolean
  status: number | undefined
  retryAfterMs: number | undefined
}

/** Builds the error for a post without an answer. */
function errorFromFailure(
  error: unknown,
  { isConnected, status }: Progress,
  signal: AbortSignal,
): SinkError {
  const causes = listCauses(error)
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

/** A DOMException's code is a number, which says nothing to people. */
type Cause = Error & { code?: unknown }

/** The error and its causes, outermost first; of an AggregateError also the first of its errors. */
function listCauses(error: unknown): Cause[] {
  const causes: Cause[] = []
  let at: unknown = error
  while (at instanceof Error && causes.length < 10) {
    causes.push(at)
    at = at.cause ?? (at instanceof AggregateError ? at.errors[0] : undefined)
  }
  return causes
}

/**
 * Reads the text of an answer, at most `maxBytes` after decompression: a few hundred bytes can
 * unpack to gigabytes. Throws undici's own error for more.
 */
export async function answerText(
  body: AsyncIterable<Uint8Array> | null,
  maxBytes: number,
): Promise<string> {
  const chunks: Uint8Array[] = []
  let bytes = 0
  for await (const chunk of body ?? []) {
    bytes += chunk.byteLength
    if (bytes > maxBytes) throw new errors.ResponseExceededMaxSizeError()
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}
