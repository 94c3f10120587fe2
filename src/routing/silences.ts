/**
 * Silences: which events are not sent, until when, and who decided it and why. A silence lasts at
 * most 30 days. It never hides an event above its maximum severity, or one with an unknown
 * severity.
 */
import { createHash } from 'node:crypto'
import { z } from 'zod'
import { isKnownSeverity, type KnownSeverity, severities, severityRank } from '../event.ts'
import {
  flag,
  isSection,
  refusal,
  type Refusal,
  type Rule,
  section,
  textField,
  word,
  wrongKind,
} from '../lib/config/config-fields.ts'
import { suggestion } from '../lib/errors.ts'
import { eventNames, type Matcher, requiredMatchers } from './matcher.ts'
import { allMatch, type RoutableEvent } from './router.ts'

export interface Silence {
  /** From the file: `c` and 8 hex digits of its content; of an operator: as chosen when it was made. */
  id: string
  /** All must hold. */
  matchers: Matcher[]
  /** Inclusive, ms. */
  startsAtMs: number
  /** Exclusive, ms. */
  endsAtMs: number
  owner: string
  reason: string
  /** Events of a higher severity are not silenced. */
  maxSeverity: KnownSeverity
  /** Machines get nothing of it either; else they get every event. */
  machines: boolean
  origin: 'config' | 'operator'
}

/** What is wrong with a silence; `place` is the key, e.g. `matchers.0`, `until`. */
export interface SilenceProblem {
  mistakes: (Refusal & { place: string })[]
}

const dayMs = 86_400_000

/** Longer than this, nobody remembers that it is there. */
export const maxSilenceMs = 30 * dayMs

/** Checks the length of each month; requires the seconds. */
const isoTime = z.iso.datetime({ offset: true })
const timeRemedy = 'write a date, a time and its offset, such as 2026-11-21T18:00:00+01:00 or …Z'

function timeField(describe: string): z.ZodType<number> {
  return textField({
    describe,
    remedy: timeRemedy,
    expected: 'a time',
    examples: ['2026-11-21T18:00:00+01:00', '2026-11-21T17:00Z'],
    parse: (input) => {
      const whole = input.replace(/(?<=T\d{2}:\d{2})(?=Z|[+-])/, ':00')
      return isoTime.safeParse(whole).success
        ? Date.parse(whole)
        : refusal('not a time with its offset', timeRemedy)
    },
  })
}

function note(describe: string, maxLength: number): z.ZodType<string> {
  const remedy = `write up to ${maxLength} characters, in one line`
  return textField({
    describe,
    remedy,
    parse: (input) =>
      input.length > maxLength || /\p{Cc}/u.test(input)
        ? refusal('not a short text', remedy)
        : input,
  })
}

const endsInTime: Rule = ({ starts: startsAtMs, until: endsAtMs }) => {
  if (typeof startsAtMs !== 'number' || typeof endsAtMs !== 'number') return []
  if (endsAtMs <= startsAtMs) {
    const remedy = 'write a later time than starts'
    return [{ path: ['until'], problem: 'ends before it begins', remedy }]
  }
  if (endsAtMs - startsAtMs <= maxSilenceMs) return []
  const latest = new Date(startsAtMs + maxSilenceMs).toISOString()
  const remedy = `write ${latest.replace('.000', '')} or earlier, and renew it while it is needed`
  return [{ path: ['until'], problem: 'more than 30 days after it begins', remedy }]
}

const silenceFile = section(
  {
    matchers: requiredMatchers('All of them must match.'),
    until: timeField('When it ends.'),
    starts: timeField('When it begins. Default: 30 days before its end.').optional(),
    owner: note('Who answers for it.', 100),
    reason: note('Why.', 500),
    max_severity: word(severities, 'The highest severity that it silences.'),
    machines: flag('Silence webhooks too, which get every event otherwise.').prefault(false),
  },
  { describe: 'What people are not sent until a time.', rules: [endsInTime] },
)

type SilenceFile = z.output<typeof silenceFile>

/**
 * The file's `silences`. Without `starts` a silence begins 30 days before its end. So it never
 * exceeds the limit, and its meaning does not depend on when the file is read.
 */
export const silencesConfig = z
  .array(
    silenceFile.transform((file): Silence => {
      const silence = toSilence(file, { id: '', origin: 'config' })
      return { ...silence, id: `c${silenceHash(silence)}` }
    }),
    wrongKind('a list of silences', 'write each silence as an item that begins with "- "'),
  )
  .meta({ description: 'What is not sent until a time, by whom and why.' })

