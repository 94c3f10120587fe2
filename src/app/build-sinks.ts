import type { SinkConfig } from '../config/config.ts'
import type { Clock } from '../runtime/clock.ts'
import type { Logger } from '../runtime/logger.ts'
import { createEmailSink } from '../sinks/email/email-sink.ts'
import type { Sink } from '../sinks/sink.ts'
import { createSlackSink } from '../sinks/slack/slack-sink.ts'
import { createWebhookSink } from '../sinks/webhook/webhook-sink.ts'

/** The only place that knows all kinds of sink. */
export function buildSink(config: SinkConfig, parts: { logger: Logger; clock: Clock }): Sink {
  switch (config.type) {
    case 'slack':
      return createSlackSink(config, parts)
    case 'email':
      return createEmailSink(config, parts)
    case 'webhook':
      return createWebhookSink(config, parts)
  }
}
