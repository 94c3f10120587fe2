/** Reports as the service shows them: by the request that produced them, and in full by their id. */
import type { WireReport } from '../../service/wire/reports.ts'
import type { SandboxReport } from './sandbox-report.ts'

export function reportItemOf(report: SandboxReport): WireReport {
  return {
    id: report.id,
    title: report.title,
    subtitle: report.subtitle,
    summary: report.summary,
    content: report.content,
    tags: report.tags,
    highlights: report.highlights,
    related_activity_uids: report.relatedUids,
    created_at: timeOf(report.createdAtMs),
    tenant_id: report.tenantId,
    format_type: report.formatType,
  }
}

export function fullReportOf(report: SandboxReport): WireReport {
  const { publishedAtMs } = report
  return {
    ...reportItemOf(report),
    prompt_preset_uid: report.presetUid,
    published_at: publishedAtMs === null ? null : timeOf(publishedAtMs),
    updated_at: timeOf(report.createdAtMs),
    reading_time: report.readingMinutes,
    organization_id: report.organizationId,
    intel_type: report.intelType,
  }
}

/** Six digits and an offset, as the service was seen to write times. */
function timeOf(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, -1)}000+00:00`
}
