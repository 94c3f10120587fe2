/** What the configuration of all types of feeds shares: the parsed form, and the keys. */
import { z } from 'zod'
import {
  duration,
  isName,
  isSection,
  name,
  nameRemedy,
  type Rule,
  section,
  text,
  wholeNumber,
  word,
  wrongKind,
} from '../../lib/config/config-fields.ts'
import type { Tier } from '../../upstream/config.ts'

export interface FeedCommon {
  name: string
  account: string
  /** The fixed interval; undefined for feeds that are polled by rate (`feeds/lanes/next-feed.ts`). */
  everyMs: number | undefined
  /** For feeds polled by rate: the longest interval that the operator states, if any. */
  longestMs: number | undefined
  /** undefined: it follows from how often the feed is polled. */
  lagObjectiveMs: number | undefined
  /** How far back the very first poll begins. */
  startMs: number
  /** Whether events of the first poll are sent as one summary or one by one. */
  initialPoll: 'summary' | 'send'
  /**
   * Severities for which the full event is fetched before rendering; empty for other feeds than
   * events.
   */
  detail: string[]
  /** The limit that its pages count against. */
  tier: Tier
  labels: Record<string, string>
  /** undefined: the feed is never rescanned. */
  rescan: RescanConfig | undefined
}

interface RescanConfig {
  /** Time between the starts of two whole rescans; undefined: as often as the budget allows. */
  everyMs: number | undefined
  /** How far back a rescan reads; 0 for a feed without a time filter, which is read whole. */
  backMs: number
}

/** A feed as the file has it, with the name that is its key there and the account that reads it. */
export type Named<Written extends Pick<FeedCommon, 'everyMs'>> = Omit<Written, keyof FeedCommon> &
  FeedCommon &
  Pick<Written, 'everyMs'>

/** The keys that every type of feed has. */
export const commonKeys = {
  account: name('Account that reads it. May be left out where there is only one.').optional(),
  lag_objective: duration(
    'How far behind it may fall. Default: the larger of 5m and 3 × the interval that the limit allows, or every.',
  ).optional(),
  start: duration('How far back the very first poll begins.').prefault('24h'),
  initial_poll: word(
    ['summary', 'send'],
    'What the first poll finds: one summary for people, or every event by itself.',
  ).prefault('summary'),
  labels: z
    .record(
      z.string(),
      text('Value.'),
      wrongKind('a section', 'write names and texts, such as {team: brand}'),
    )
    .meta({ description: 'Names and texts that matchers can use.' })
    .prefault({}),
}

/** For feeds of which each poll costs a search of the month's quota. */
export const quotaReserveKey = wholeNumber({
  describe: 'It stops before fewer searches of the month remain. 0: it may use them all.',
  min: 0,
}).prefault(0)

/** `every` of a feed that is polled at an interval of its own. */
export function intervalKey(usual: string): z.ZodType<number> {
  return duration('The longest time between polls.', '5s').prefault(usual)
}

type CommonFile = z.output<z.ZodObject<typeof commonKeys>> & {
  rescan: RescanConfig | undefined
  detail?: string[]
}
type CommonParts = Omit<FeedCommon, 'name' | 'account' | 'everyMs' | 'tier'> & {
  account: string | undefined
}

/** For a feed polled by rate; `every` and `lag_objective` bound its interval within the budget. */
export function ratePolledParts(
  file: CommonFile & { every?: number | undefined },
): CommonParts & { everyMs: undefined } {
  const stated = [file.every, file.lag_objective].filter((ms) => ms !== undefined)
  const longestMs = stated.length > 0 ? Math.min(...stated) : undefined
  return { ...commonParts(file), everyMs: undefined, longestMs }
}

/** For a feed with a fixed interval. */
export function fixedIntervalParts(
  file: CommonFile & { every: number },
): CommonParts & { everyMs: number } {
  return { ...commonParts(file), everyMs: file.every, longestMs: undefined }
}

function commonParts(file: CommonFile): Omit<CommonParts, 'longestMs'> {
  return {
    account: file.account,
    lagObjectiveMs: file.lag_objective,
    startMs: file.start,
    initialPoll: file.initial_poll,
    labels: file.labels,
    rescan: file.rescan,
    detail: file.detail ?? [],
  }
}

/** A section for one kind of query; its keys are those of the API. */
export function queryKind<const Type extends string, Shape extends z.core.$ZodLooseShape>(
  type: Type,
  describe: string,
  shape: Shape,
): z.ZodObject<Shape & { type: z.ZodLiteral<Type> }, z.core.$loose> {
  return section({ type: z.literal(type).meta({ description: describe }), ...shape }, { describe })
}

export const labelNames: Rule = (feed) =>
  (isSection(feed['labels']) ? Object.keys(feed['labels']) : [])
    .filter((label) => !isName(label))
    .map((label) => ({
      path: ['labels', label],
      problem: 'not a usable name',
      remedy: nameRemedy,
    }))

const rescanEvery = 'From the beginning of one rescan to the beginning of the next.'

/**
 * `rescan` of a feed that can be read by time. `every`: the default of its type; without one the
 * tier's budget decides (`feeds/rescan-plan.ts`).
 */
export function windowRescan(every?: string): z.ZodType<RescanConfig | undefined> {
  const interval = duration(
    every === undefined
      ? `${rescanEvery} Default: as often as the rate limit allows.`
      : rescanEvery,
    '10s',
  )
  const rescan = section(
    {
      every: every === undefined ? interval.optional() : interval.prefault(every),
      // at least 1h: the overlap of a new scan with the one before
      back: duration('How far back it reads.', '1h').prefault('7d'),
    },
    { describe: 'Reads a trailing window again, for what arrived late. false: never.' },
  ).transform((file): RescanConfig => ({ everyMs: file.every, backMs: file.back }))
  return sectionOrFalse(rescan, every === undefined ? '{back: 7d}' : `{every: ${every}, back: 7d}`)
}

/** `rescan` of a feed that cannot be read by time: it reads all, and nothing else finds what polls pass by. */
export function fullRescan(every: string): z.ZodType<RescanConfig> {
  return section(
    { every: duration(rescanEvery, '10s').prefault(every) },
    { describe: 'Reads the whole feed again, for what arrived late.' },
  )
    .transform((file): RescanConfig => ({ everyMs: file.every, backMs: 0 }))
    .prefault({})
}

/**
 * A section that may be replaced by `false` to switch it off. By default it has its own defaults.
 */
function sectionOrFalse<Output>(
  content: z.ZodType<Output>,
  example: string,
): z.ZodType<Output | undefined> {
  const remedy = `write its keys, such as ${example}, or false for none`
  const { $schema: _draft, ...written } = z.toJSONSchema(content, {
    io: 'input',
    target: 'draft-07',
  })
  // not a union: for a mistake inside the section it would report only that no member fits
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
    .prefault({})
}
