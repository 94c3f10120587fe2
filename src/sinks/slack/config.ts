/** The configuration of a Slack sink. */
import { z } from 'zod'
import { flag, laterKeys, rate, section } from '../../lib/config-fields.ts'
import { requiredSecretFromSection, type Secret, secretKeys, secretRule } from '../../lib/secret.ts'
import { webAddressProblem } from '../../lib/web-address.ts'
import {
  digestConfig,
  type DigestConfig,
  laterKeysForPeople,
  type FailoverConfig,
  readFailover,
  failoverKeys,
  type SinkType,
} from '../config.ts'

export interface SlackConfig {
  name: string
  type: 'slack'
  url: Secret
  limitPerSecond: number
  /** Lets the address be private or loopback, over http too. */
  allowPrivate: boolean
  batch?: undefined
  /** undefined: events go at once or in groups. */
  digest: DigestConfig | undefined
  /** Leaked credentials are shown in clear. */
  reveal: boolean
}

/** One Slack sink of the file; its key is its name. */
const slackConfig = section(
  {
    type: z.literal('slack').meta({ description: 'A Slack channel, by an incoming webhook.' }),
    ...secretKeys('url', 'Address of the incoming webhook.'),
    // Slack's published limit for incoming webhooks: one message per second and channel.
    limit: rate('Messages per second or minute, over all replicas.').prefault('1/s'),
    allow_private: flag('Let the address be private or loopback, over http too.').prefault(false),
    digest: digestConfig.optional(),
    reveal: flag('Show leaked credentials in clear.').prefault(false),
    ...failoverKeys,
    ...laterKeys(laterKeysForPeople),
  },
  {
    describe: 'Messages to a Slack channel.',
    rules: [
      secretRule('url', {
        required: true,
        check: (url, sink) => webAddressProblem(url, () => sink['allow_private'] === true),
      }),
    ],
  },
).transform((file): Omit<SlackConfig, 'name'> & FailoverConfig => ({
  type: file.type,
  url: requiredSecretFromSection(file, 'url'),
  limitPerSecond: file.limit,
  allowPrivate: file.allow_private,
  digest: file.digest,
  reveal: file.reveal,
  ...readFailover(file),
}))

export const slackType = {
  config: slackConfig,
  audience: 'people',
  address({ url }) {
    return url
  },
  describe: () => 'Slack',
  async create(config, parts) {
    const { createSlackSink } = await import('./slack-sink.ts')
    return createSlackSink(config, parts)
  },
} satisfies SinkType<SlackConfig & FailoverConfig>
