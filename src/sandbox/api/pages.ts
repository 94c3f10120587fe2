/** Pages of scans: positions, opaque cursors, and every paging habit that the API has or may have. */
import { z } from 'zod'
import {
  firstAfter,
  firstAtOrAfter,
  type Placed,
  type Position,
  toPosition,
} from '../history/history.ts'
import { createRandom, type SandboxSettings } from '../options.ts'
import { Refusal } from './routes.ts'

/** One page of a scan over entries in order of position. */
interface PageRequest<Entry extends Placed> {
  /** What a cursor is valid for: the operation and its request, without cursor and page size. */
  scan: unknown
  entries: readonly Entry[]
  order?: 'asc' | 'desc' | undefined
  size: number
  from: string | null | undefined
  matches?: (entry: Entry) => boolean
  /** A hidden entry that matches still takes up a place, so the page gets shorter. */
  isHidden?: (entry: Entry) => boolean
}

export interface Page<Entry> {
  entries: Entry[]
  /** undefined: the answer has no such key. */
  next: string | null | undefined
}

export interface Pages {
  /** Throws a Refusal if the cursor is not one that was issued. */
  read<Entry extends Placed>(request: PageRequest<Entry>): Page<Entry>
  /** From now on refuses every cursor issued so far. */
  expireAll: () => void
  /** How many cursors came back with other parameters than they were issued for. */
  changedScans: () => number
}

/** Puts things in the order in which they are listed. */
export function inOrder<Thing extends object>(things: readonly Thing[]): (Thing & Placed)[] {
  return things.map((thing, index) => ({ ...thing, createdAtMs: index, uid: '' }))
}

export function toWirePage<Entry>(
  { entries, next }: Page<Entry>,
  show: (entry: Entry) => unknown,
): { items: unknown[]; next?: string | null } {
  const items = entries.map(show)
  return next === undefined ? { items } : { items, next }
}

const maxCursors = 50_000

export function createPages(settings: SandboxSettings): Pages {
  const random = createRandom(settings.seed + 2)
  let scansByCursor = new Map<string, Set<string>>()
  /** Expired cursors: a position alone, and together with its scan, since two scans may share one. */
  const expired = new Set<string>()
  let changed = 0

  function accept(cursor: string, scan: string): Position {
    const position = decodeCursor(cursor)
    const isExpired = expired.has(cursor) || expired.has(`${scan} ${cursor}`)
    if (!position || isExpired) throw new Refusal(400, 'bad cursor', { code: 'INVALID_CURSOR' })
    const scans = scansByCursor.get(cursor)
    if (scans && !scans.has(scan)) changed++
    return position
  }

  function issue(cursor: string, scan: string): string {
    expired.delete(cursor)
    expired.delete(`${scan} ${cursor}`)
    scansByCursor.set(cursor, (scansByCursor.get(cursor) ?? new Set()).add(scan))
    if (scansByCursor.size > maxCursors) {
      scansByCursor = new Map([...scansByCursor].slice(maxCursors / 2))
    }
    return cursor
  }

  /** How many of `size` places a page uses; 0: an empty page in mid-scan. */
  function usedSize(size: number): number {
    if (random.chance(settings.emptyPages)) return 0
    return size > 1 && random.chance(settings.shortPages) ? random.int(1, size - 1) : size
  }

  return {
    read(request) {
      const scan = canonicalJson(request.scan)
      const from = request.from ? accept(request.from, scan) : null
      const { entries, next } = takePage(request, from, usedSize(request.size))
      if (next === 'end') {
        const end = endCursor(settings.endMode, entries.at(-1), request.from ?? null)
        return { entries: shown(entries, request), next: end && issue(end, scan) }
      }
      return { entries: shown(entries, request), next: issue(encodeCursor(next), scan) }
    },
    expireAll() {
      for (const [cursor, scans] of scansByCursor) {
        expired.add(cursor)
        for (const scan of scans) expired.add(`${scan} ${cursor}`)
      }
      scansByCursor.clear()
    },
    changedScans: () => changed,
  }
}

function shown<Entry extends Placed>(
  entries: readonly Entry[],
  { isHidden = () => false }: PageRequest<Entry>,
): Entry[] {
  return entries.filter((entry) => !isHidden(entry))
}

/** The entries from a position on, up to `limit`, and where the next page begins. */
function takePage<Entry extends Placed>(
  request: PageRequest<Entry>,
  from: Position | null,
  limit: number,
): { entries: Entry[]; next: Position | 'end' } {
  const { entries, order, matches = () => true } = request
  const step = order === 'desc' ? -1 : 1
  const start = startIndex(entries, step, from)
  const taken: Entry[] = []
  for (let index = start; entries[index] !== undefined; index += step) {
    const entry = entries[index] as Entry
    if (!matches(entry)) continue
    if (taken.length < limit) {
      taken.push(entry)
      continue
    }
    const last = taken.at(-1)
    if (last) return { entries: taken, next: toPosition(last) }
    // never twice in a row, so that each scan ends
    if (from?.[1].endsWith('\u0000')) return takePage(request, from, request.size)
    return { entries: taken, next: nudgedPosition(entries[step === 1 ? start - 1 : start]) }
  }
  return { entries: taken, next: 'end' }
}

function startIndex(entries: readonly Placed[], step: 1 | -1, from: Position | null): number {
  if (step === 1) return from ? firstAfter(entries, from) : 0
  return from ? firstAtOrAfter(entries, from) - 1 : entries.length - 1
}

/** Encodes the same position differently: no uid lies between `u` and `u` + NUL. */
function nudgedPosition(below: Placed | undefined): Position {
  return below ? [below.createdAtMs, `${below.uid}\u0000`] : [0, '\u0000']
}

function endCursor(
  mode: SandboxSettings['endMode'],
  last: Placed | undefined,
  from: string | null,
): string | null | undefined {
  const next = last ? encodeCursor(toPosition(last)) : null
  switch (mode) {
    case 'full':
      return null
    case 'absent':
      return undefined
    case 'empty':
      return next
    case 'echo':
      return next ?? from
  }
}

const position = z.tuple([z.number(), z.string()])

/**
 * Encodes a position as the API's example decodes: the last item's creation time in ms and its uid
 * as JSON, in base64. It is URL-encoded then, although it travels in a JSON body.
 */
function encodeCursor(place: Position): string {
  return encodeURIComponent(Buffer.from(JSON.stringify(place)).toString('base64'))
}

/** Accepts a cursor only as it was issued, not one that lost its URL encoding; else null. */
function decodeCursor(cursor: string): Position | null {
  try {
    const text = Buffer.from(decodeURIComponent(cursor), 'base64').toString('utf8')
    const place = position.parse(JSON.parse(text))
    return encodeCursor(place) === cursor ? place : null
  } catch {
    return null
  }
}

/** The same text for the same values, whatever the order of their keys. */
function canonicalJson(value: unknown): string {
  return JSON.stringify(value, (_key, inner: unknown) =>
    typeof inner === 'object' && inner !== null && !Array.isArray(inner)
      ? Object.fromEntries(
          Object.entries(inner).toSorted(([left], [right]) => (left < right ? -1 : 1)),
        )
      : inner,
  )
}
