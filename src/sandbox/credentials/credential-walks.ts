/** Pages of walks over credentials, whatever their order: opaque cursors, and who misuses them. */
import { createCursorWatch } from '../api/cursor-watch.ts'
import { decodeCursor, encodeCursor } from '../api/cursor.ts'
import { createPageHabits } from '../api/page-habits.ts'
import { pageOf, type NextPlace } from '../api/page.ts'
import type { Position } from '../history/history.ts'
import type { SandboxSettings } from '../options.ts'
import type { Keepable } from '../state/keepable.ts'
import type { PlacedCredential } from './credential-order.ts'
import type { SandboxCredential } from './sandbox-credential.ts'

export interface CredentialWalks {
  /** null: the cursor is refused. */
  read(page: CredentialPageRequest): CredentialPage | null
  expireCursors: () => void
  changedWalks: () => number
  cursors: Keepable
}

export interface CredentialPageRequest {
  /** Everything of the request but the cursor, which is good for no other. */
  walk: unknown
  entries: readonly PlacedCredential[]
  order: 'asc' | 'desc'
  size: number
  from: string | null
  matches: (credential: SandboxCredential) => boolean
}

export interface CredentialPage {
  shown: SandboxCredential[]
  next: NextPlace
}

export function createCredentialWalks(settings: SandboxSettings): CredentialWalks {
  const habits = createPageHabits(settings, settings.seed + 5)
  const cursors = createCursorWatch()

  return {
    cursors,
    expireCursors: cursors.expireAll,
    changedWalks: cursors.changedWalks,
    read({ walk, entries, order, size, from, matches }) {
      const position = from === null ? null : positionIn(from)
      if (from !== null && (!position || cursors.take(from, walk) === 'refused')) return null
      const request = {
        order,
        size,
        from: position,
        matches: ({ credential }: PlacedCredential) => matches(credential),
        isHidden: () => false,
      }
      const { items, next } = pageOf(entries, request, habits)
      if (next && next !== 'same') cursors.handOut(encodeCursor(next), walk)
      return { shown: items.map(({ credential }) => credential), next }
    },
  }
}

/** Exactly as it was handed out: one that was not quoted once more in a URL is another one. */
function positionIn(cursor: string): Position | null {
  const position = decodeCursor(cursor)
  return position && encodeCursor(position) === cursor ? position : null
}
