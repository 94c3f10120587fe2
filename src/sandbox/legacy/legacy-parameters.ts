/** The parameters of the legacy search, which both methods carry in the query string (facts.md 1, row 17). */
import { z } from 'zod'
import { isTimeZone } from '../../runtime/time-zone.ts'
import {
  legacyEventActions,
  legacySortKeys,
  legacyTypes,
  orders,
} from '../../service/wire/enumerations.ts'
import { instantOf } from '../api/search-body.ts'
import { LuceneError, parseLucene } from '../search/lucene.ts'

/** A key that is repeated, or values with commas between. */
function listOf<Value extends z.ZodType>(value: Value): z.ZodType<z.output<Value>[]> {
  const texts = z.union([z.string(), z.array(z.string())]).default([])
  return texts
    .transform((given) => [given].flat().flatMap((text) => text.split(',')))
    .pipe(z.array(value) as z.ZodType<z.output<Value>[], string[]>)
}

const word = z.string().min(1)
const flag = z
  .enum(['true', 'false', '1', '0'])
  .transform((text) => text === 'true' || text === '1')

const span = z.string().transform((text, context) => {
  const [since, until, ...rest] = text.split('@').map(instantOf)
  const isSpan = rest.length === 0 && Number.isFinite(since) && Number.isFinite(until)
  if (since !== undefined && until !== undefined && isSpan) return { since, until }
  context.addIssue('not of the form from@to, both of them timestamps')
  return z.NEVER
})

const lucene = z.string().transform((text, context) => {
  try {
    return text.trim() === '' ? null : parseLucene(text)
  } catch (error) {
    if (!(error instanceof LuceneError)) throw error
    context.addIssue(error.message)
    return z.NEVER
  }
})

/** Nothing public bounds `size`. Global policies and statistics are nothing that the sandbox has. */
export const legacyParameters = z.strictObject({
  fields: listOf(word),
  time: span.optional(),
  size: z.coerce.number().int().min(1).default(10),
  search_after: word.optional(),
  from: word.optional(),
  tags: listOf(word),
  tags_query_operator: z
    .string()
    .toUpperCase()
    .pipe(z.enum(['AND', 'OR']))
    .default('OR'),
  types: listOf(z.enum(legacyTypes)),
  experimental_types: listOf(word),
  event_action: z.enum(legacyEventActions).optional(),
  event_actions: listOf(z.enum(legacyEventActions)),
  risks: listOf(z.coerce.number().int().min(1).max(5)),
  order: z.enum(orders).default('desc'),
  sort_by: z.enum(legacySortKeys).default('created'),
  use_global_policies: flag.default(true),
  time_zone: z.string().refine(isTimeZone, 'not a time zone').optional(),
  query: lucene.default(null),
  has_modified_risk_score: flag.default(false),
  has_notes: flag.default(false),
})

export type LegacyParameters = z.infer<typeof legacyParameters>
