/**
 * Sends messages, about one event or a summary, to a Slack channel through an incoming webhook.
 * Accepted means a 2xx that names no error: Slack itself says `ok`, workflows and others something
 * else. If Slack refuses the blocks, the same is sent once more as plain text.
 */
import type { SinkParts } from '../config.ts'
import { type Denial, findDenial, type HttpAnswer, isSuccess, readChatUrl } from '../http.ts'
import { createHttpSink } from '../http-sink.ts'
import {
  type Delivery,
  type Receipt,
  type SendOptions,
  type Sink,
  SinkError,
  type SinkReason,
} from '../sink.ts'
import { createDocumentRenderer } from '../templates/templates.ts'
import type { SlackConfig } from './config.ts'
import { previewSlack, type SlackMessage, slackText } from './slack-message.ts'

const headers = { 'content-type': 'application/json', 'user-agent': 'tocsin' }

export function createSlackSink(config: SlackConfig, parts: SinkParts): Sink {
  const render = createDocumentRenderer(config, parts)
  const { post, ...sink } = createHttpSink(
    config,
    {
      audience: 'people',
      receiver: 'slack',
      concurrency: 1,
      readsAnswer: true,
      readUrl: () => readChatUrl('slack', config),
      judge,
      describeAcceptance: ({ status, body }) => `${status} ${readAnswerWord(body)}`.trimEnd(),
      advice,
    },
    parts,
  )
  const postMessage = (message: SlackMessage, options: SendOptions): Promise<Receipt> =>
    post({ headers, body: JSON.stringify(message) }, options)

  async function send(delivery: Delivery, options: SendOptions): Promise<Receipt> {
    const { inBlocks, plainText } = previewSlack(delivery, render)
    try {
      return await postMessage(inBlocks, options)
    } catch (err) {
      if (!(err instanceof SinkError && err.reason === 'invalid')) throw err
      const refused = { sink: config.name, delivery: delivery.id, err }
      parts.logger.warn(refused, 'slack refused the blocks')
    }
    const { answer } = await postMessage(plainText, options)
    return { answer: `${answer} (in plain words: slack refused the blocks)` }
  }

  return {
    ...sink,
    send,
    preview(delivery) {
      const { inBlocks } = previewSlack(delivery, render)
      return { text: slackText(inBlocks), body: inBlocks }
    },
  }
}

/** Except for 429, Slack's own word decides before the status. */
function judge({ status, body }: HttpAnswer): Denial | undefined {
  const denial = isSuccess(status) ? findDenial(body) : {}
  const word = denial?.word ?? readAnswerWord(body)
  const known = Object.hasOwn(reasonsByWord, word) ? reasonsByWord[word] : undefined
  if (denial === undefined && known === undefined) return undefined
  return { word, reason: status === 429 ? 'rate_limited' : (known ?? denial?.reason) }
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
