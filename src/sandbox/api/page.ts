/** One page of a walk over sorted events, with every habit that the service's paging has or may have. */
import {
  firstAfter,
  firstAtOrAfter,
  positionOf,
  type Placed,
  type Position,
} from '../history/history.ts'
import type { EndMode } from '../options.ts'

export interface PageRequest<Entry extends Placed> {
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
  placesOf: (size: number) => number
}

export interface Page<Entry extends Placed> {
  items: Entry[]
  /** undefined: the key is absent; 'same': the cursor that was sent. */
  next: NextPlace
}

export type NextPlace = Position | 'same' | null | undefined

export function pageOf<Entry extends Placed>(
  events: readonly Entry[],
  request: PageRequest<Entry>,
  { endMode, placesOf }: PageHabits,
): Page<Entry> {
  const step = request.order === 'asc' ? 1 : -1
  const start = startOf(events, request)
  const window: Entry[] = []
  const places = placesOf(request.size)
  let index = start
  let follows = false
  for (; events[index] !== undefined && !follows; index += step) {
    const event = events[index] as Entry
    if (!request.matches(event)) continue
    if (window.length < places) window.push(event)
    else follows = true
  }
  const last = window.at(-1)
  const items = window.filter((event) => !request.isHidden(event))
  if (!follows) return { items, next: endOf(endMode, last, request.from) }
  if (last) return { items, next: positionOf(last) }
  if (isNudged(request.from)) return pageOf(events, request, { endMode, placesOf: (size) => size })
  return { items, next: nudgedBefore(events, start, step) }
}

function startOf(
  events: readonly Placed[],
  { order, from }: Pick<PageRequest<Placed>, 'order' | 'from'>,
): number {
  if (order === 'asc') return from ? firstAfter(events, from) : 0
  return from ? firstAtOrAfter(events, from) - 1 : events.length - 1
}

function endOf(endMode: EndMode, last: Placed | undefined, from: Position | null): NextPlace {
  switch (endMode) {
    case 'full':
      return null
    case 'absent':
      return undefined
    case 'empty':
      return last ? positionOf(last) : null
    case 'echo':
      if (last) return positionOf(last)
      return from ? 'same' : null
  }
}

/** A cursor that says the same place in other words: no uid lies between `u` and `u` + NUL. */
function nudgedBefore(events: readonly Placed[], start: number, step: 1 | -1): Position {
  const below = events[step === 1 ? start - 1 : start]
  return below ? [below.createdAtMs, `${below.uid}\u0000`] : [0, '\u0000']
}

function isNudged(from: Position | null): boolean {
  return from?.[1].endsWith('\u0000') === true
}
