import { z } from 'zod'
import { isKnownSeverity, severities } from '../events/severity.ts'
import {
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
  commonOf,
  labelNames,
  tierKey,
  windowSweep,
  type Written,
} from './feed-config-parts.ts'
import type { EventsFeedConfig, FeedFilters } from './feed-config.ts'

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
  .meta({ description: 'Severities for which the full event is fetched before rendering.' })
  .prefault([])

const filters = section(
  {
    severity: severityFilter.optional(),
    type: typeFilter.optional(),
    tags: list(text('Tag.'), 'Tags to fetch.', 'write tags, such as [vip]').optional(),
    is_ignored: flag('Only ignored events, or only others.').optional(),
    is_remediated: flag('Only remediated events, or only others.').optional(),
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

/** The events of an identifier group. */
export const eventsFeedConfig = section(
  {
    type: z.literal('events').meta({ description: 'Events of one identifier group.' }),
    identifier_group: wholeNumber({ describe: 'Id of the identifier group.', min: 1 }),
    filters,
    ...commonKeys,
    tier: tierKey('search'),
    sweep: windowSweep('1h'),
    detail: detailKey,
    ...foreignKeys({
      severity: "remove the line: the event's own severity counts",
      identifier: 'write identifier_group and the id of a group',
      query: 'write identifier_group: events are read by identifier group',
      quota_reserve: 'remove the line: the events of an identifier group cost no quota',
      dedupe: 'remove the line: the top-level dedupe holds for events',
    }),
  },
  { describe: 'The events of an identifier group.', rules: [labelNames] },
).transform((file): Written<EventsFeedConfig> => ({
  type: file.type,
  identifierGroup: file.identifier_group,
  filters: file.filters,
  ...commonOf(file),
  sweep: file.sweep,
  detail: file.detail,
}))
