import { z } from 'zod'
import { isKnownSeverity, severities } from '../events/severity.ts'
import {
  duration,
  flag,
  isName,
  list,
  messageFor,
  name,
  nameRemedy,
  refusal,
  text,
  unknownWord,
  wholeNumber,
  word,
  wrongKind,
} from '../runtime/config-fields.ts'
import { byType, isSection, laterKeys, section, type Rule } from '../runtime/config-section.ts'
import type { Tier } from '../service/config.ts'

export interface FeedConfig {
  name: string
  type: 'events'
  account: string
  identifierGroup: number
  filters: FeedFilters
  everyMs: number
  lagObjectiveMs: number
  /** How far back the very first poll begins. */
  startMs: number
  /** Severities for which the full event is fetched before rendering. */
  detail: string[]
  tier: Tier
  labels: Record<string, string>
}

/** As the service takes them. A severity string means "this or higher", an array exactly these. */
export interface FeedFilters {
  severity?: string | string[]
  type?: string[]
  tags?: string[]
  is_ignored?: boolean
  is_remediated?: boolean
}

const severityRemedy = `write one of ${severities.join(', ')}, or a list of them`

const severityWord = z.string().meta({ enum: [...severities] })

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

const filters = section(
  {
    severity: severityFilter.optional(),
    type: list(
      text('Event type as the service names it; open.'),
      'Event types to fetch.',
      'write event types, such as [stealer_log]',
    ).optional(),
    tags: list(text('Tag.'), 'Tags to fetch.', 'write tags, such as [vip]').optional(),
    is_ignored: flag('Only ignored events, or only others.').optional(),
    is_remediated: flag('Only remediated events, or only others.').optional(),
  },
  { describe: 'What the service is asked for; nothing else arrives.' },
)
  .transform((file): FeedFilters => {
    const { severity, type, tags, is_ignored, is_remediated } = file
    return {
      ...(severity === undefined ? {} : { severity }),
      ...(type === undefined ? {} : { type }),
      ...(tags === undefined ? {} : { tags }),
      ...(is_ignored === undefined ? {} : { is_ignored }),
      ...(is_remediated === undefined ? {} : { is_remediated }),
    }
  })
  .prefault({})

const labelNames: Rule = (feed) =>
  (isSection(feed['labels']) ? Object.keys(feed['labels']) : [])
    .filter((label) => !isName(label))
    .map((label) => ({
      path: ['labels', label],
      problem: 'not a usable name',
      remedy: nameRemedy,
    }))

const eventsFeed = section(
  {
    type: z.literal('events').meta({ description: 'Events of one identifier group.' }),
    account: name('Account that reads it. May be left out where there is only one.').optional(),
    identifier_group: wholeNumber({ describe: 'Id of the identifier group.', min: 1 }),
    filters,
    every: duration('The longest time between polls.', '5s').prefault('60s'),
    lag_objective: duration(
      'How far behind it may fall. Default: the larger of 3 × every and 5m.',
    ).optional(),
    start: duration('How far back the very first poll begins.').prefault('24h'),
    detail: z
      .array(
        word(severities, 'Severity.'),
        wrongKind('a list', 'write severities, such as [high, critical]'),
      )
      .meta({ description: 'Severities for which the full event is fetched before rendering.' })
      .prefault([]),
    tier: word(['search', 'basic'], 'The limit that its pages count against.').prefault('search'),
    labels: z
      .record(
        z.string(),
        text('Value.'),
        wrongKind('a section', 'write names and texts, such as {team: brand}'),
      )
      .meta({ description: 'Names and texts that matchers can use.' })
      .prefault({}),
    ...laterKeys({
      sweep: 'a feed reads forward only and re-reads no trailing window',
      backlog: 'what the first poll finds is sent like everything else; shorten start for less',
      severity: "the event's own severity counts",
      identifier: 'a feed reads an identifier group, named by identifier_group',
      query: 'a feed reads an identifier group, named by identifier_group',
      quota_reserve: 'no feed of this version uses up a quota',
      dedupe: 'the top-level dedupe holds for every feed',
    }),
  },
  { describe: 'One stream of events that is polled.', rules: [labelNames] },
).transform((file): Omit<FeedConfig, 'name' | 'account'> & { account: string | undefined } => ({
  type: file.type,
  account: file.account,
  identifierGroup: file.identifier_group,
  filters: file.filters,
  everyMs: file.every,
  lagObjectiveMs: file.lag_objective ?? Math.max(3 * file.every, 5 * 60_000),
  startMs: file.start,
  detail: file.detail,
  tier: file.tier,
  labels: file.labels,
}))

const onlyEvents = 'a feed reads the events of an identifier group'

/** One feed of the file; its name is the key it stands under, its account may be left open. */
export const feedConfig = byType([eventsFeed], {
  known: ['events'],
  later: {
    credentials: onlyEvents,
    credential_search: onlyEvents,
    event_search: onlyEvents,
    legacy_search: onlyEvents,
  },
})
