/** Makes a sink of its configuration; only the modules of the types that are configured are loaded. */
import type { SinkParts } from './config.ts'
import type { Sink } from './sink.ts'
import type { SinkConfig } from './sink-types.ts'

export async function createSink(config: SinkConfig, parts: SinkParts): Promise<Sink> {
  switch (config.type) {
    case 'slack':
      return (await import('./slack/slack-sink.ts')).createSlackSink(config, parts)
    case 'teams':
      return (await import('./teams/teams-sink.ts')).createTeamsSink(config, parts)
    case 'email':
      return (await import('./email/email-sink.ts')).createEmailSink(config, parts)
    case 'pagerduty':
      return (await import('./pagerduty/pagerduty-sink.ts')).createPagerDutySink(config, parts)
    case 'webhook':
      return (await import('./webhook/webhook-sink.ts')).createWebhookSink(config, parts)
  }
}
