/** The request bodies of event searches: refused is what the service refuses (OpenAPI v4, EventsPayload). */
import { z } from 'zod'
import { eventFilterTypes } from '../../service/wire/enumerations.ts'
import { eventQuery } from '../../service/wire/events.ts'
import { validationEntry } from '../error-bodies.ts'

export const knownSeverities = ['info', 'low', 'medium', 'high', 'critical'] as const

const severity = z.enum(knownSeverities)
const time = z.string().refine((text) => !Number.isNaN(instantOf(text)), 'not a date-time')
const timeRange = z.object({
  gt: time.nullish(),
  gte: time.nullish(),
  lt: time.nullish(),
  lte: time.nullish(),
})

const filters = z.object({
  severity: z.union([severity, z.array(severity)]).optional(),
  type: z.array(z.enum(eventFilterTypes)).optional(),
  estimated_created_at: timeRange.optional(),
  materialized_at: timeRange.optional(),
  tags: z.array(z.string()).optional(),
  is_ignored: z.boolean().optional(),
  is_remediated: z.boolean().optional(),
})

/** Fields that the service does not know are no reason to refuse, neither here nor in a body. */
const query = z.discriminatedUnion('type', eventQuery.options.map(stripped) as Kinds)

type Kinds = typeof eventQuery.options

function stripped(kind: Kinds[number]): z.ZodObject {
  return z.object(kind.shape)
}

const page = {
  size: z.int().min(1).max(10).default(10),
  order: z.enum(['asc', 'desc']).default('desc'),
  from: z.string().nullish(),
  filters: filters.default({}),
}

const searchBody = z.object({ query: query.nullish(), ...page })

const globalSearchBody = z.object({ query, ...page })

export type SearchBody = z.infer<typeof searchBody>
export type TimeRange = z.infer<typeof timeRange>

/** Milliseconds since 1970; a time without a zone is UTC; NaN where it is no time. */
export function instantOf(text: string): number {
  const hasZone = /(Z|[+-]\d\d:?\d\d)$/i.test(text)
  return Date.parse(hasZone || !text.includes('T') ? text : `${text}Z`)
}

/** The body, or the `detail` of a 422. */
type Parsed = { body: SearchBody } | { detail: Record<string, unknown>[] }

/** Of a search in what a tenant watches for, which may do without a query. */
export function parseSearchBody(body: unknown): Parsed {
  return parsedBy(searchBody, body)
}

/** Of a search over everything. */
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
