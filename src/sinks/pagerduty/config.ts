/** The configuration of a PagerDuty sink. */
import { z } from 'zod'
import {
  flag,
  rate,
  refusal,
  type Refusal,
  type Rule,
  section,
  textField,
} from '../../lib/config/config-fields.ts'
import { outboundKeys, outboundRules, readOutbound } from '../../lib/config/outbound-config.ts'
import {
  createSecret,
  requiredSecretFromSection,
  secretKeys,
  secretRule,
} from '../../lib/config/secret.ts'
import { sectionAddressProblem } from '../../lib/config/web-address.ts'
import {
  type NamedSink,
  commonKeys,
  readerKeys,
  readCommon,
  type SinkSettings,
  type SinkType,
} from '../config.ts'

/** One address for each service region of PagerDuty. */
const origins = { us: 'https://events.pagerduty.com', eu: 'https://events.eu.pagerduty.com' }

/** The key is sent in the body, so any other host would learn it. */
const originRule: Rule = (sink) => {
  const { url } = sink
  if (typeof url !== 'string') return []
  const problem =
    sectionAddressProblem(url, sink) ?? originProblem(url, sink['allow_private'] === true)
  return problem === undefined ? [] : [{ path: ['url'], ...problem }]
}

function originProblem(input: string, isAnyHost: boolean): Refusal | undefined {
  const { origin, pathname, search, hash } = new URL(input)
  const remedy = `write ${origins.us} or, for accounts of the EU region, ${origins.eu}`
  if (!isAnyHost && !Object.values(origins).includes(origin)) {
    return refusal('not an address of the Events API', remedy)
  }
  return `${pathname}${search}${hash}` === '/' ? undefined : refusal('more than a host', remedy)
}

/** Returns what is wrong with a routing key (docs/api-notes.md, PagerDuty), without quoting it. */
export function routingKeyProblem(input: string): Refusal | undefined {
  if (/^[A-Za-z0-9]{32}$/.test(input)) return undefined
  const remedy = 'copy the integration key of an "Events API v2" integration of the service'
  return refusal('not 32 letters and digits', remedy)
}

/** One PagerDuty sink of the file; its key is its name. */
const pagerDutyConfig = section(
  {
    type: z.literal('pagerduty').meta({ description: 'People on call, by PagerDuty.' }),
    ...secretKeys('routing_key', 'Integration key of an Events API v2 integration.'),
    url: textField({
      describe: `Address of the Events API; ${origins.eu} for accounts of the EU region.`,
      remedy: `write ${origins.us} or ${origins.eu}`,
      expected: 'an address',
      examples: Object.values(origins),
      parse: (input) => input,
    }).prefault(origins.us),
    limit: rate('Incidents per second or minute, over all replicas. Default: none.').optional(),
    allow_private: flag('Let the address be private or loopback, over http too.').prefault(false),
    ...readerKeys,
    ...commonKeys,
    ...outboundKeys,
  },
  {
    describe: 'Incidents for people on call.',
    rules: [
      secretRule('routing_key', { required: true, check: routingKeyProblem }),
      originRule,
      ...outboundRules,
    ],
  },
).transform((file) => ({
  type: file.type,
  url: file.url,
  routingKey: requiredSecretFromSection(file, 'routing_key'),
  limitPerSecond: file.limit,
  allowPrivate: file.allow_private,
  timeZone: file.time_zone,
  templates: file.templates,
  batch: undefined,
  digest: undefined,
  /** Incidents go on to telephones and other services, so leaked secrets stay masked. */
  reveal: undefined,
  ...readOutbound(file),
  ...readCommon(file),
}))

export type PagerDutyConfig = SinkSettings<typeof pagerDutyConfig>

export const pagerDutyType = {
  config: pagerDutyConfig,
  // Whoever is on call gets what they can act on: a group or a storm is one incident.
  audience: 'people',
  address({ url, routingKey }) {
    return createSecret(() => `${url} ${routingKey.reveal()}`)
  },
} satisfies SinkType<NamedSink<typeof pagerDutyConfig>>
