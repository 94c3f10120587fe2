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
  text,
  textField,
  word,
} from '../../lib/config/config-fields.ts'
import { outboundKeys, outboundRules, readOutbound } from '../../lib/config/outbound-config.ts'
import { requiredSecretFromSection, secretKeys, secretRule } from '../../lib/config/secret.ts'
import { isLoopback, loginProblem, webAddressProblem } from '../../lib/config/web-address.ts'
import {
  digestConfig,
  type NamedSink,
  readCommon,
  commonKeys,
  readerKeys,
  type SinkSettings,
  type SinkType,
} from '../config.ts'

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

const helloRemedy = 'write the name of this host, such as tocsin.example.com, or an address in [ ]'

const hello = textField({
  describe: 'Name of this host for the mail server (EHLO). Default: its full name, or its address.',
  remedy: helloRemedy,
  parse: (input) =>
    /^([a-z\d-]{1,63}(\.[a-z\d-]{1,63})*|\[(\d[\d.]+|IPv6:[\da-f:.]+)\])$/i.test(input)
      ? input
      : refusal('not a host name', helloRemedy),
})

const microsoftTokens = 'https://login.microsoftonline.com/<tenant>/oauth2/v2.0/token'

const oauthConfig = section(
  {
    token_url: textField({
      describe: `Where tokens are given, such as ${microsoftTokens}.`,
      remedy: 'write a URL that begins with https://',
      parse: (input) => webAddressProblem(input, isLoopback) ?? input,
    }),
    client_id: text('Id of the application.'),
    ...secretKeys('client_secret', 'Secret of the application.'),
    scope: text('What tokens are for; of Microsoft 365 https://outlook.office365.com/.default.'),
  },
  {
    describe: 'Signs in as the user of smtp by access tokens (OAuth 2.0, XOAUTH2), not a password.',
    rules: [secretRule('client_secret', { required: true })],
  },
).transform((file) => ({
  tokenUrl: file.token_url,
  clientId: file.client_id,
  clientSecret: requiredSecretFromSection(file, 'client_secret'),
  scope: file.scope,
}))

/** How to get access tokens for the user of the mail server. */
export type OAuthConfig = z.output<typeof oauthConfig>

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
    hello: hello.optional(),
    oauth: oauthConfig.optional(),
    auto_submitted: flag(
      'Say in a header that no person wrote the mail; some ticket systems drop such mails.',
    ).prefault(true),
    limit: rate('Messages per second or minute, over all replicas. Default: none.').optional(),
    digest: digestConfig.optional(),
    reveal: flag('Show leaked credentials in clear.').prefault(false),
    ...readerKeys,
    ...commonKeys,
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
).transform((file) => ({
  type: file.type,
  smtp: requiredSecretFromSection(file, 'smtp'),
  from: file.from,
  to: file.to,
  tls: file.tls,
  hello: file.hello,
  oauth: file.oauth,
  autoSubmitted: file.auto_submitted,
  limitPerSecond: file.limit,
  batch: undefined,
  digest: file.digest,
  reveal: file.reveal,
  timeZone: file.time_zone,
  templates: file.templates,
  ...readOutbound(file),
  ...readCommon(file),
}))

export type EmailConfig = SinkSettings<typeof emailConfig>

function smtpProblem(
  input: string,
  { oauth }: Readonly<Record<string, unknown>>,
): Refusal | undefined {
  const url = URL.parse(input)
  const isMail = url?.protocol === 'smtp:' || url?.protocol === 'smtps:'
  if (!isMail || url.hostname === '') {
    return refusal('not a mail server', 'write smtp://user:password@host:587 or smtps://…:465')
  }
  if (oauth !== undefined && url.username === '') {
    return refusal('names no user', 'write smtp://user%40example.com@host:587 with oauth')
  }
  if (oauth !== undefined && url.password !== '') {
    return refusal('holds a password beside oauth', 'remove either')
  }
  return loginProblem(url)
}

export const emailType = {
  config: emailConfig,
  audience: 'people',
  address({ smtp }) {
    return smtp
  },
  warn({ tls, smtp }) {
    const { hostname = 'localhost' } = URL.parse(smtp.reveal()) ?? {}
    if (tls === 'required' || isLoopback(hostname)) return []
    const remedy = 'remove the line if the server speaks TLS'
    return [{ key: 'tls', problem: 'mail and passwords go in clear', remedy }]
  },
} satisfies SinkType<NamedSink<typeof emailConfig>>
