import { createHash } from 'node:crypto'
import { z } from 'zod'
import type { WireSearchPage } from '../../upstream/resources/page.ts'
import {
  firstAfter,
  firstAtOrAfter,
  type Placed,
  type Position,
  toPosition,
} from '../history/history.ts'
import { createRandom, type EndMode, type SandboxSettings } from '../options.ts'
import type { Persistent } from '../state/data-folder.ts'

const positionSchema = z.tuple([z.number(), z.string()])

/**
 * As the service's example decodes: the last item's creation in milliseconds and its uid, JSON, base64,
 * then quoted for a URL, although it travels in a JSON body.
 */
export function encodeCursor(position: Position): string {
  return encodeURIComponent(Buffer.from(JSON.stringify(position)).toString('base64'))
}

/** null: not a cursor of this service. */
export function decodeCursor(cursor: string): Position | null {
  try {
    const text = Buffer.from(decodeURIComponent(cursor), 'base64').toString('utf8')
    return positionSchema.parse(JSON.parse(text))
  } catch {
    return null
  }
}

/** Where a walk goes on, by the cursor that came; null: it begins. */
export function resolveCursor(
  from: string | null,
  walk: unknown,
  cursors: CursorWatch,
): Position | 'refused' | null {
  if (from === null) return null
  if (cursors.accept(from, walk) === 'refused') return 'refused'
  return decodeCursor(from) ?? 'refused'
}

/**
 * Remembers for which request each cursor was handed out. Cursors can then be refused on demand, and a walk is
 * noticed that changes its parameters, which it must not (docs/api-notes.md, Cursors and order).
 */

export interface CursorWatch extends Persistent {
  /** Notes what `cursor` was handed out for; `walk` is everything of the request but `from`. */
  issue(cursor: string, walk: unknown): void
  /** 'refused': expired on demand. Counts a cursor that comes back with other parameters. */
  accept(cursor: string, walk: unknown): 'taken' | 'refused'
  /** Every cursor handed out so far is refused from now on. */
  expireAll: () => void
  changedWalks: () => number
}

const maxCursors = 50_000

export function createCursorWatch(): CursorWatch {
  let walksByCursor = new Map<string, Set<string>>()
  /** Cursors whoever brings them, and cursors as one walk has them: `scanCursorKey`. */
  const expired = new Set<string>()
  let changedWalks = 0

  return {
    issue(cursor, walk) {
      const digest = digestRequest(walk)
      expired.delete(cursor)
      expired.delete(scanCursorKey(digest, cursor))
      const walks = walksByCursor.get(cursor) ?? new Set()
      walksByCursor.set(cursor, walks.add(digest))
      if (walksByCursor.size > maxCursors)
        walksByCursor = new Map([...walksByCursor].slice(maxCursors / 2))
    },
    accept(cursor, walk) {
      const digest = digestRequest(walk)
      if (expired.has(cursor) || expired.has(scanCursorKey(digest, cursor))) return 'refused'
      const walks = walksByCursor.get(cursor)
      if (walks && !walks.has(digest)) changedWalks++
      return 'taken'
    },
    expireAll() {
      for (const [cursor, walks] of walksByCursor) {
        expired.add(cursor)
        for (const digest of walks) expired.add(scanCursorKey(digest, cursor))
      }
      walksByCursor.clear()
    },
    changedWalks: () => changedWalks,
    snapshot: () => ({
      walks: [...walksByCursor].map(([cursor, walks]) => [cursor, [...walks]]),
      expired: [...expired],
    }),
    restore(snapshot) {
      const state = cursorsSnapshot.parse(snapshot)
      walksByCursor = new Map(state.walks.map(([cursor, walks]) => [cursor, new Set(walks)]))
      for (const cursor of state.expired) expired.add(cursor)
    },
  }
}

const cursorsSnapshot = z.object({
  walks: z.array(z.tuple([z.string(), z.array(z.string())])),
  expired: z.array(z.string()),
})

/** Two walks may be handed the same cursor: it is a place, and names no walk. */
function scanCursorKey(digest: string, cursor: string): string {
  return `${digest} ${cursor}`
}