function toSilence(file: SilenceFile, identity: Pick<Silence, 'id' | 'origin'>): Silence {
  const { matchers, starts, until, owner, reason, max_severity: maxSeverity, machines } = file
  const startsAtMs = starts ?? until - maxSilenceMs
  return {
    ...identity,
    matchers,
    startsAtMs,
    endsAtMs: until,
    owner,
    reason,
    maxSeverity,
    machines,
  }
}

function silenceHash(silence: Silence): string {
  return createHash('sha256').update(silenceText(silence)).digest('hex').slice(0, 8)
}

/** Finds the first silence that suppresses the event at `nowMs`. */
export function findSilence(
  silences: readonly Silence[],
  input: RoutableEvent,
  nowMs: number,
): Silence | undefined {
  const { severity } = input.event
  if (!isKnownSeverity(severity)) return undefined
  return silences.find(
    ({ startsAtMs, endsAtMs, maxSeverity, matchers }) =>
      startsAtMs <= nowMs &&
      nowMs < endsAtMs &&
      severityRank(severity) <= severityRank(maxSeverity) &&
      allMatch(matchers, input),
  )
}

export interface SilenceRequest {
  /** At most 40 of [a-z0-9_-]; not yet in use. */
  id: string
  matchers: readonly string[]
  /** Labels of all feeds: a matcher on any other name is refused as a mistake. */
  labels: readonly string[]
  /** From now, ms. */
  forMs: number
  owner: string
  reason: string
  severity: string
  machines: boolean
  nowMs: number
}

/** Creates a silence that begins now, or returns everything that is wrong with it. */
export function newSilence(request: SilenceRequest): Silence | SilenceProblem {
  const { id, matchers, labels, forMs, nowMs, ...said } = request
  const times = { starts: formatIso(nowMs), until: formatIso(nowMs + forMs) }
  const silence = parseFile({ id, matchers, ...times, ...said })
  if (isSilenceProblem(silence)) return silence
  const known = [...eventNames, ...labels]
  const mistakes = silence.matchers.flatMap(({ name }, index) => {
    if (known.includes(name)) return []
    const remedy = suggestion(name, known, 'write one of')
    const problem = 'neither a name of an event nor a label of a feed'
    return [{ place: `matchers.${index}`, problem, remedy }]
  })
  return mistakes.length > 0 ? { mistakes } : silence
}

export function isSilenceProblem(result: Silence | SilenceProblem): result is SilenceProblem {
  return 'mistakes' in result
}

/** Formats a silence for storage, deterministically. `parseSilence` reads it. */
export function silenceText(silence: Silence): string {
  const { id, matchers, startsAtMs, endsAtMs, owner, reason, maxSeverity, machines } = silence
  return JSON.stringify({
    id,
    matchers: matchers.map(({ text }) => text),
    starts: formatIso(startsAtMs),
    until: formatIso(endsAtMs),
    owner,
    reason,
    severity: maxSeverity,
    machines,
  })
}

/** Reads the parsed JSON of `silenceText`; the origin is `operator`. Never throws. */
export function parseSilence(json: unknown): Silence | SilenceProblem {
  return parseFile(isSection(json) ? json : {})
}

/** A stored silence says `severity` where the configuration says `max_severity`. */
function parseFile({
  id,
  severity,
  ...file
}: Readonly<Record<string, unknown>>): Silence | SilenceProblem {
  const parsed = silenceFile.safeParse({ ...file, max_severity: severity })
  const isUsable = typeof id === 'string' && /^[a-z0-9][a-z0-9_-]{0,39}$/.test(id)
  if (isUsable && parsed.success) return toSilence(parsed.data, { id, origin: 'operator' })
  const idMistake = {
    place: 'id',
    problem: 'not a usable id',
    remedy: 'write up to 40 lower-case letters, digits, "_" and "-"',
  }
  const mistakes = (parsed.error?.issues ?? []).map(({ path, message }) => {
    const [problem = '', remedy = ''] = message.split('\n')
    return {
      place: path.map(String).join('.').replace('max_severity', 'severity'),
      problem,
      remedy,
    }
  })
  return { mistakes: [...(isUsable ? [] : [idMistake]), ...mistakes] }
}

/** Returns an empty text if `ms` is not a valid time. */
function formatIso(ms: number): string {
  const date = new Date(ms)
  return Number.isNaN(date.getTime()) ? '' : date.toISOString()
}
