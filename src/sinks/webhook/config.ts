/** The configuration of a webhook sink. */
import { z } from 'zod'
import {
  duration,
  flag,
  isSection,
  list,
  rate,
  refusal,
  type Refusal,
  type Rule,
  section,
  textField,
  wholeNumber,
} from '../../lib/config/config-fields.ts'
import { outboundKeys, outboundRules, readOutbound } from '../../lib/config/outbound-config.ts'
import {
  requiredSecretFromSection,
  secretFromSection,
  secretKeys,
  secretRule,
} from '../../lib/config/secret.ts'
import { sectionAddressProblem } from '../../lib/config/web-address.ts'
import {
  type NamedSink,
  readCommon,
  commonKeys,
  type SinkSettings,
  type SinkType,
} from '../config.ts'
import { knownAddressProblem } from '../known-addresses.ts'
import { bodyTemplatesConfig } from '../templates/template-config.ts'
import { secretBytes, leastKeyBytes } from './signature.ts'

/** Every receiver takes that much; one that takes less has a smaller `max`. */
const maxBatchBytes = 256 * 1024

const batch = section(
  {
    max: wholeNumber({ describe: 'Events in one request.', min: 1, max: 1000 }).prefault(50),
    wait: duration('How long the first event waits for others.').prefault('1s'),
  },
  { describe: 'Several events in one request. Default: one each.' },
).transform((file) => ({ max: file.max, waitMs: file.wait, maxBytes: maxBatchBytes }))

const noTemplateOfBatches: Rule = (sink) =>
  sink['batch'] === undefined || sink['templates'] === undefined
    ? []
    : [
        {
          path: ['batch'],
          ...refusal('given beside templates', 'remove either: a template is of one event'),
        },
      ]

/** What the connection needs, and what Tocsin says of a delivery. */
const takenHeaders =
  /^(?:host|connection|keep-alive|te|trailer|upgrade|expect|transfer-encoding|content-.*|proxy-.*|user-agent|idempotency-key|webhook-.*|tocsin-.*)$/

const headerNameRemedy = 'write a header that Tocsin does not send itself, such as X-Api-Key'

const header = section(
  {
    name: textField({
      describe: 'Its name.',
      remedy: headerNameRemedy,
      examples: ['X-Api-Key'],
      parse: (input) =>
        /^[\w-]+$/.test(input) && !takenHeaders.test(input.toLowerCase())
          ? input.toLowerCase()
          : refusal('not a free header', headerNameRemedy),
    }),
    ...secretKeys('value', 'Its value.'),
  },
  {
    describe: 'A further header of every request.',
    rules: [secretRule('value', { required: true, check: headerValueProblem })],
  },
).transform((file) => ({ name: file.name, value: requiredSecretFromSection(file, 'value') }))

const eachHeaderOnce: Rule = ({ headers }) => {
  const names = Array.isArray(headers) ? headers.map((one) => nameOf(one)) : []
  return names.flatMap((name, index) =>
    name === undefined || names.indexOf(name) === index
      ? []
      : [{ path: ['headers', index], ...refusal('named twice', 'remove the second') }],
  )
}

function nameOf(one: unknown): string | undefined {
  return isSection(one) && typeof one['name'] === 'string' ? one['name'].toLowerCase() : undefined
}

/** Quotes nothing of it. */
export function headerValueProblem(input: string): Refusal | undefined {
  return /^[\x21-\x7e]+(?: [\x21-\x7e]+)*$/.test(input)
    ? undefined
    : refusal('no value of a header', 'write it on one line, such as: Splunk <token>')
}

/** One webhook of the file; its key is its name. */
const webhookConfig = section(
  {
    type: z.literal('webhook').meta({ description: 'An HTTP endpoint of a machine.' }),
    ...secretKeys('url', 'Where the requests go.'),
    ...secretKeys('secret', 'Signs every request (Standard Webhooks).'),
    headers: list(
      header,
      'Further headers, such as Authorization or the key of a gateway.',
      'write a list, such as [{ name: Authorization, value_file: token }]',
    ).optional(),
    allow_private: flag('Let the address be private or loopback, over http too.').prefault(false),
    batch: batch.optional(),
    templates: bodyTemplatesConfig.optional(),
    limit: rate('Requests per second or minute, over all replicas. Default: none.').optional(),
    reveal: flag('Show leaked credentials in clear.').prefault(false),
    ...commonKeys,
    ...outboundKeys,
  },
  {
    describe: 'Signed requests to a machine.',
    rules: [
      secretRule('url', {
        required: true,
        check: (url, sink) =>
          sectionAddressProblem(url, sink) ?? knownAddressProblem('webhook', url, sink),
      }),
      secretRule('secret', { required: false, check: secretProblem }),
      eachHeaderOnce,
      noTemplateOfBatches,
      ...outboundRules,
    ],
  },
).transform((file) => ({
  type: file.type,
  url: requiredSecretFromSection(file, 'url'),
  secret: secretFromSection(file, 'secret'),
  headers: file.headers,
  templates: file.templates,
  allowPrivate: file.allow_private,
  batch: file.batch,
  digest: undefined,
  limitPerSecond: file.limit,
  reveal: file.reveal,
  ...readOutbound(file),
  ...readCommon(file),
}))

export type WebhookConfig = SinkSettings<typeof webhookConfig>

export const webhookType = {
  config: webhookConfig,
  audience: 'machines',
  address({ url }) {
    return url
  },
  warn({ secret, headers }) {
    if (secret !== undefined || headers !== undefined) return []
    const remedy = 'give a secret, so that the receiver can tell who sends'
    return [{ problem: 'its requests are not signed', remedy }]
  },
} satisfies SinkType<NamedSink<typeof webhookConfig>>

/** Standard Webhooks 1.0.0, signature schemes. */
const mostKeyBytes = 64

/**
 * Standard Webhooks secrets begin with whsec_ followed by base64; any other counts as its bytes.
 */
function secretProblem(input: string): Refusal | undefined {
  const isEncoded = input.startsWith('whsec_')
  if (isEncoded && !/^whsec_[A-Za-z0-9+/]+={0,2}$/.test(input))
    return refusal('not base64 after whsec_', 'copy the secret again')
  const { length } = secretBytes(input)
  const isLong = isEncoded && length > mostKeyBytes // any other is hashed to one length
  if (length >= leastKeyBytes && !isLong) return undefined
  const size = isEncoded ? `${leastKeyBytes} to ${mostKeyBytes}` : `at least ${leastKeyBytes}`
  return refusal(
    `too ${isLong ? 'long' : 'short'} for a key`,
    `write one of ${size} random bytes, such as: echo "whsec_$(openssl rand -base64 32)"`,
  )
}
