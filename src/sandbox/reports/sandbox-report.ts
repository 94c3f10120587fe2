import { z } from 'zod'

export const timeRangeTypes = [
  'all',
  'last_24h',
  'last_2d',
  'last_7d',
  'last_1m',
  'last_3m',
  'last_6m',
  'range',
] as const

/** What a threat-flow report shall be about. */
const reportWish = z.object({
  title: z.string(),
  question: z.string().nullable(),
  range: z.enum(timeRangeTypes),
  /** Bounds of the range `range`; null: open. */
  fromMs: z.number().nullable(),
  toMs: z.number().nullable(),
  /** One of them at least, none of them; by words of the event, whatever their case. */
  includes: z.array(z.string()),
  excludes: z.array(z.string()),
})
export type ReportWish = z.infer<typeof reportWish>

/** A report as the sandbox holds it; the wire shape is made at each reading. */
const sandboxReport = z.object({
  id: z.int(),
  title: z.string(),
  subtitle: z.string().nullable(),
  summary: z.string(),
  /** Markdown. */
  content: z.string(),
  tags: z.array(z.string()),
  highlights: z.array(z.string()),
  relatedUids: z.array(z.string()),
  createdAtMs: z.number(),
  publishedAtMs: z.number().nullable(),
  tenantId: z.int().nullable(),
  organizationId: z.int().nullable(),
  formatType: z.string(),
  intelType: z.string(),
  presetUid: z.string().nullable(),
  readingMinutes: z.int(),
})
export type SandboxReport = z.infer<typeof sandboxReport>

/** A request for a report: `processing` until `readyAtMs`, then what `outcome` says. */
export const reportRequest = reportWish.extend({
  id: z.string(),
  reportId: z.int(),
  tenantId: z.int(),
  organizationId: z.int(),
  readyAtMs: z.number(),
  outcome: z.enum(['completed', 'error']),
  /** Written when it is first read; null until then. */
  report: sandboxReport.nullable(),
})
export type ReportRequest = z.infer<typeof reportRequest>
