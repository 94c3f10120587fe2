import type { Walk, WalkSpan } from '../ledger/feed-state.ts'

/** The request for a walk's next page. */
export function bodyWithCursor<Body>(walk: Walk): Body {
  const body = walk.body as unknown as Body
  return walk.cursor === null ? body : { ...body, from: walk.cursor }
}

/** A span as the searches take it, both ends included. */
export function timeFilter({ fromMs, toMs }: WalkSpan): { gte: string; lte?: string } {
  const gte = new Date(fromMs).toISOString()
  return toMs === undefined ? { gte } : { gte, lte: new Date(toMs).toISOString() }
}

/** Items that a walk asks for at once. */
export function pageSizeOf({ body }: Walk): number {
  return Number(body['size'])
}

/** Items that it asks for at once where no page is too large. */
export function usualSizeOf(walk: Walk): number {
  return walk.small?.usual ?? pageSizeOf(walk)
}
