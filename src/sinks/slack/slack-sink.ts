/**
 * Messages to a Slack channel through an incoming webhook, of one event or a summary of several.
 * Accepted means that Slack answered 200 `ok`. Where Slack refuses the blocks, the same is said once more in plain words.
 */
import { signalWithin, type Clock } from '../../runtime/clock.ts'
import type { Logger } from '../../runtime/logger.ts'
import { destinationsOf } from '../destinations.ts'
import type { Delivery, Receipt, Sink, SinkError } from '../sink.ts'
import type { SlackConfig } from './config.ts'
import { postToSlack } from './slack-client.ts'
import { answerFailure, isAccepted } from './slack-failure.ts'
import type { SlackMessage } from './slack-message.ts'
import { previewSlack } from './preview-slack.ts'

export interface SlackEnvironment {
  logger: Logger
  clock: Clock
}

/** Both the message and its plain form, should that be needed, have to fit in. */
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
    return isAccepted(answer) ? undefined : answerFailure(answer)
  }

  async function send(delivery: Delivery, signal: AbortSignal): Promise<Receipt> {
    const message = previewSlack(delivery)
    const refusal = await post(message.inBlocks, signal)
    if (refusal === undefined) return { answer: '200 ok' }
    if (refusal.reason !== 'invalid') throw refusal
    logger.warn({ sink: name, delivery: delivery.id, err: refusal }, 'slack refused the blocks')
    const failure = await post(message.inWords, signal)
    if (failure !== undefined) throw failure
    return { answer: '200 ok (in plain words: slack refused the blocks)' }
  }

  return {
    name,
    type: 'slack',
    destinations: destinationsOf(config),
    limitPerSecond,
    reveals: config.reveal,
    concurrency: 1,
    sendTimeoutMs: slackSendTimeoutMs,
    send: (delivery, { signal }) =>
      send(delivery, signalWithin(slackSendTimeoutMs, signal, closing.signal)),
    close() {
      closing.abort()
      return Promise.resolve()
    },
  }
}
