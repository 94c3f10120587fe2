/** The `accounts` section of the configuration: one API key each, where it is used and how fast. */
import {
  list,
  positiveNumber,
  refusal,
  type Refusal,
  section,
  textField,
  wholeNumber,
} from '../lib/config/config-fields.ts'
import {
  type Outbound,
  outboundKeys,
  outboundRules,
  readOutbound,
} from '../lib/config/outbound-config.ts'
import {
  requiredSecretFromSection,
  type Secret,
  secretKeys,
  secretRule,
} from '../lib/config/secret.ts'
import { isLoopback, webAddressProblem } from '../lib/config/web-address.ts'
import { readLinkHost } from './links.ts'

export type Tier = 'search' | 'basic'

export interface AccountConfig extends Outbound {
  name: string
  /** No trailing slash. */
  baseUrl: string
  apiKey: Secret
  tenantId: number | undefined
  /** Overrides the organization id that the token test returns. */
  organizationId: number | undefined
  /** Requests per second, for the whole organization. */
  limits: Record<Tier, number>
  /** The share of each limit that feeds use, rescans included. */
  feedShare: number
  /**
   * Hosts that event links may lead to, besides those derived from `baseUrl`. `.x` means x and
   * every host below it.
   */
  linkHosts: readonly string[]
}

const linkHostsRemedy = 'write a list of hosts, such as [app.example.com]'

const limits = section(
  {
    search: positiveNumber('Requests per second to the search endpoints.').prefault(1),
    basic: positiveNumber('Requests per second to all other endpoints.').prefault(4),
    share: positiveNumber(
      'The part of each that feeds use, their rescans included; the rest is for full events, commands and other programs.',
      1,
    ).prefault(0.7),
  },
  { describe: 'Requests per second of the organization, shared by every replica.' },
).prefault({})

/** One account of the configuration file. Its name is the key that it stands under. */
export const accountConfig = section(
  {
    base_url: textField({
      describe: 'Where the API is, without a path of an endpoint.',
      remedy: 'write the API address, such as https://api.example.com',
      examples: ['${TOCSIN_BASE_URL}'],
      parse: baseUrl,
    }),
    ...secretKeys('api_key', 'The API key.'),
    tenant_id: wholeNumber({
      describe: "The tenant to read. Default: the key's own.",
      min: 1,
    }).optional(),
    organization_id: wholeNumber({
      describe: 'Whose limits count. Default: what the service says of the key.',
      min: 1,
    }).optional(),
    limits,
    ...outboundKeys,
    link_hosts: list(
      textField({
        describe: 'A host, or with a dot in front a domain and all its hosts.',
        remedy: linkHostsRemedy,
        examples: ['app.example.com', '.example.com'],
        parse: readLinkHost,
      }),
      'Hosts to which links of events may lead. Default: the host of base_url and, where it is called api, all hosts of the domain above it. Any other link is shown as text.',
      linkHostsRemedy,
    ).optional(),
  },
  {
    describe: 'One API key, where it is used and how fast.',
    rules: [secretRule('api_key', { required: true, check: apiKeyProblem }), ...outboundRules],
  },
).transform((file): Omit<AccountConfig, 'name'> => ({
  baseUrl: file.base_url,
  apiKey: requiredSecretFromSection(file, 'api_key'),
  tenantId: file.tenant_id,
  organizationId: file.organization_id,
  limits: { search: file.limits.search, basic: file.limits.basic },
  feedShare: file.limits.share,
  ...readOutbound(file),
  linkHosts: file.link_hosts ?? [],
}))

function baseUrl(input: string): string | Refusal {
  const problem = webAddressProblem(input, isLoopback)
  if (problem !== undefined) return problem
  const url = new URL(input)
  if (url.search !== '' || url.hash !== '') {
    return refusal('holds a query or a fragment', 'end the URL before "?" and "#"')
  }
  if (/\/(firework|tokens)(\/|$)/.test(url.pathname)) {
    return refusal(
      'ends in the path of an endpoint',
      'write the address before /firework or /tokens',
    )
  }
  return url.href.replace(/\/+$/, '')
}

function apiKeyProblem(input: string): Refusal | undefined {
  if (/^[\x21-\x7e]+$/.test(input)) return undefined
  return refusal('not an API key: it holds a space or a special character', 'copy the key again')
}
