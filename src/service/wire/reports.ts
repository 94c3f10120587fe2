import { z } from 'zod'

const text = z.string()
const nullableText = text.nullish()

/** A threat-flow report; what follows `format_type` comes only when it is asked for by its id. */
export const wireReport = z.looseObject({
  id: z.int(),
  title: nullableText,
  subtitle: nullableText,
  summary: nullableText,
  content: nullableText,
  tags: z.array(text).nullish().catch(null),
  highlights: z.array(text).nullish().catch(null),
  related_activity_uids: z.array(text).nullish().catch(null),
  created_at: nullableText,
  tenant_id: z.number().nullish(),
  format_type: nullableText,
  prompt_preset_uid: nullableText,
  published_at: nullableText,
  updated_at: nullableText,
  reading_time: z.number().nullish().catch(null),
  organization_id: z.number().nullish(),
  intel_type: nullableText,
})
export type WireReport = z.infer<typeof wireReport>

export const wireReportAnswer = z.looseObject({ report: wireReport })

/**
 * `processing`, then `completed` or `error` (facts.md 1, row 10); any other word counts as a failure
 * there. `report` is null until it is completed.
 */
export const wireReportRequest = z.looseObject({
  status: text,
  report: wireReport.nullish(),
})
export type WireReportRequest = z.infer<typeof wireReportRequest>
