import type { WireSearchPage } from '../../service/wire/page.ts'
import { encodeCursor } from './cursor.ts'
import type { NextPlace } from './page.ts'

/** A page as it travels; `from` is the cursor that was sent. */
export function wirePage(
  items: unknown[],
  next: NextPlace,
  from: string | null,
): Pick<WireSearchPage, 'items' | 'next'> {
  if (next === undefined) return { items }
  if (next === null || next === 'same') return { items, next: next === 'same' ? from : null }
  return { items, next: encodeCursor(next) }
}
