/** Configuration of event feeds: what a tenant watches for, and global searches. */
import { z } from 'zod'
import { isKnownSeverity, type KnownSeverity, severities } from '../../event.ts'
import {
  byType,
  duration,
  flag,
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
} from '../../lib/config/config-fields.ts'
import {
  commonKeys,
  fixedIntervalParts,
  intervalKey,
  labelNames,
  type Named,
  queryKind,
  quotaReserveKey,
  ratePolledParts,
  windowRescan,
} from './feed-config.ts'

/**
 * Filters as the API takes them. A severity string means "this or higher", an array exactly these.
 */
export interface FeedFilters {
  severity?: KnownSeverity | KnownSeverity[]
  type?: string[]
  tags?: string[]
  is_ignored?: boolean
  is_remediated?: boolean
}

const severityRemedy = `write one of ${severities.join(', ')}, or a list of them`

const severityWord = z.string().meta({ enum: [...severities] })

/** `severity` of `filters`; the API's words are checked here. */
const severityFilter = z
  .union([severityWord, z.array(severityWord)], wrongKind('a severity or a list', severityRemedy))
  .superRefine((input, context) => {
    if (input.length === 0) {
      context.addIssue({ code: 'custom', message: messageFor(refusal('empty', severityRemedy)) })
    }
    const words = typeof input === 'string' ? [input] : input
    for (const [index, severity] of words.entries()) {
      if (severity === '' || isKnownSeverity(severity)) continue
      const path = typeof input === 'string' ? [] : [index]
      const message = messageFor(unknownWord(severity, severities))
      context.addIssue({ code: 'custom', path, message })
    }
  })
  .meta({ description: 'A word: this or higher. A list: exactly these.' })

const typeFilter = list(
  text('Event type as the service names it; open.'),
  'Event types to fetch.',
  'write event types, such as [stealer_log]',
)

const detailKey = z
  .array(
    word(severities, 'Severity.'),
    wrongKind('a list', 'write severities, such as [high, critical]'),
  )
  .meta({
    description:
      'Severities for which the full event is fetched before rendering. An unknown severity counts as critical.',
  })
  .prefault(['high', 'critical'])

const filters = section(
  {
    severity: severityFilter.optional(),
    type: typeFilter.optional(),
    tags: list(text('Tag.'), 'Tags to fetch.', 'write tags, such as [vip]').optional(),
    is_ignored: flag('true: only ignored events; false has no effect.').optional(),
    is_remediated: flag('true: only remediated events; false has no effect.').optional(),
  },
  { describe: 'What the service is asked for; nothing else arrives.' },
)
  .transform((file) => withoutUnsaid<FeedFilters>(file))
  .prefault({})

/** Leaves out the keys that the file does not give; their words are checked by then. */
function withoutUnsaid<Filters>(file: object): Filters {
  const said = Object.entries(file).filter(([, value]) => value !== undefined)
  return Object.fromEntries(said) as Filters
}

const oneScope: Rule = ({ identifier, identifier_group: group }) =>
  identifier === undefined || group === undefined
    ? []
    : [
        {
          path: ['identifier'],
          problem: 'stands beside identifier_group',
          remedy: 'write one of the two',
        },
      ]

export const eventsFeedConfig = section(
  {
    type: z.literal('events').meta({
      description: 'Events that the tenant watches for: of a group, of an identifier, or all.',
    }),
    identifier_group: wholeNumber({
      describe: 'Only events of the identifier group with this id.',
      min: 1,
    }).optional(),
    identifier: wholeNumber({
      describe: 'Only events of the identifier with this id.',
      min: 1,
    }).optional(),
    filters,
    ...commonKeys,
    every: duration(
      'The longest time between polls, where the budget allows it. Default: as often as the limit allows.',
      '5s',
    ).optional(),
    rescan: windowRescan(),
    detail: detailKey,
  },
  { describe: 'Events that the tenant watches for.', rules: [labelNames, oneScope] },
).transform((file) => ({
  type: file.type,
  identifierGroup: file.identifier_group,
  identifier: file.identifier,
  filters: file.filters,
  tier: 'search' as const,
  ...ratePolledParts(file),
}))

export type EventsFeedConfig = Named<z.output<typeof eventsFeedConfig>>

const mostLucene = 10_000

const lucene = textField({
  describe: `In Lucene query syntax, at most ${mostLucene} characters.`,
  remedy: "write a query in quotes, such as 'acme AND type:paste'",
  parse: (input) =>
    input.length <= mostLucene
      ? input
      : refusal('too long', `write at most ${mostLucene} characters`),
})

/** docs/api-notes.md, Event queries. */
const query = byType(
  [
    queryKind('domain', 'Mentions of a domain.', { fqdn: text('Domain, such as example.com.') }),
    queryKind('email', 'Mentions of an address.', { email: text('E-mail address.') }),
    queryKind('keyword', 'Mentions of a word.', { keyword: text('Word or words.') }),
    queryKind('query_string', 'A query in Lucene syntax.', { query_string: lucene }),
    queryKind('username', 'Mentions of a user name.', { username: text('User name.') }),
    queryKind('github_repository', 'Mentions of a repository.', {
      repo_owner: text('Owner of the repository.'),
      repo_name: text('Name of the repository.'),
    }),
    queryKind('brand', 'Mentions of a brand.', { name: text('Name of the brand.') }),
    queryKind('name', 'Mentions of a person.', {
      first_name: text('First name.'),
      last_name: text('Last name.'),
      is_strict: flag('Only the two names side by side.').prefault(false),
    }),
    queryKind('bin', 'Cards by their first digits.', { bin: text('The digits, in quotes.') }),
    queryKind('ip', 'Mentions of an address or a network.', { ip: text('IP address.') }),
    queryKind('azure_tenant', 'Mentions of an Azure tenant.', {
      tenant_id: text('Id of the tenant.'),
    }),
  ],
  {
    secret: 'a secret does not belong in a configuration file',
    credentials: 'a password does not belong in a configuration file',
  },
)

const searchFilters = section(
  { severity: severityFilter.optional(), type: typeFilter.optional() },
  { describe: 'What the service is asked for; nothing else arrives.' },
)
  .transform((file) => withoutUnsaid<Pick<FeedFilters, 'severity' | 'type'>>(file))
  .prefault({})

export const eventSearchFeedConfig = section(
  {
    type: z
      .literal('event_search')
      .meta({ description: 'What a global search for events finds; costs quota.' }),
    query,
    filters: searchFilters,
    quota_reserve: quotaReserveKey,
    ...commonKeys,
    // each poll costs one search of the month's quota
    every: intervalKey('1h'),
    rescan: windowRescan('24h'),
    detail: detailKey,
  },
  { describe: 'What a global search for events finds.', rules: [labelNames] },
).transform((file) => ({
  type: file.type,
  query: file.query,
  filters: file.filters,
  /** The feed stops before fewer searches of the month remain; 0: it may use them all. */
  quotaReserve: file.quota_reserve,
  tier: 'search' as const,
  ...fixedIntervalParts(file),
}))

export type EventSearchFeedConfig = Named<z.output<typeof eventSearchFeedConfig>>
