import { z } from 'zod'
import { decodeCursor } from '../api/cursor.ts'
import { pageOf } from '../api/page.ts'
import { wirePage } from '../api/wire-page.ts'
import { comparePositions, positionOf, type Placed } from '../history/history.ts'
import type { EndMode } from '../options.ts'
import { parsedBy, refusal } from './refusal.ts'

/** At most 25, which is also the default (facts.md 2.3). */
const listQuery = z.object({
  from: z.string().optional(),
  size: z.coerce.number().int().min(1).max(25).default(25),
  order: z.enum(['asc', 'desc']).default('desc'),
})

/** One page of a list that public material alone knows: `{items, next}`. */
export function listPage<Entry extends Placed>(
  entries: readonly Entry[],
  query: unknown,
  { endMode, itemOf }: { endMode: EndMode; itemOf: (entry: Entry) => unknown },
): unknown {
  const { from = null, size, order } = parsedBy(listQuery, query, { version: 'v4', part: 'query' })
  const position = from === null ? null : decodeCursor(from)
  if (from !== null && !position) {
    throw refusal('v4', { status: 400, code: 'INVALID_CURSOR', message: 'bad cursor' })
  }
  const page = pageOf(
    entries.toSorted((a, b) => comparePositions(positionOf(a), positionOf(b))),
    { order, size, from: position, matches: () => true, isHidden: () => false },
    { endMode, placesOf: (places) => places },
  )
  return wirePage(page.items.map(itemOf), page.next, from)
}
