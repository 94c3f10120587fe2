/**
 * One post to an incoming webhook: one connection, no retry, no redirect, no private address. The URL
 * is the credential, so no error of the layers below is passed on, not even as a cause.
 */
import { lookup } from 'node:dns'
import type { LookupFunction } from 'node:net'
import { IncomingWebhook, IncomingWebhookHTTPError } from '@slack/webhook'
import type { IncomingWebhookDefaultArguments } from '@slack/webhook'
import { Agent, buildConnector, fetch } from 'undici'
import type { Clock } from '../../runtime/clock.ts'
import { guardConnector, publicLookup } from '../address-guard.ts'
import { parseRetryAfter } from '../../runtime/retry-after.ts'
import { answerText } from './answer-text.ts'
import type { SlackConfig } from './config.ts'
import { transportFailure, type Progress } from './slack-failure.ts'
import type { SlackAnswer } from './slack-failure.ts'
import type { SlackMessage } from './slack-message.ts'
import { readSlackUrl } from './slack-url.ts'

const connectTimeoutMs = 5000
const maxAnswerBytes = 64 * 1024

export interface PostOptions {
  signal: AbortSignal
  timeoutMs: number
  clock: Clock
}

/** Gives whatever Slack answered; throws SinkError where there was no answer. */
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
    return answerOf(error, progress, options.signal)
  } finally {
    await agent.destroy()
  }
}

/** A connection of its own for each post: a stale one's reset would look like a lost answer. */
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

function answerOf(error: unknown, progress: Progress, signal: AbortSignal): SlackAnswer {
  const { status, retryAfterMs } = progress
  if (error instanceof IncomingWebhookHTTPError) {
    return { status: error.statusCode, body: String(error.body ?? ''), retryAfterMs }
  }
  // Where the status already says no, it does not matter that the rest of the answer was cut.
  if (status !== undefined && status !== 200) return { status, body: '', retryAfterMs }
  throw transportFailure(error, progress, signal)
}
