/** Feeds of the events that a tenant watches for: all of them, a group's, or an identifier's. */
import { z } from 'zod'
import { isKnownSeverity, severities } from '../events/severity.ts'
import {
  duration,
  flag,
  list,
  messageFor,
  refusal,
  text,
  unknownWord,
  wholeNumber,
  word,
  wrongKind,
} from '../runtime/config-fields.ts'
import { foreignKeys, section } from '../runtime/config-section.ts'
import {
  commonKeys,
  ruledOf,
  labelNames,
  tierKey,
  windowSweep,
  type Written,
} from './feed-config-parts.ts'
import type {
  EventsFeedConfig,
  FeedFilters,
  IdentifierEventsFeedConfig,
  TenantEventsFeedConfig,
} from './feed-config.ts'

const severityRemedy = `write one of ${severities.join(', ')}, or a list of them`

const severityWord = z.string().meta({ enum: [...severities] })

/** `severity` of `filters`: the words are the service's, checked here. */
export const severityFilter = z
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

export const typeFilter = list(
  text('Event type as the service names it; open.'),
  'Event types to fetch.',
  'write event types, such as [stealer_log]',
)

export const detailKey = z
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
  .transform((file): FeedFilters => {
    const { type, tags, is_ignored, is_remediated } = file
    const severity = file.severity as FeedFilters['severity'] // refused above where it is none
    return {
      ...(severity === undefined ? {} : { severity }),
      ...(type === undefined ? {} : { type }),
      ...(tags === undefined ? {} : { tags }),
      ...(is_ignored === undefined ? {} : { is_ignored }),
      ...(is_remediated === undefined ? {} : { is_remediated }),
    }
  })
  .prefault({})

const ofOtherFeeds = {
  severity: "remove the line: the event's own severity counts",
  quota_reserve: 'remove the line: the events that a tenant watches for cost no quota',
  dedupe: 'remove the line: the top-level dedupe holds for events',
} as const

/** What the three types have besides what says whose events they read. */
const watchedKeys = {
  filters,
  ...commonKeys,
  every: duration(
    'The longest time between polls, where the budget allows it. Default: as often as the limit allows.',
    '5s',
  ).optional(),
  tier: tierKey('search'),
  sweep: windowSweep(),
  detail: detailKey,
  ...foreignKeys(ofOtherFeeds),
}

type WatchedFile = z.output<z.ZodObject<typeof watchedKeys>>

function watchedParts(file: WatchedFile): Omit<Written<TenantEventsFeedConfig>, 'type'> {
  return { filters: file.filters, ...ruledOf(file), sweep: file.sweep, detail: file.detail }
}

/** The events of an identifier group. */
export const eventsFeedConfig = section(
  {
    type: z.literal('events').meta({ description: 'Events of one identifier group.' }),
    identifier_group: wholeNumber({ describe: 'Id of the identifier group.', min: 1 }),
    ...watchedKeys,
    ...foreignKeys({
      identifier: 'write identifier_group and the id of a group, or type: identifier_events',
      query: 'write identifier_group: events are read by identifier group',
    }),
  },
  { describe: 'The events of an identifier group.', rules: [labelNames] },
).transform((file): Written<EventsFeedConfig> => ({
  type: file.type,
  identifierGroup: file.identifier_group,
  ...watchedParts(file),
}))

/** All events that the tenant watches for, whatever their group. */
export const tenantEventsFeedConfig = section(
  {
    type: z
      .literal('tenant_events')
      .meta({ description: 'All events that the tenant of the account watches for.' }),
    ...watchedKeys,
    ...foreignKeys({
      identifier_group: 'remove the line to read all groups, or write type: events',
      identifier: 'remove the line to read all identifiers, or write type: identifier_events',
      query: 'remove the line, or write type: event_search',
    }),
  },
  { describe: 'All events that the tenant watches for.', rules: [labelNames] },
).transform((file): Written<TenantEventsFeedConfig> => ({
  type: file.type,
  ...watchedParts(file),
}))

/** The events of one identifier. */
export const identifierEventsFeedConfig = section(
  {
    type: z.literal('identifier_events').meta({ description: 'Events of one identifier.' }),
    identifier: wholeNumber({ describe: 'Id of the identifier.', min: 1 }),
    ...watchedKeys,
    ...foreignKeys({
      identifier_group: 'write identifier and the id of an identifier, or type: events',
      query: 'remove the line, or write type: event_search',
    }),
  },
  { describe: 'The events of one identifier.', rules: [labelNames] },
).transform((file): Written<IdentifierEventsFeedConfig> => ({
  type: file.type,
  identifier: file.identifier,
  ...watchedParts(file),
}))
