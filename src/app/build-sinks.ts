import type { SinkConfig } from '../config/config.ts'
import type { Clock } from '../runtime/clock.ts'
import type { Logger } from '../runtime/logger.ts'
import type { Sink } from '../sinks/sink.ts'

interface Parts {
  logger: Logger
  clock: Clock
}

/** By name. */
export async function buildSinks(
  configs: readonly SinkConfig[],
  parts: Parts,
): Promise<Map<string, Sink>> {
  const sinks = new Map<string, Sink>()
  for (const config of configs) sinks.set(config.name, await buildSink(config, parts))
  return sinks
}

/** The only place that knows all kinds of sink; it loads those that a configuration uses. */
export async function buildSink(config: SinkConfig, parts: Parts): Promise<Sink> {
  switch (config.type) {
    case 'slack': {
      const { createSlackSink } = await import('../sinks/slack/slack-sink.ts')
      return createSlackSink(config, parts)
    }
    case 'email': {
      const { createEmailSink } = await import('../sinks/email/email-sink.ts')
      return createEmailSink(config, parts)
    }
    case 'webhook': {
      const { createWebhookSink } = await import('../sinks/webhook/webhook-sink.ts')
      return createWebhookSink(config, parts)
    }
  }
}
