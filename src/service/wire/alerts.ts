import { z } from 'zod'

const text = z.string()
const nullableText = text.nullish()

/** How an asset group is alerted on. The unit of `frequency` is not published. */
export const wireAlert = z.looseObject({
  id: z.int(),
  type: nullableText,
  name: nullableText,
  frequency: z.number().nullish(),
  start_at: nullableText,
  params: z.record(text, z.unknown()).nullish(),
  feed_url: nullableText,
  feed_target_type: nullableText,
  feed_target_id: z.number().nullish(),
  created_at: nullableText,
  tenant_id: z.number().nullish(),
  organization_id: z.number().nullish(),
  search_types: z.array(text).nullish(),
  experimental_search_types: z.array(text).nullish(),
  risks: z.array(z.number()).nullish(),
  tenant_alert_channel_id: z.number().nullish(),
})
export type WireAlert = z.infer<typeof wireAlert>

/** One alert or a list of them: the description says an object, callers see lists (facts.md 2.6). */
export const wireAlertsAnswer = z.looseObject({
  alerts: z.union([z.array(wireAlert), wireAlert.transform((alert) => [alert])]).nullish(),
})
