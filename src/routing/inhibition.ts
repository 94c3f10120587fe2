/**
 * Inhibition: an event that says more (the source) keeps back, for a window of time, those that say
 * the same in a smaller voice (the targets). Whoever remembers keys asks here which ones an event
 * sets as a source, and which one would keep it back as a target.
 */
import { createHash } from 'node:crypto'
import { z } from 'zod'
import { isKnownSeverity } from '../event.ts'
import {
  duration,
  messageFor,
  name,
  refusal,
  section,
  text,
  wrongKind,
} from '../lib/config-fields.ts'
import { type Matcher, requiredMatchers } from './matcher.ts'
import { allMatch, type RoutableEvent, valueSet } from './router.ts'

export interface InhibitRule {
  /** As given, or its place, e.g. `inhibit.1`. */
  name: string
  sourceMatchers: Matcher[]
  targetMatchers: Matcher[]
  /** Names under which source and target must have the same, and have something. */
  equal: string[]
  /** How long a source keeps targets back, ms. */
  windowMs: number
}

/** Longer, and a source of yesterday hides what is new today. */
const maxWindow = { text: '24h', ms: 86_400_000 }

const inhibitRule = section(
  {
    name: name('Its name where it kept something back. Default: its place.').optional(),
    source_matchers: requiredMatchers('Events that keep others back: all must match.'),
    target_matchers: requiredMatchers('Events that are kept back: all must match.'),
    equal: z
      .array(
        text('Name that matchers use.'),
        wrongKind('a list', 'write names, such as [identifier], or remove the line'),
      )
      .meta({ description: 'Only where source and target have the same under these names.' })
      .prefault([]),
    window: duration(
      `How long a source keeps targets back; at most ${maxWindow.text}.`,
      '1s',
    ).superRefine((windowMs, context) => {
      if (windowMs <= maxWindow.ms) return
      const message = messageFor(refusal('too long', `write ${maxWindow.text} or less`))
      context.addIssue({ code: 'custom', message })
    }),
  },
  { describe: 'Keeps back events while a more telling one is fresh.' },
)

/** The file's `inhibit_rules`. */
export const inhibitRulesConfig = z
  .array(
    inhibitRule,
    wrongKind('a list of rules', 'write each rule as an item that begins with "- "'),
  )
  .meta({ description: 'Which events keep others from being sent.' })
  .transform((rules) =>
    rules.map((rule, index): InhibitRule => ({
      name: rule.name ?? `inhibit.${index + 1}`,
      sourceMatchers: rule.source_matchers,
      targetMatchers: rule.target_matchers,
      equal: rule.equal,
      windowMs: rule.window,
    })),
  )

/** A rule's name, its window and 32 hex digits: the same for a source and the targets that it keeps back. */
export interface InhibitKey {
  rule: string
  key: string
  windowMs: number
}

/** What the event keeps back, each for `windowMs` from now on. What people closed keeps nothing back. */
export function sourceKeys(rules: readonly InhibitRule[], input: RoutableEvent): InhibitKey[] {
  const { ignoredAtMs, remediatedAtMs } = input.event
  if (ignoredAtMs !== null || remediatedAtMs !== null) return []
  return rules
    .filter((rule) => allMatch(rule.sourceMatchers, input) && hasEqualValues(rule, input))
    .map((rule) => inhibitKey(rule, input))
}

/**
 * What would keep the event back. One that is a source of a rule is never its target: two alerts could
 * otherwise keep back each other, and nobody would be told. Nor is one of an unknown severity.
 */
export function targetKeys(rules: readonly InhibitRule[], input: RoutableEvent): InhibitKey[] {
  if (!isKnownSeverity(input.event.severity)) return []
  return rules
    .filter(
      (rule) =>
        allMatch(rule.targetMatchers, input) &&
        !allMatch(rule.sourceMatchers, input) &&
        hasEqualValues(rule, input),
    )
    .map((rule) => inhibitKey(rule, input))
}

/** Where neither has anything under a name they are not equal in it. */
function hasEqualValues({ equal }: InhibitRule, input: RoutableEvent): boolean {
  return equal.every((asked) => valueSet(asked, input).some((value) => value !== ''))
}

/** Of the whole rule: a changed one starts with nothing kept back. */
function inhibitKey(rule: InhibitRule, input: RoutableEvent): InhibitKey {
  const values = rule.equal.map((asked) => valueSet(asked, input))
  const { name: rulesName, sourceMatchers, targetMatchers, equal, windowMs } = rule
  const matchers = [sourceMatchers, targetMatchers].map((side) => side.map((one) => one.text))
  const content = JSON.stringify([rulesName, ...matchers, equal, windowMs, values])
  const key = createHash('sha256').update(content).digest('hex').slice(0, 32)
  return { rule: rulesName, key, windowMs }
}
