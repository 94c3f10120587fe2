/** The configuration of a Slack sink. */
import { z } from 'zod'
import { rate, section } from '../../lib/config/config-fields.ts'
import { outboundRules } from '../../lib/config/outbound-config.ts'
import { secretKeys, secretRule } from '../../lib/config/secret.ts'
import { sectionAddressProblem } from '../../lib/config/web-address.ts'
import { chatKeys, type NamedSink, readChat, type SinkSettings, type SinkType } from '../config.ts'
import { knownAddressProblem } from '../known-addresses.ts'

/** One Slack sink of the file; its key is its name. */
const slackConfig = section(
  {
    type: z.literal('slack').meta({ description: 'A Slack channel, by an incoming webhook.' }),
    ...secretKeys('url', 'Address of the incoming webhook.'),
    // Slack's published limit for incoming webhooks: one message per second and channel.
    limit: rate('Messages per second or minute, over all replicas.').prefault('1/s'),
    ...chatKeys,
  },
  {
    describe: 'Messages to a Slack channel.',
    rules: [
      secretRule('url', {
        required: true,
        check: (url, sink) => sectionAddressProblem(url, sink) ?? knownAddressProblem('slack', url),
      }),
      ...outboundRules,
    ],
  },
).transform((file) => readChat(file))

export type SlackConfig = SinkSettings<typeof slackConfig>

export const slackType = {
  config: slackConfig,
  audience: 'people',
  address({ url }) {
    return url
  },
} satisfies SinkType<NamedSink<typeof slackConfig>>
