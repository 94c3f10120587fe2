/**
 * Sends messages, about one event or a summary, to a Slack channel through an incoming webhook.
 * Accepted means a 2xx that names no error: Slack itself says `ok`, workflows and others something
 * else. If Slack refuses the blocks, the same is sent once more as plain text.
 */
import { IncomingWebhook } from '@slack/webhook'
import type { SinkParts } from '../config.ts'
import { describeSink } from '../destinations.ts'
import {
  createHttpTransport,
  errorFromAnswer,
  findDenial,
  type HttpAnswer,
  type HttpTransport,
  isSuccess,
  readChatUrl,
} from '../http.ts'
import {
  type Delivery,
  type Receipt,
  type SendOptions,
  type Sink,
  type SinkError,
  type SinkReason,
} from '../sink.ts'
import type { SlackConfig } from './config.ts'
import { createDocumentRenderer } from '../templates.ts'
import { previewSlack, type SlackMessage } from './slack-message.ts'

/** Covers both the message and, if needed, its plain form. */
const slackSendTimeoutMs = 15_000
const receiver = 'slack'

/** Reads the URL at each send, so that it can change without a restart. */
export function createSlackSink(config: SlackConfig, parts: SinkParts): Sink {
  const { logger, clock } = parts
  const render = createDocumentRenderer(config, parts)
  const { name, allowPrivate } = config
  const transport = createHttpTransport({
    allowPrivate,
    outbound: config,
    maxConnections: 1,
    receiver,
    readsAnswer: true,
  })

  async function post(message: SlackMessage, options: SendOptions): Promise<SinkError | string> {
    const answer = await postToSlack(transport, readChatUrl('slack', config), message, options)
    const { status, body } = answer
    const denial = isSuccess(status) ? findDenial(body) : undefined
    const word = denial?.word ?? readAnswerWord(body)
    const known = Object.hasOwn(reasonsByWord, word) ? reasonsByWord[word] : undefined
    if (isSuccess(status) && !denial && !known) return `${status} ${word}`.trimEnd()
    // except for 429, Slack's own word decides before the status
    const reason = status === 429 ? 'rate_limited' : (known ?? denial?.reason)
    return errorFromAnswer(answer, { nowMs: clock.now(), reason, receiver, word, advice })
  }

  async function send(delivery: Delivery, options: SendOptions): Promise<Receipt> {
    const message = previewSlack(delivery, render)
    const refusal = await post(message.inBlocks, options)
    if (typeof refusal === 'string') return { answer: refusal }
    if (refusal.reason !== 'invalid') throw refusal
    logger.warn({ sink: name, delivery: delivery.id, err: refusal }, 'slack refused the blocks')
    const second = await post(message.plainText, options)
    if (typeof second !== 'string') throw second
    return { answer: `${second} (in plain words: slack refused the blocks)` }
  }

  return {
    ...describeSink(config, 'people'),
    concurrency: 1,
    sendTimeoutMs: slackSendTimeoutMs,
    send,
    reach: async (signal) => transport.reach(readChatUrl('slack', config), signal),
    preview(delivery) {
      const { inBlocks, plainText } = previewSlack(delivery, render)
      return { text: plainText.text ?? '', body: inBlocks }
    },
    close: () => transport.close(),
  }
}

/**
 * Posts once, by Slack's library over the shared transport. Resolves with whatever Slack answered,
 * which the library keeps only in part; throws the transport's SinkError if there was no answer.
 */
async function postToSlack(
  transport: HttpTransport,
  url: URL,
  message: SlackMessage,
  options: SendOptions,
): Promise<HttpAnswer> {
  let answer: HttpAnswer | undefined
  let failure: unknown
  const webhook = new IncomingWebhook(url.href, {
    retryConfig: { retries: 0 },
    async fetch(_url, { headers = {}, body = '' } = {}) {
      try {
        answer = await transport.post(
          url,
          { headers, body: typeof body === 'string' ? body : '' },
          options,
        )
        return new Response(answer.body, { status: answer.status })
      } catch (error) {
        failure = error
        throw error
      }
    },
  })
  try {
    await webhook.send(message)
  } catch (error) {
    failure ??= error
  }
  if (answer === undefined) throw failure
  return answer
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
  no_active_hooks: 'gone',
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
  misconfigured: '; the URL is not that of an incoming webhook, or something stands before Slack',
}

/** Slack answers with a bare word, at times with `{"ok": false, "error": word}`. */
function readAnswerWord(body: string): string {
  const match = /^\s*([a-z_]{2,60})\s*$/.exec(body) ?? /"error"\s*:\s*"([a-z_]{2,60})"/.exec(body)
  return match?.[1] ?? ''
}
