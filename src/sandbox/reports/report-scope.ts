/** Which events a report is about. */
import type { SandboxEvent } from '../history/sandbox-event.ts'
import type { ReportRequest, ReportWish } from './sandbox-report.ts'

const dayMs = 86_400_000

const spans: Record<Exclude<ReportWish['range'], 'all' | 'range'>, number> = {
  last_24h: dayMs,
  last_2d: 2 * dayMs,
  last_7d: 7 * dayMs,
  last_1m: 30 * dayMs,
  last_3m: 90 * dayMs,
  last_6m: 180 * dayMs,
}

/** Those of the request's tenant that had arrived when it was ready, by time and by words. */
export function isAbout(
  request: ReportRequest,
  tenantGroups: ReadonlySet<number>,
): (event: SandboxEvent) => boolean {
  const [fromMs, toMs] = boundsOf(request)
  const includes = request.includes.map(lowered)
  const excludes = request.excludes.map(lowered)
  return (event) => {
    const isThere =
      !('raw' in event) &&
      event.arrivedAtMs <= request.readyAtMs &&
      event.groupIds.some((id) => tenantGroups.has(id))
    if (!isThere || event.createdAtMs < fromMs || event.createdAtMs > toMs) return false
    if (includes.length === 0 && excludes.length === 0) return true
    const text = lowered(
      JSON.stringify([event.type, event.identifiers, event.highlights, event.data]),
    )
    const isIncluded = includes.length === 0 || includes.some((word) => text.includes(word))
    return isIncluded && !excludes.some((word) => text.includes(word))
  }
}

function boundsOf({ range, fromMs, toMs, readyAtMs }: ReportRequest): [number, number] {
  switch (range) {
    case 'all':
      return [-Infinity, Infinity]
    case 'range':
      return [fromMs ?? -Infinity, toMs ?? Infinity]
    case 'last_24h':
    case 'last_2d':
    case 'last_7d':
    case 'last_1m':
    case 'last_3m':
    case 'last_6m':
      return [readyAtMs - spans[range], readyAtMs]
  }
}

function lowered(text: string): string {
  return text.toLowerCase()
}
