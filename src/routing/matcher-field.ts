import { z } from 'zod'
import { messageFor, refusal, wrongKind } from '../runtime/config-fields.ts'
import { MatcherError } from './matcher-error.ts'
import { parseMatcher, type Matcher } from './matcher.ts'

const matcherRemedy = `write a name, an operator and a value, such as 'severity>=high'`

/** One matcher of the configuration file, parsed. */
const matcher = z
  .string(wrongKind('a text', matcherRemedy))
  .meta({ examples: ['severity>=high', 'type="paste"'] })
  .transform((input, context): Matcher => {
    try {
      return parseMatcher(input)
    } catch (error) {
      if (!(error instanceof MatcherError)) throw error
      context.addIssue({ code: 'custom', message: messageFor(error) })
      return z.NEVER
    }
  })
  .meta({ description: 'name op value' })

/** A list of matchers that may be empty: of a route, where none means every event. */
export function matchersField(describe: string): z.ZodType<Matcher[]> {
  return z
    .array(matcher, wrongKind('a list', "write a list, such as ['severity>=high']"))
    .meta({ description: describe })
}

/** At least one matcher: where none would mean every event, and so hide too much. */
export function someMatchers(describe: string): z.ZodType<Matcher[]> {
  const remedy = `write matchers, such as ['type="paste"']`
  return z
    .array(matcher, wrongKind('a list', remedy))
    .min(1, messageFor(refusal('an empty list, which would mean every event', remedy)))
    .meta({ description: describe })
}
