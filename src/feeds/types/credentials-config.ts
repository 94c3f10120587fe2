/** Configuration of feeds of leaked credentials, watched or searched, and of stolen cookies. */
import { z } from 'zod'
import { severities } from '../../event.ts'
import {
  byType,
  flag,
  list,
  refusal,
  type Rule,
  section,
  text,
  textField,
  wholeNumber,
  word,
} from '../../lib/config/config-fields.ts'
import {
  commonKeys,
  fixedIntervalParts,
  fullRescan,
  intervalKey,
  labelNames,
  type Named,
  queryKind,
  quotaReserveKey,
  windowRescan,
} from './feed-config.ts'

const severity = word(severities, 'The severity of all its credentials: the API gives them none.')

export const credentialsFeedConfig = section(
  {
    type: z
      .literal('credentials')
      .meta({ description: 'Leaked credentials of one identifier, or of all of the tenant.' }),
    identifier: wholeNumber({
      describe: 'Only credentials of the identifier with this id.',
      min: 1,
    }).optional(),
    severity,
    ...commonKeys,
    every: intervalKey('60s'),
    rescan: fullRescan('24h'),
  },
  { describe: 'Leaked credentials that the tenant watches for.', rules: [labelNames] },
).transform((file) => ({
  type: file.type,
  identifier: file.identifier,
  severity: file.severity,
  tier: 'basic' as const,
  ...fixedIntervalParts(file),
}))

export type CredentialsFeedConfig = Named<z.output<typeof credentialsFeedConfig>>

const domain = textField({
  describe: 'Domain, such as example.com.',
  remedy: 'write a domain, such as example.com',
  parse: (input) =>
    /^[^\s/:@*?.]+(\.[^\s/:@*?.]+)+$/.test(input)
      ? input
      : refusal('not a domain', 'write only the domain, such as example.com'),
})

const email = textField({
  describe: 'The exact e-mail address.',
  remedy: 'write an e-mail address, such as jo@example.com',
  parse: (input) =>
    /^[^\s@]+@[^\s@]+$/.test(input)
      ? input
      : refusal('not an e-mail address', 'write one address, such as jo@example.com'),
})

const query = byType(
  [
    queryKind('domain', 'By the domain of the address.', { fqdn: domain }),
    queryKind('auth_domain', 'By the site of the login.', { fqdn: domain }),
    queryKind('email', 'By the address.', { email }),
    queryKind('keyword', 'By a word in the name.', {
      keyword: text('What the part of the name before the @ holds.'),
    }),
  ],
  { secret: 'a secret does not belong in a configuration file' },
)

export const credentialSearchFeedConfig = section(
  {
    type: z
      .literal('credential_search')
      .meta({ description: 'What a global search for leaked credentials finds; costs quota.' }),
    query,
    severity,
    astp: flag(
      'Searches by the permission for ASTP: costs no quota, and counts against the basic tier.',
    ).prefault(false),
    quota_reserve: quotaReserveKey,
    ...commonKeys,
    // each poll costs one search of the month's quota
    every: intervalKey('1h'),
    rescan: windowRescan('24h'),
  },
  { describe: 'What a global search for leaked credentials finds.', rules: [labelNames] },
).transform((file) => ({
  type: file.type,
  query: file.query,
  severity: file.severity,
  astp: file.astp,
  quotaReserve: file.astp ? 0 : file.quota_reserve,
  tier: file.astp ? ('basic' as const) : ('search' as const),
  ...fixedIntervalParts(file),
}))

export type CredentialSearchFeedConfig = Named<z.output<typeof credentialSearchFeedConfig>>

/** The most that the service takes of a filter. */
const mostFilters = 10

const atMostTen: Rule = (feed) =>
  ['names', 'paths'].flatMap((key) => {
    const { length } = Array.isArray(feed[key]) ? feed[key] : []
    const problem = `${length} of them, and the service takes ${mostFilters}`
    return length > mostFilters ? [{ path: [key], problem, remedy: 'write a second feed' }] : []
  })

export const cookiesFeedConfig = section(
  {
    type: z
      .literal('cookies')
      .meta({ description: 'Stolen cookies of one domain; takes the permission for ASTP.' }),
    domain,
    names: list(
      text('The name of a cookie.'),
      'Only cookies of these names, at most ten.',
      'write names of cookies, such as [session]',
    ).optional(),
    paths: list(
      text('The path of a cookie.'),
      'Only cookies of these paths, at most ten.',
      "write paths of cookies, such as ['/']",
    ).optional(),
    severity: word(
      severities,
      'The severity of a cookie that still lives, or states no end.',
    ).prefault('high'),
    expired_severity: word(
      severities,
      'The severity of a cookie that had expired when it was imported.',
    ).prefault('info'),
    ...commonKeys,
    every: intervalKey('60s'),
    rescan: windowRescan('24h'),
  },
  { describe: 'The stolen cookies of a domain.', rules: [labelNames, atMostTen] },
).transform((file) => ({
  type: file.type,
  domain: file.domain.toLowerCase(),
  names: file.names ?? [],
  paths: file.paths ?? [],
  severity: file.severity,
  expiredSeverity: file.expired_severity,
  tier: 'basic' as const,
  ...fixedIntervalParts(file),
}))

export type CookiesFeedConfig = Named<z.output<typeof cookiesFeedConfig>>
