import type { Position } from '../history/history.ts'
import type { CursorWatch } from './cursor-watch.ts'
import { decodeCursor } from './cursor.ts'

/** Where a walk goes on, by the cursor that came; null: it begins. */
export function placeOf(
  from: string | null,
  walk: unknown,
  cursors: CursorWatch,
): Position | 'refused' | null {
  if (from === null) return null
  if (cursors.take(from, walk) === 'refused') return 'refused'
  return decodeCursor(from) ?? 'refused'
}
