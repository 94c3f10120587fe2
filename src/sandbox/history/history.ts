/** Every event of the sandbox, in order of creation per group and in order of arrival over all. */
import type { SandboxGroup } from '../options.ts'

/** A place in the order of an event search: creation in milliseconds, then uid by code units. */
export type Position = readonly [createdAtMs: number, uid: string]

/** Whatever has a place in such an order. */
export type Placed = Pick<SandboxEvent, 'createdAtMs' | 'uid'>

export interface History {
  /** Throws where a uid is already there. */
  add(events: readonly SandboxEvent[]): void
  /** Changes what the next readings show; throws where there is no such event. */
  change: (uid: string, change: EventChange) => void
  /** Shows it elsewhere, or nowhere; throws where there is no such event. */
  place(uid: string, places: EventPlaces): void
  get(uid: string): SandboxEvent | undefined
  /** In order of position. */
  ofGroup(groupId: number): readonly SandboxEvent[]
  /** In order of arrival. */
  all: () => readonly SandboxEvent[]
}

export function createHistory(): History {
  const arrived: SandboxEvent[] = []
  const byUid = new Map<string, SandboxEvent>()
  const byGroup = new Map<number, SandboxEvent[]>()

  function remember(event: SandboxEvent): void {
    if (byUid.has(event.uid)) throw new Error(`the sandbox already has an event ${event.uid}`)
    byUid.set(event.uid, event)
    arrived.push(event)
  }

  /** Most belong at the end, where nothing has to move. */
  function enterGroups(event: SandboxEvent): void {
    for (const groupId of event.groupIds) {
      const group = byGroup.get(groupId) ?? []
      byGroup.set(groupId, group)
      group.splice(firstAfter(group, toPosition(event)), 0, event)
    }
  }

  function add(events: readonly SandboxEvent[]): void {
    events.forEach(remember)
    events
      .toSorted((left, right) => comparePositions(toPosition(left), toPosition(right)))
      .forEach(enterGroups)
  }

  function requireEvent(uid: string): SandboxEvent {
    const event = byUid.get(uid)
    if (!event) throw new Error(`the sandbox has no event ${uid}`)
    return event
  }

  return {
    add,
    change: (uid, change) => void Object.assign(requireEvent(uid), change),
    place(uid, places) {
      const event = requireEvent(uid)
      for (const groupId of event.groupIds) {
        const group = byGroup.get(groupId) ?? []
        group.splice(firstAtOrAfter(group, toPosition(event)), 1)
      }
      Object.assign(event, places)
      enterGroups(event)
    },
    get: (uid) => byUid.get(uid),
    ofGroup: (groupId) => byGroup.get(groupId) ?? [],
    all: () => arrived,
  }
}

export function toPosition(event: Placed): Position {
  return [event.createdAtMs, event.uid]
}

export function comparePositions(left: Position, right: Position): number {
  if (left[0] !== right[0]) return left[0] - right[0]
  if (left[1] === right[1]) return 0
  return left[1] < right[1] ? -1 : 1
}

/** Index of the first event behind `position`; the length where there is none. */
export function firstAfter(events: readonly Placed[], position: Position): number {
  return firstIndexWhere(events, (event) => comparePositions(toPosition(event), position) > 0)
}

/** Index of the first event at or behind `position`; the length where there is none. */
export function firstAtOrAfter(events: readonly Placed[], position: Position): number {
  return firstIndexWhere(events, (event) => comparePositions(toPosition(event), position) >= 0)
}

function firstIndexWhere(events: readonly Placed[], holds: (event: Placed) => boolean): number {
  let low = 0
  let high = events.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if (holds(events[middle] as Placed)) high = middle
    else low = middle + 1
  }
  return low
}

/** An event as the sandbox holds it; what the wire shows of it is made at each reading. */
export interface SandboxEvent {
  uid: string
  /** The item's `metadata.type`, e.g. `lookalike`. */
  type: string
  severity: string
  /** The tenant's own severity; null: none. */
  override: string | null
  createdAtMs: number
  /** When it was matched into the feed and became visible: later than `createdAtMs` for a late arrival. */
  arrivedAtMs: number
  /** What its pages say of that; null: they do not. */
  matchedAtMs: number | null
  /** The identifier groups that show it. */
  groupIds: number[]
  identifiers: { id: number; name: string }[]
  tags: string[]
  notes: string | null
  /** An ignored event is hidden from pages that do not ask for ignored ones. */
  ignoredAtMs: number | null
  remediatedAtMs: number | null
  highlights: Record<string, string[]>
  /** The `data` of the full event; null: its type has no model. */
  data: Record<string, unknown> | null
  /** A stealer log's own, instead of what is made up for it. */
  stolen?: Partial<Stolen>
  /** Set: the page carries this instead of an item, whatever it is. */
  raw?: unknown
}

export interface StolenCredential {
  url: string
  username: string
  password: string
  application: string
}

export interface StolenCookie {
  host_key: string
  path: string
  /** Without a zone (docs/api-notes.md, Times). */
  expires_utc: string
  name: string
  value: string
}

export interface Stolen {
  credentials: StolenCredential[]
  cookies: StolenCookie[]
}

/** What may change after an event arrived: its place in the order may not. */
export type EventChange = Partial<Omit<SandboxEvent, 'uid' | 'createdAtMs' | 'groupIds'>>

/** Every event in order of position, whichever groups show it; what came since is sorted in. */
export function createOrderedEvents(history: Pick<History, 'all'>): () => readonly SandboxEvent[] {
  let arrived = 0
  let ordered: SandboxEvent[] = []

  return () => {
    const all = history.all()
    if (all.length !== arrived) {
      const known = all.length > arrived ? ordered : []
      ordered = [...known, ...all.slice(known.length)].sort((left, right) =>
        comparePositions(toPosition(left), toPosition(right)),
      )
      arrived = all.length
    }
    return ordered
  }
}

/** Who watches for what: the subjects of new events, and whom an event concerns. */
export interface Watchlist {
  /** The identifier groups with what each watches for now. */
  groups(): SandboxGroup[]
  /** Where an event shows that is about its identifiers. */
  findPlaces(event: SandboxEvent): EventPlaces
}

/** Which groups show an event, and for whom: its subject first. */
export type EventPlaces = Pick<SandboxEvent, 'groupIds' | 'identifiers'>
