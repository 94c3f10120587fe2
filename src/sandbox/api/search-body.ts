/** The request bodies of event searches, strictly: what the service does not know is refused. */
import { z } from 'zod'
import { eventQuery } from '../../service/wire/events.ts'
import { validationEntry } from '../error-bodies.ts'

export const knownSeverities = ['info', 'low', 'medium', 'high', 'critical'] as const

const severity = z.enum(knownSeverities)
const time = z.string().refine((text) => !Number.isNaN(instantOf(text)), 'not a date-time')
const timeRange = z.strictObject({
  gt: time.optional(),
  gte: time.optional(),
  lt: time.optional(),
  lte: time.optional(),
})

const filters = {
  severity: z.union([severity, z.array(severity)]).nullish(),
  type: z.array(z.string()).nullish(),
  estimated_created_at: timeRange.nullish(),
  materialized_at: timeRange.nullish(),
}

const page = {
  size: z.int().min(1).max(10).default(10),
  order: z.enum(['asc', 'desc']).default('desc'),
  from: z.string().nullish(),
}

const searchBody = z.strictObject({
  query: eventQuery.nullish(),
  ...page,
  filters: z
    .strictObject({
      ...filters,
      tags: z.array(z.string()).nullish(),
      is_ignored: z.boolean().nullish(),
      is_remediated: z.boolean().nullish(),
    })
    .default({}),
})

const globalSearchBody = z.strictObject({
  query: eventQuery,
  ...page,
  filters: z.strictObject(filters).default({}),
})

export type SearchBody = z.infer<typeof searchBody>
export type TimeRange = z.infer<typeof timeRange>

/** Milliseconds since 1970; a time without a zone is UTC; NaN where it is no time. */
export function instantOf(text: string): number {
  const hasZone = /(Z|[+-]\d\d:?\d\d)$/i.test(text)
  return Date.parse(hasZone || !text.includes('T') ? text : `${text}Z`)
}

/** The body, or the `detail` of a 422. */
type Parsed = { body: SearchBody } | { detail: Record<string, unknown>[] }

/** Of a group's search, which may do without a query. */
export function parseSearchBody(body: unknown): Parsed {
  return parsedBy(searchBody, body)
}

/** Of a search over everything, where tags and the like mean nothing. */
export function parseGlobalSearchBody(body: unknown): Parsed {
  return parsedBy(globalSearchBody, body)
}

function parsedBy(schema: z.ZodType<SearchBody>, body: unknown): Parsed {
  const parsed = schema.safeParse(body ?? {})
  if (parsed.success) return { body: parsed.data }
  return {
    detail: parsed.error.issues.map((issue) =>
      validationEntry(['body', ...issue.path.map(locOf)], issue.message),
    ),
  }
}

function locOf(key: PropertyKey): string | number {
  return typeof key === 'number' ? key : String(key)
}
