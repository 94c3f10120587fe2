/** The configuration of an e-mail sink. */
import { z } from 'zod'
import {
  flag,
  list,
  rate,
  refusal,
  type Refusal,
  type Rule,
  section,
  textField,
  word,
} from '../../lib/config-fields.ts'
import {
  type Outbound,
  outboundKeys,
  outboundRules,
  readOutbound,
} from '../../lib/outbound-config.ts'
import { requiredSecretFromSection, type Secret, secretKeys, secretRule } from '../../lib/secret.ts'
import { isLoopback, loginProblem } from '../../lib/web-address.ts'
import {
  digestConfig,
  type DigestConfig,
  type FailoverConfig,
  readFailover,
  failoverKeys,
  readerKeys,
  type SinkType,
} from '../config.ts'
import type { MessageTemplates } from '../template-config.ts'

export interface EmailConfig extends Outbound {
  name: string
  type: 'email'
  /** smtp:// or smtps:// with user and password. */
  smtp: Secret
  from: string
  to: string[]
  /**
   * `required`: STARTTLS or smtps except on loopback; `off`: in clear, by the operator's choice.
   */
  tls: 'required' | 'off'
  limitPerSecond: number | undefined
  batch?: undefined
  /** undefined: events go at once or in groups. */
  digest: DigestConfig | undefined
  /** Leaked credentials are shown in clear. */
  reveal: boolean
  /** undefined: UTC; in digests the zone of the schedule. */
  timeZone?: string | undefined
  templates?: MessageTemplates | undefined
}

const addressRemedy = 'write an address, such as oncall@example.com'
const addressPattern = /^[^\s\p{Cc}@<>(),;:"\\[\]]{1,64}@[^\s\p{Cc}@<>(),;:"\\[\]_]{1,253}$/u

const recipient = textField({
  describe: "A recipient's address.",
  remedy: addressRemedy,
  parse: (input) => (addressPattern.test(input) ? input : addressRefusal()),
})

const sender = textField({
  describe: 'The sender, as an address or as Name <address>.',
  remedy: addressRemedy,
  parse: (input) => {
    const [, bare] = /^[^<>\p{Cc}]*<([^<>]+)>$/u.exec(input) ?? []
    return addressPattern.test(bare ?? input) ? input : addressRefusal()
  },
})

function addressRefusal(): Refusal {
  return refusal('not an e-mail address', addressRemedy)
}

const eachRecipientOnce: Rule = ({ to }) => {
  const addresses = Array.isArray(to) ? to.map((address) => String(address).toLowerCase()) : []
  return addresses.flatMap((address, index) =>
    addresses.indexOf(address) === index
      ? []
      : [{ path: ['to', index], problem: 'named twice', remedy: 'remove the second' }],
  )
}

/** One e-mail sink of the file; its key is its name. */
const emailConfig = section(
  {
    type: z.literal('email').meta({ description: 'People, by e-mail.' }),
    ...secretKeys('smtp', 'smtp:// or smtps:// address with user and password.'),
    from: sender,
    to: list(
      recipient,
      'Recipients; each gets a message of their own.',
      `${addressRemedy}, in [ ]`,
    ),
    tls: word(['required', 'off'], 'off sends in clear, passwords too.').prefault('required'),
    limit: rate('Messages per second or minute, over all replicas. Default: none.').optional(),
    digest: digestConfig.optional(),
    reveal: flag('Show leaked credentials in clear.').prefault(false),
    ...readerKeys,
    ...failoverKeys,
    ...outboundKeys,
  },
  {
    describe: 'Messages to people, by e-mail.',
    rules: [
      secretRule('smtp', { required: true, check: smtpProblem }),
      eachRecipientOnce,
      ...outboundRules,
    ],
  },
).transform((file): Omit<EmailConfig, 'name'> & FailoverConfig => ({
  type: file.type,
  smtp: requiredSecretFromSection(file, 'smtp'),
  from: file.from,
  to: file.to,
  tls: file.tls,
  limitPerSecond: file.limit,
  digest: file.digest,
  reveal: file.reveal,
  timeZone: file.time_zone,
  templates: file.templates,
  ...readOutbound(file),
  ...readFailover(file),
}))

function smtpProblem(input: string): Refusal | undefined {
  const url = URL.parse(input)
  const isMail = url?.protocol === 'smtp:' || url?.protocol === 'smtps:'
  if (!isMail || url.hostname === '') {
    return refusal('not a mail server', 'write smtp://user:password@host:587 or smtps://…:465')
  }
  return loginProblem(url)
}

export const emailType = {
  config: emailConfig,
  audience: 'people',
  address({ smtp }) {
    return smtp
  },
  describe({ to }) {
    return `e-mail to ${to.join(', ')}`
  },
  warn({ tls, smtp }) {
    const host = tls === 'off' ? (URL.parse(smtp.reveal())?.hostname ?? '') : ''
    if (host === '' || isLoopback(host)) return []
    const remedy = 'remove the line if the server speaks TLS'
    return [{ key: 'tls', problem: 'mail and passwords go in clear', remedy }]
  },
  async create(config, parts) {
    const { createEmailSink } = await import('./email-sink.ts')
    return createEmailSink(config, parts)
  },
} satisfies SinkType<EmailConfig & FailoverConfig>
