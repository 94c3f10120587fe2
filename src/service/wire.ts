/**
 * The wire format, shared by the client and the sandbox: lenient where the service may grow (unknown
 * fields, types and severities pass), exact in what Tocsin reads. Shapes: service.md; gaps: facts.md.
 */
import { z } from 'zod'

const text = z.string()
const nullableText = z.string().nullish()

export const wireTokenGrant = z.looseObject({ token: z.string().min(1) })
export type WireTokenGrant = z.infer<typeof wireTokenGrant>

export const wireTokenTest = z.looseObject({
  tenant_id: z.number().nullish(),
  api_key_id: z.number().nullish(),
  organization_id: z.number().nullish(),
  user_id: z.number().nullish(),
  user_email: nullableText,
  scopes: z.array(text).nullish(),
})
export type WireTokenTest = z.infer<typeof wireTokenTest>

/** One page of a search. Items stay unknown: each is parsed alone, so that one bad item blocks none. */
export const wireSearchPage = z.looseObject({
  items: z.array(z.unknown()),
  next: nullableText,
})
export type WireSearchPage = z.infer<typeof wireSearchPage>

export const wireSearchItem = z.looseObject({
  metadata: z.looseObject({
    uid: z.string().min(1),
    type: nullableText,
    severity: nullableText,
    estimated_created_at: nullableText,
    matched_at: nullableText,
    flare_url: nullableText,
  }),
  tenant_metadata: z
    .looseObject({
      severity: z.looseObject({ original: nullableText, override: nullableText }).nullish(),
      tags: z.array(text).nullish(),
      notes: nullableText,
      ignored_at: nullableText,
      remediated_at: nullableText,
    })
    .nullish(),
  // an ornament: an odd one must not keep the event back
  highlights: z.record(z.string(), z.array(text)).nullish().catch(null),
  identifiers: z.array(z.looseObject({ id: z.number(), name: text })).nullish(),
})
export type WireSearchItem = z.infer<typeof wireSearchItem>

/** The full event: bare, or wrapped as `activity` by older servers (facts.md 3, event detail). */
export const wireFullEvent = z.looseObject({
  event_type: nullableText,
  metadata: z.looseObject({ uid: nullableText }).nullish(),
  data: z.record(z.string(), z.unknown()).nullish(),
})
export type WireFullEvent = z.infer<typeof wireFullEvent>

/** The body of both v4 event searches. `from` moves; everything else of a walk never changes. */
export interface WireSearchBody {
  query?: Record<string, unknown>
  size: number
  order: 'asc' | 'desc'
  from?: string
  filters: {
    severity?: string | string[]
    type?: string[]
    tags?: string[]
    is_ignored?: boolean
    is_remediated?: boolean
    estimated_created_at?: { gt?: string; gte?: string; lt?: string; lte?: string }
  }
}
