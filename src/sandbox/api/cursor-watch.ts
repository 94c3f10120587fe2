/**
 * Which cursors were handed out, and for which request: so that they can be refused on demand, and
 * so that a walk whose parameters change under its cursor is noticed (public documentation, paging).
 */
import { createHash } from 'node:crypto'
import { z } from 'zod'
import type { Keepable } from '../state/keepable.ts'

export interface CursorWatch extends Keepable {
  /** Notes what `cursor` was handed out for; `walk` is everything of the request but `from`. */
  handOut(cursor: string, walk: unknown): void
  /** 'refused': expired on demand. Counts a cursor that comes back with other parameters. */
  take(cursor: string, walk: unknown): 'taken' | 'refused'
  /** Every cursor handed out so far is refused from now on. */
  expireAll: () => void
  changedWalks: () => number
}

const keep = 50_000

export function createCursorWatch(): CursorWatch {
  let walksByCursor = new Map<string, Set<string>>()
  /** Cursors whoever brings them, and cursors as one walk has them: `handedTo`. */
  const expired = new Set<string>()
  let changedWalks = 0

  return {
    handOut(cursor, walk) {
      const digest = digestOf(walk)
      expired.delete(cursor)
      expired.delete(handedTo(digest, cursor))
      const walks = walksByCursor.get(cursor) ?? new Set()
      walksByCursor.set(cursor, walks.add(digest))
      if (walksByCursor.size > keep) walksByCursor = new Map([...walksByCursor].slice(keep / 2))
    },
    take(cursor, walk) {
      const digest = digestOf(walk)
      if (expired.has(cursor) || expired.has(handedTo(digest, cursor))) return 'refused'
      const walks = walksByCursor.get(cursor)
      if (walks && !walks.has(digest)) changedWalks++
      return 'taken'
    },
    expireAll() {
      for (const [cursor, walks] of walksByCursor) {
        expired.add(cursor)
        for (const digest of walks) expired.add(handedTo(digest, cursor))
      }
      walksByCursor.clear()
    },
    changedWalks: () => changedWalks,
    snapshot: () => ({
      walks: [...walksByCursor].map(([cursor, walks]) => [cursor, [...walks]]),
      expired: [...expired],
    }),
    restore(kept) {
      const state = keptCursors.parse(kept)
      walksByCursor = new Map(state.walks.map(([cursor, walks]) => [cursor, new Set(walks)]))
      for (const cursor of state.expired) expired.add(cursor)
    },
  }
}

const keptCursors = z.object({
  walks: z.array(z.tuple([z.string(), z.array(z.string())])),
  expired: z.array(z.string()),
})

/** Two walks may be handed the same cursor: it is a place, and names no walk. */
function handedTo(digest: string, cursor: string): string {
  return `${digest} ${cursor}`
}

function digestOf(walk: unknown): string {
  return createHash('sha256').update(canonical(walk)).digest('base64')
}

function canonical(value: unknown): string {
  return JSON.stringify(value, (_key, inner: unknown) =>
    typeof inner === 'object' && inner !== null && !Array.isArray(inner)
      ? Object.fromEntries(
          Object.entries(inner).toSorted(([left], [right]) => (left < right ? -1 : 1)),
        )
      : inner,
  )
}
