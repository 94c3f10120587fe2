/**
 * Inhibition: for a window of time, a source event suppresses target events that say the same less
 * clearly. The caller stores keys; this file says which keys an event sets as a source, and which
 * keys would suppress it as a target.
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
} from '../lib/config/config-fields.ts'
import { type Matcher, requiredMatchers } from './matcher.ts'
import { allMatch, type RoutableEvent, valueSet } from './router.ts'

export interface InhibitRule {
  /** As given, or its place, e.g. `inhibit.1`. */
  name: string
  sourceMatchers: Matcher[]
  targetMatchers: Matcher[]
  /** Names under which source and target must have the same, non-empty values. */
  equal: string[]
  /** How long a source suppresses its targets, ms. */
  windowMs: number
}

/** With a longer window, yesterday's source would hide what is new today. */
const maxWindow = { text: '24h', ms: 86_400_000 }

const inhibitRule = section(
  {
    name: name('Its name where it suppressed something. Default: its place.').optional(),
    source_matchers: requiredMatchers('Events that suppress others: all must match.'),
    target_matchers: requiredMatchers('Events that are suppressed: all must match.'),
    equal: z
      .array(
        text('Name that matchers use.'),
        wrongKind('a list', 'write names, such as [identifier], or remove the line'),
      )
      .meta({ description: 'Only where source and target have the same under these names.' })
      .prefault([]),
    window: duration(
      `How long a source suppresses targets; at most ${maxWindow.text}.`,
      '1s',
    ).superRefine((windowMs, context) => {
      if (windowMs <= maxWindow.ms) return
      const message = messageFor(refusal('too long', `write ${maxWindow.text} or less`))
      context.addIssue({ code: 'custom', message })
    }),
  },
  { describe: 'Suppresses events while a more telling one is fresh.' },
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

/** A rule's name, its window, and 32 hex digits that a source and its targets share. */
export interface InhibitKey {
  rule: string
  key: string
  windowMs: number
}

/** Keys that the event sets as a source for `windowMs` from now; none if people closed it. */
export function sourceKeys(rules: readonly InhibitRule[], input: RoutableEvent): InhibitKey[] {
  const { ignoredAtMs, remediatedAtMs } = input.event
  if (ignoredAtMs !== null || remediatedAtMs !== null) return []
  return rules
    .filter((rule) => allMatch(rule.sourceMatchers, input) && hasEqualValues(rule, input))
    .map((rule) => inhibitKey(rule, input))
}

/**
 * Keys that would suppress the event. A source of a rule is never its target: otherwise two alerts
 * could suppress each other and nobody would be notified. Events of an unknown severity are never
 * targets.
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

/** Two events that both have nothing under a name do not count as equal in it. */
function hasEqualValues({ equal }: InhibitRule, input: RoutableEvent): boolean {
  return equal.every((asked) => valueSet(asked, input).some((value) => value !== ''))
}

/** The key covers the whole rule: a changed rule starts with nothing suppressed. */
function inhibitKey(rule: InhibitRule, input: RoutableEvent): InhibitKey {
  const values = rule.equal.map((asked) => valueSet(asked, input))
  const { name: rulesName, sourceMatchers, targetMatchers, equal, windowMs } = rule
  const matchers = [sourceMatchers, targetMatchers].map((side) => side.map((one) => one.text))
  const content = JSON.stringify([rulesName, ...matchers, equal, windowMs, values])
  const key = createHash('sha256').update(content).digest('hex').slice(0, 32)
  return { rule: rulesName, key, windowMs }
}
