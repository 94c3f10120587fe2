/**
 * Feeds of leaked credentials: those of an identifier, of the tenant, and those that a search finds;
 * and of stolen cookies.
 */
import { z } from 'zod'
import { severities } from '../event.ts'
import {
  byType,
  duration,
  foreignKeys,
  list,
  messageFor,
  refusal,
  type Rule,
  section,
  text,
  textField,
  unknownWord,
  wholeNumber,
  word,
  wrongKind,
} from '../lib/config-fields.ts'
import {
  commonKeys,
  type CookiesFeedConfig,
  fixedIntervalParts,
  type CredentialQuery,
  type CredentialSearchFeedConfig,
  type CredentialsFeedConfig,
  fullRescan,
  labelNames,
  sectionOrFalse,
  type PairDedupe,
  quotaReserveKey,
  type TenantCredentialsFeedConfig,
  tierKey,
  windowRescan,
  type Written,
} from './feed-config.ts'

const severityRemedy = `write severity: high, or another of ${severities.join(', ')}: the API gives credentials none`

const severity = z
  .enum(severities, {
    error: ({ input }) =>
      typeof input === 'string' && input !== ''
        ? messageFor(unknownWord(input, severities))
        : wrongKind('a severity', severityRemedy).error({ input }),
  })
  .meta({ description: 'The severity of all its credentials: the API gives them none.' })

const pairParts = ['identity', 'secret', 'domain'] as const

const eachPartOnce: Rule = ({ by }) =>
  (Array.isArray(by) ? by : []).flatMap((part: unknown, index, parts) =>
    parts.indexOf(part) === index
      ? []
      : [{ path: ['by', index], problem: 'stands here twice', remedy: 'write each part once' }],
  )

const dedupe = sectionOrFalse<PairDedupe>(
  section(
    {
      by: list(
        word(pairParts, 'What two credentials have in common.'),
        'What a credential is recognised by when another source shows it.',
        'write what they have in common, such as [identity, secret, domain]',
      ).prefault([...pairParts]),
      for: duration('How long it is recognised after it was last seen.', '1h').prefault('180d'),
      repeat: word(
        ['suppress', 'send'],
        'Whether who had it already gets it again from another source.',
      ).prefault('suppress'),
    },
    {
      describe: 'A credential that several sources show is sent once. false: once for each source.',
      rules: [eachPartOnce],
    },
  ).transform((file): PairDedupe => ({
    by: file.by,
    forMs: file.for,
    isSentAgain: file.repeat === 'send',
  })),
  '{by: [identity, secret, domain], for: 180d}',
)

const eventOnlyKeys = {
  filters: 'remove the line: the service filters no credentials; matchers of routes do',
  detail: 'remove the line: a credential has no full event to fetch',
} as const

/** The keys that both feeds of watched credentials share. */
const watchedKeys = {
  severity,
  dedupe,
  ...commonKeys,
  every: duration('The longest time between polls.', '5s').prefault('60s'),
  tier: tierKey('basic'),
  rescan: fullRescan('24h'),
  ...foreignKeys({
    ...eventOnlyKeys,
    query: 'remove the line, or write type: credential_search',
    quota_reserve: 'remove the line: the credentials that a tenant watches for cost no quota',
  }),
}

type WatchedFile = z.output<z.ZodObject<typeof watchedKeys>>

function watchedParts(file: WatchedFile): Omit<Written<TenantCredentialsFeedConfig>, 'type'> {
  const { severity: all, dedupe: pairs, rescan } = file
  return { severity: all, dedupe: pairs, ...fixedIntervalParts(file), rescan, detail: [] }
}

export const credentialsFeedConfig = section(
  {
    type: z.literal('credentials').meta({ description: 'Leaked credentials of one identifier.' }),
    identifier: wholeNumber({ describe: 'Id of the identifier.', min: 1 }),
    ...watchedKeys,
    ...foreignKeys({
      identifier_group: 'write identifier and the id of an identifier: groups have only events',
    }),
  },
  { describe: 'The leaked credentials of an identifier.', rules: [labelNames] },
).transform((file): Written<CredentialsFeedConfig> => ({
  type: file.type,
  identifier: file.identifier,
  ...watchedParts(file),
}))

export const tenantCredentialsFeedConfig = section(
  {
    type: z
      .literal('tenant_credentials')
      .meta({ description: "Leaked credentials of all identifiers of the account's tenant." }),
    ...watchedKeys,
    ...foreignKeys({
      identifier: 'remove the line to read all identifiers, or write type: credentials',
      identifier_group: 'remove the line: groups have only events',
    }),
  },
  { describe: 'The leaked credentials of the whole tenant.', rules: [labelNames] },
).transform((file): Written<TenantCredentialsFeedConfig> => ({
  type: file.type,
  ...watchedParts(file),
}))

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

const query: z.ZodType<CredentialQuery> = byType(
  [
    section(
      {
        type: z.literal('domain').meta({ description: 'By the domain of the address.' }),
        fqdn: domain,
      },
      { describe: 'Credentials with an address of this domain.' },
    ),
    section(
      {
        type: z.literal('auth_domain').meta({ description: 'By the site of the login.' }),
        fqdn: domain,
      },
      { describe: 'Credentials for a login at this domain.' },
    ),
    section(
      { type: z.literal('email').meta({ description: 'By the address.' }), email },
      { describe: 'Credentials of this address.' },
    ),
    section(
      {
        type: z.literal('keyword').meta({ description: 'By a word in the name.' }),
        keyword: text('What the part of the name before the @ holds.'),
      },
      { describe: 'Credentials whose name holds this word.' },
    ),
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
    dedupe,
    quota_reserve: quotaReserveKey,
    ...commonKeys,
    // each poll costs one search of the month's quota
    every: duration('The longest time between polls.', '5s').prefault('1h'),
    tier: tierKey('search'),
    rescan: windowRescan('24h'),
    ...foreignKeys({
      ...eventOnlyKeys,
      identifier_group: 'write query and what to search for: a search reads no group',
      identifier: 'write query and what to search for, or type: credentials',
    }),
  },
  { describe: 'What a global search for leaked credentials finds.', rules: [labelNames] },
).transform((file): Written<CredentialSearchFeedConfig> => ({
  type: file.type,
  query: file.query,
  severity: file.severity,
  dedupe: file.dedupe,
  quotaReserve: file.quota_reserve,
  ...fixedIntervalParts(file),
  rescan: file.rescan,
  detail: [],
}))

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
    expired_severity: word(severities, 'The severity of a cookie that has expired.').prefault(
      'info',
    ),
    ...commonKeys,
    every: duration('The longest time between polls.', '5s').prefault('60s'),
    tier: tierKey('basic'),
    rescan: windowRescan('24h'),
    ...foreignKeys({
      filters: 'write names and paths: the service filters cookies by these alone',
      detail: 'remove the line: a cookie has no full event to fetch',
      dedupe: 'remove the line: each cookie is sent once',
      query: 'write domain and whose cookies are meant',
      quota_reserve: 'remove the line: cookies cost no quota',
      identifier_group: 'write domain and whose cookies are meant',
      identifier: 'write domain and whose cookies are meant',
    }),
  },
  { describe: 'The stolen cookies of a domain.', rules: [labelNames, atMostTen] },
).transform((file): Written<CookiesFeedConfig> => ({
  type: file.type,
  domain: file.domain.toLowerCase(),
  names: file.names ?? [],
  paths: file.paths ?? [],
  severity: file.severity,
  expiredSeverity: file.expired_severity,
  ...fixedIntervalParts(file),
  rescan: file.rescan,
  detail: [],
}))
