/** The keys that all types of feeds have, or several. */
import { z } from 'zod'
import {
  duration,
  isName,
  name,
  nameRemedy,
  text,
  wholeNumber,
  word,
  wrongKind,
} from '../runtime/config-fields.ts'
import { foreignKeys, isSection, laterKeys, section, type Rule } from '../runtime/config-section.ts'
import type { Tier } from '../service/config.ts'
import type { AuditConfig, FeedCommon, SweepConfig } from './feed-config.ts'

/** A feed as one entry of the file says it: its name is its key, its account may be left open. */
export type Written<Feed extends FeedCommon> = Omit<Feed, 'name' | 'account'> & {
  account: string | undefined
}

/** `audit`: off unless it is asked for, since it reads again what was read already. */
const audit = section(
  {
    every: duration('From the end of one audit to the beginning of the next.', '1m').prefault(
      '24h',
    ),
    back: duration('How far back it compares.', '1h').prefault('7d'),
  },
  { describe: 'Compares what the service shows with the ledger, on spare requests.' },
).transform((file): AuditConfig => ({ everyMs: file.every, backMs: file.back }))

/** The keys of every feed but for `tier`. */
export const commonKeys = {
  account: name('Account that reads it. May be left out where there is only one.').optional(),
  audit: orFalse(audit, '{every: 24h, back: 7d}', false),
  lag_objective: duration(
    'How far behind it may fall. Default: the larger of 5m and 3 × the interval that the limit allows, or every.',
  ).optional(),
  start: duration('How far back the very first poll begins.').prefault('24h'),
  backlog: word(
    ['summarise', 'send'],
    'What the first poll finds: one summary for people, or every event by itself.',
  ).prefault('summarise'),
  labels: z
    .record(
      z.string(),
      text('Value.'),
      wrongKind('a section', 'write names and texts, such as {team: brand}'),
    )
    .meta({ description: 'Names and texts that matchers can use.' })
    .prefault({}),
}

/** Of feeds whose every poll costs a search of the month's quota. */
export const quotaReserveKey = wholeNumber({
  describe: 'It stops before fewer searches of the month remain. 0: it may use them all.',
  min: 0,
}).prefault(0)

/** `tier`, with the default of the type of feed. */
export function tierKey(usual: Tier): z.ZodType<Tier> {
  return word(['search', 'basic'], 'The limit that its pages count against.').prefault(usual)
}

type CommonFile = z.output<z.ZodObject<typeof commonKeys>> & { tier: Tier }
type CommonParts = Omit<Written<FeedCommon>, 'detail' | 'sweep' | 'everyMs'>

/** Of a feed that is read by rate: `every` and `lag_objective` bound its interval where they fit the budget. */
export function ruledOf(
  file: CommonFile & { every?: number | undefined },
): CommonParts & { everyMs: undefined } {
  const stated = [file.every, file.lag_objective].filter((ms) => ms !== undefined)
  return {
    ...partsOf(file),
    everyMs: undefined,
    longestMs: stated.length > 0 ? Math.min(...stated) : undefined,
    lagObjectiveMs: file.lag_objective,
  }
}

/** Of a feed that keeps its interval. */
export function commonOf(file: CommonFile & { every: number }): CommonParts & { everyMs: number } {
  return {
    ...partsOf(file),
    everyMs: file.every,
    longestMs: undefined,
    lagObjectiveMs: file.lag_objective,
  }
}

function partsOf(file: CommonFile): Omit<CommonParts, 'longestMs' | 'lagObjectiveMs'> {
  return {
    account: file.account,
    startMs: file.start,
    backlog: file.backlog,
    tier: file.tier,
    labels: file.labels,
    audit: file.audit,
  }
}

export const labelNames: Rule = (feed) =>
  (isSection(feed['labels']) ? Object.keys(feed['labels']) : [])
    .filter((label) => !isName(label))
    .map((label) => ({
      path: ['labels', label],
      problem: 'not a usable name',
      remedy: nameRemedy,
    }))

const sweepEvery = 'From the beginning of one sweep to the beginning of the next.'

/**
 * `sweep` of a feed that can be asked by time; `every` is the default of its type. Without one the budget
 * of the tier decides (rescan.ts).
 */
export function windowSweep(every?: string): z.ZodType<SweepConfig | undefined> {
  const interval = duration(
    every === undefined ? `${sweepEvery} Default: as often as the rate limit allows.` : sweepEvery,
    '10s',
  )
  const sweep = section(
    {
      every: every === undefined ? interval.optional() : interval.prefault(every),
      // 1h: the least by which a new walk overlaps the one before it (ledger rules, Walks)
      back: duration('How far back it reads.', '1h').prefault('7d'),
      ...laterKeys({ by: 'a sweep goes by when an event was created' }),
    },
    { describe: 'Reads a trailing window again, for what arrived late. false: never.' },
  ).transform((file): SweepConfig => ({ everyMs: file.every, backMs: file.back }))
  return orFalse(sweep, every === undefined ? '{back: 7d}' : `{every: ${every}, back: 7d}`)
}

/** `sweep` of a feed that cannot be asked by time. */
export function fullSweep(every: string): z.ZodType<SweepConfig | undefined> {
  const sweep = section(
    {
      every: duration(sweepEvery, '10s').prefault(every),
      ...foreignKeys({
        back: 'remove the line: the service takes no times for this feed, so a sweep reads all of it',
      }),
    },
    { describe: 'Reads the whole feed again, for what arrived late. false: never.' },
  ).transform((file): SweepConfig => ({ everyMs: file.every, backMs: 0 }))
  return orFalse(sweep, '{every: 24h}')
}

/** A section, by default with its defaults; `false` in its place switches off what it sets. */
export function orFalse<Output>(
  content: z.ZodType<Output>,
  example: string,
  usual: object | false = {},
): z.ZodType<Output | undefined> {
  const remedy = `write its keys, such as ${example}, or false for none`
  const { $schema: _draft, ...written } = z.toJSONSchema(content, {
    io: 'input',
    target: 'draft-07',
  })
  // One schema, not a union: that would say of a mistake inside only that neither fits.
  return z
    .unknown()
    .meta({ anyOf: [{ const: false }, written] })
    .transform((input, context): Output | undefined => {
      if (input === false || input === 'false') return undefined
      if (!isSection(input)) {
        const problem = wrongKind('a section or false', remedy).error({ input })
        context.addIssue({ code: 'custom', message: problem })
        return z.NEVER
      }
      const parsed = content.safeParse(input)
      for (const { path, message } of parsed.error?.issues ?? []) {
        context.addIssue({ code: 'custom', path, message })
      }
      return parsed.data
    })
    .prefault(usual)
}
