import { z } from 'zod'
import { flag, laterKeys, rate, section } from '../../lib/config-fields.ts'
import { requiredSecretIn, type Secret, secretKeys, secretRule } from '../../lib/secret.ts'
import { webAddressProblem } from '../../lib/web-address.ts'
import {
  digestConfig,
  type DigestConfig,
  laterForPeople,
  type ReliefConfig,
  reliefIn,
  reliefKeys,
} from '../config.ts'

export interface SlackConfig {
  name: string
  type: 'slack'
  url: Secret
  limitPerSecond: number
  /** Lets the address be private or loopback, over http too. */
  allowPrivate: boolean
  /** undefined: events go at once or in groups. */
  digest: DigestConfig | undefined
  /** Leaked credentials are shown in clear. */
  reveal: boolean
}

/** One Slack sink of the file; its name is the key it stands under. */
export const slackConfig = section(
  {
    type: z.literal('slack').meta({ description: 'A Slack channel, by an incoming webhook.' }),
    ...secretKeys('url', 'Address of the incoming webhook.'),
    // Slack's published limit for incoming webhooks: one message per second and channel.
    limit: rate('Messages per second or minute, over all replicas.').prefault('1/s'),
    allow_private: flag('Let the address be private or loopback, over http too.').prefault(false),
    digest: digestConfig.optional(),
    reveal: flag('Show leaked credentials in clear.').prefault(false),
    ...reliefKeys,
    ...laterKeys(laterForPeople),
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
).transform((file): Omit<SlackConfig, 'name'> & ReliefConfig => ({
  type: file.type,
  url: requiredSecretIn(file, 'url'),
  limitPerSecond: file.limit,
  allowPrivate: file.allow_private,
  digest: file.digest,
  reveal: file.reveal,
  ...reliefIn(file),
}))
