/** What a request for a report may say (facts.md 8), strictly as every body that the sandbox takes. */
import { z } from 'zod'
import { instantOf } from '../api/search-body.ts'
import { validationEntry } from '../error-bodies.ts'
import { timeRangeTypes, type ReportWish } from './sandbox-report.ts'

const time = z.string().refine((text) => !Number.isNaN(instantOf(text)), 'not a date-time')
const keywords = z.array(z.string().min(1)).nullish()

const reportBody = z
  .strictObject({
    report_title: z.string().min(1),
    question: z.string().nullish(),
    time_range_type: z.enum(timeRangeTypes).default('all'),
    time_range_from: time.nullish(),
    time_range_to: time.nullish(),
    included_keywords: keywords,
    excluded_keywords: keywords,
  })
  .refine((body) => body.time_range_type !== 'range' || body.time_range_from, {
    path: ['time_range_from'],
    message: 'required with time_range_type range',
  })

/** The wish, or the `detail` of a 422. */
export function parseReportBody(
  body: unknown,
): { wish: ReportWish } | { detail: Record<string, unknown>[] } {
  const parsed = reportBody.safeParse(body ?? {})
  if (parsed.success) return { wish: wishOf(parsed.data) }
  return {
    detail: parsed.error.issues.map(({ path, message }) =>
      validationEntry(['body', ...path.map(String)], message),
    ),
  }
}

function wishOf(body: z.infer<typeof reportBody>): ReportWish {
  return {
    title: body.report_title,
    question: body.question ?? null,
    range: body.time_range_type,
    fromMs: body.time_range_from ? instantOf(body.time_range_from) : null,
    toMs: body.time_range_to ? instantOf(body.time_range_to) : null,
    includes: body.included_keywords ?? [],
    excludes: body.excluded_keywords ?? [],
  }
}