function digestRequest(walk: unknown): string {
  return createHash('sha256').update(canonicalJson(walk)).digest('base64')
}

function canonicalJson(value: unknown): string {
  return JSON.stringify(value, (_key, inner: unknown) =>
    typeof inner === 'object' && inner !== null && !Array.isArray(inner)
      ? Object.fromEntries(
          Object.entries(inner).toSorted(([left], [right]) => (left < right ? -1 : 1)),
        )
      : inner,
  )
}

/** One page of a walk over sorted events, with every habit that the service's paging has or may have. */

interface PageRequest<Entry extends Placed> {
  order: 'asc' | 'desc'
  size: number
  from: Position | null
  matches(event: Entry): boolean
  /** An event that matches but is hidden takes its place in the page: the page gets shorter. */
  isHidden(event: Entry): boolean
}

export interface PageHabits {
  endMode: EndMode
  /** How many of `size` places this page uses; 0: an empty page in mid-walk. */
  usedSize: (size: number) => number
}

interface Page<Entry extends Placed> {
  items: Entry[]
  /** undefined: the key is absent; 'same': the cursor that was sent. */
  next: NextCursor
}

export type NextCursor = Position | 'same' | null | undefined

export function takePage<Entry extends Placed>(
  events: readonly Entry[],
  request: PageRequest<Entry>,
  { endMode, usedSize }: PageHabits,
): Page<Entry> {
  const step = request.order === 'asc' ? 1 : -1
  const start = startIndex(events, request)
  const window: Entry[] = []
  const limit = usedSize(request.size)
  let index = start
  let hasMore = false
  for (; events[index] !== undefined && !hasMore; index += step) {
    const event = events[index] as Entry
    if (!request.matches(event)) continue
    if (window.length < limit) window.push(event)
    else hasMore = true
  }
  const last = window.at(-1)
  const items = window.filter((event) => !request.isHidden(event))
  if (!hasMore) return { items, next: endCursor(endMode, last, request.from) }
  if (last) return { items, next: toPosition(last) }
  if (isNudged(request.from))
    return takePage(events, request, { endMode, usedSize: (size) => size })
  return { items, next: nudgedPosition(events, start, step) }
}

function startIndex(
  events: readonly Placed[],
  { order, from }: Pick<PageRequest<Placed>, 'order' | 'from'>,
): number {
  if (order === 'asc') return from ? firstAfter(events, from) : 0
  return from ? firstAtOrAfter(events, from) - 1 : events.length - 1
}

function endCursor(endMode: EndMode, last: Placed | undefined, from: Position | null): NextCursor {
  switch (endMode) {
    case 'full':
      return null
    case 'absent':
      return undefined
    case 'empty':
      return last ? toPosition(last) : null
    case 'echo':
      if (last) return toPosition(last)
      return from ? 'same' : null
  }
}

/** A cursor that says the same place in other words: no uid lies between `u` and `u` + NUL. */
function nudgedPosition(events: readonly Placed[], start: number, step: 1 | -1): Position {
  const below = events[step === 1 ? start - 1 : start]
  return below ? [below.createdAtMs, `${below.uid}\u0000`] : [0, '\u0000']
}

function isNudged(from: Position | null): boolean {
  return from?.[1].endsWith('\u0000') === true
}

/** The habits that the settings ask for; by the same `seed` the same pages are short or empty. */
export function createPageHabits(settings: SandboxSettings, seed: number): PageHabits {
  const random = createRandom(seed)
  return {
    endMode: settings.endMode,
    usedSize(size) {
      if (random.chance(settings.emptyPages)) return 0
      return size > 1 && random.chance(settings.shortPages) ? random.int(1, size - 1) : size
    },
  }
}

/** A page as it travels; `from` is the cursor that was sent. */
export function wirePage(
  items: unknown[],
  next: NextCursor,
  from: string | null,
): Pick<WireSearchPage, 'items' | 'next'> {
  if (next === undefined) return { items }
  if (next === null || next === 'same') return { items, next: next === 'same' ? from : null }
  return { items, next: encodeCursor(next) }
}
