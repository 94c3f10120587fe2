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
 * Encodes a position as the API's example decodes: the last item's creation time in ms and its uid
 * as JSON, in base64, then URL-encoded although it travels in a JSON body.
 */
export function encodeCursor(position: Position): string {
  return encodeURIComponent(Buffer.from(JSON.stringify(position)).toString('base64'))
}

/** Returns null if it is not a cursor of the pretend service. */
export function decodeCursor(cursor: string): Position | null {
  try {
    const text = Buffer.from(decodeURIComponent(cursor), 'base64').toString('utf8')
    return positionSchema.parse(JSON.parse(text))
  } catch {
    return null
  }
}

/** Returns where a scan continues by its cursor; null if it begins. */
export function resolveCursor(
  from: string | null,
  scanQuery: unknown,
  cursors: CursorWatch,
): Position | 'refused' | null {
  if (from === null) return null
  if (cursors.accept(from, scanQuery) === 'refused') return 'refused'
  return decodeCursor(from) ?? 'refused'
}

/**
 * Remembers which request each cursor was issued for, so that cursors can be refused on demand, and
 * scans that change their parameters, which they must not, are noticed (docs/api-notes.md, Cursors
 * and order).
 */
export interface CursorWatch extends Persistent {
  /** Notes which request `cursor` was issued for; `scanQuery` is the whole request except `from`. */
  issue(cursor: string, scanQuery: unknown): void
  /**
   * Returns 'refused' if the cursor was expired on demand. Counts a cursor that comes back with
   * other parameters.
   */
  accept(cursor: string, scanQuery: unknown): 'taken' | 'refused'
  /** From now on refuses every cursor issued so far. */
  expireAll: () => void
  changedScans: () => number
}

const maxCursors = 50_000

export function createCursorWatch(): CursorWatch {
  let scansByCursor = new Map<string, Set<string>>()
  /**
   * Expired cursors, both by themselves and combined with the scan they belong to: `scanCursorKey`.
   */
  const expired = new Set<string>()
  let changedScans = 0

  return {
    issue(cursor, scanQuery) {
      const digest = digestRequest(scanQuery)
      expired.delete(cursor)
      expired.delete(scanCursorKey(digest, cursor))
      const scans = scansByCursor.get(cursor) ?? new Set()
      scansByCursor.set(cursor, scans.add(digest))
      if (scansByCursor.size > maxCursors)
        scansByCursor = new Map([...scansByCursor].slice(maxCursors / 2))
    },
    accept(cursor, scanQuery) {
      const digest = digestRequest(scanQuery)
      if (expired.has(cursor) || expired.has(scanCursorKey(digest, cursor))) return 'refused'
      const scans = scansByCursor.get(cursor)
      if (scans && !scans.has(digest)) changedScans++
      return 'taken'
    },
    expireAll() {
      for (const [cursor, scans] of scansByCursor) {
        expired.add(cursor)
        for (const digest of scans) expired.add(scanCursorKey(digest, cursor))
      }
      scansByCursor.clear()
    },
    changedScans: () => changedScans,
    snapshot: () => ({
      walks: [...scansByCursor].map(([cursor, scans]) => [cursor, [...scans]]),
      expired: [...expired],
    }),
    restore(snapshot) {
      const state = cursorsSnapshot.parse(snapshot)
      scansByCursor = new Map(state.walks.map(([cursor, scans]) => [cursor, new Set(scans)]))
      for (const cursor of state.expired) expired.add(cursor)
    },
  }
}

const cursorsSnapshot = z.object({
  walks: z.array(z.tuple([z.string(), z.array(z.string())])),
  expired: z.array(z.string()),
})

/** Two scans may get the same cursor: it names a position, not a scan. */
function scanCursorKey(digest: string, cursor: string): string {
  return `${digest} ${cursor}`
}

function digestRequest(scanQuery: unknown): string {
  return createHash('sha256').update(canonicalJson(scanQuery)).digest('base64')
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

/** One page of a scan over sorted events, with every paging habit that the API has or may have. */
interface PageRequest<Entry extends Placed> {
  order: 'asc' | 'desc'
  size: number
  from: Position | null
  matches(event: Entry): boolean
  /** A hidden event that matches still takes up a place, so the page gets shorter. */
  isHidden(event: Entry): boolean
}

export interface PageHabits {
  endMode: EndMode
  /** How many of `size` places this page uses; 0: an empty page in mid-scan. */
  usedSize: (size: number) => number
}

interface Page<Entry extends Placed> {
  items: Entry[]
  /** undefined: without the key; 'same': the cursor that was sent. */
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

/** Encodes the same position differently: no uid lies between `u` and `u` + NUL. */
function nudgedPosition(events: readonly Placed[], start: number, step: 1 | -1): Position {
  const below = events[step === 1 ? start - 1 : start]
  return below ? [below.createdAtMs, `${below.uid}\u0000`] : [0, '\u0000']
}

function isNudged(from: Position | null): boolean {
  return from?.[1].endsWith('\u0000') === true
}

/** The paging habits of the settings. The same `seed` makes the same pages short or empty. */
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

/** Returns a page in wire format; `from` is the cursor that was sent. */
export function wirePage(
  items: unknown[],
  next: NextCursor,
  from: string | null,
): Pick<WireSearchPage, 'items' | 'next'> {
  if (next === undefined) return { items }
  if (next === null || next === 'same') return { items, next: next === 'same' ? from : null }
  return { items, next: encodeCursor(next) }
}
