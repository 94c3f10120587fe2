/** Every event of the sandbox: per group in order of creation, overall in order of arrival. */
/** A position in the order of an event search: creation time in ms, then uid by code units. */
export type Position = readonly [createdAtMs: number, uid: string]

/** Anything that has a position in such an order. */
export type Placed = Pick<SandboxEvent, 'createdAtMs' | 'uid'>

export interface History {
  /** Throws if a uid exists already. */
  add(events: readonly SandboxEvent[]): void
  /** Changes what later reads show. Throws if there is no such event. */
  change: (uid: string, change: EventChange) => void
  get(uid: string): SandboxEvent | undefined
  /** In order of position. */
  inOrder(): readonly SandboxEvent[]
  /** In order of position. */
  ofGroup(groupId: number): readonly SandboxEvent[]
  /** In order of arrival. */
  all: () => readonly SandboxEvent[]
}

export function createHistory(): History {
  const arrived: SandboxEvent[] = []
  const byUid = new Map<string, SandboxEvent>()
  const byGroup = new Map<number, SandboxEvent[]>()
  const ordered: SandboxEvent[] = []

  function remember(event: SandboxEvent): void {
    if (byUid.has(event.uid)) throw new Error(`the sandbox already has an event ${event.uid}`)
    byUid.set(event.uid, event)
    arrived.push(event)
  }

  /** Most events belong at the end, where nothing has to move. */
  function enter(event: SandboxEvent): void {
    const groups = event.groupIds.map((groupId) => {
      const group = byGroup.get(groupId) ?? []
      byGroup.set(groupId, group)
      return group
    })
    for (const list of [ordered, ...groups]) {
      list.splice(firstAfter(list, toPosition(event)), 0, event)
    }
  }

  function add(events: readonly SandboxEvent[]): void {
    events.forEach(remember)
    events
      .toSorted((left, right) => comparePositions(toPosition(left), toPosition(right)))
      .forEach(enter)
  }

  return {
    add,
    change(uid, change) {
      const event = byUid.get(uid)
      if (!event) throw new Error(`the sandbox has no event ${uid}`)
      Object.assign(event, change)
    },
    get: (uid) => byUid.get(uid),
    inOrder: () => ordered,
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

/** Returns the index of the first event after `position`; the length if there is none. */
export function firstAfter(events: readonly Placed[], position: Position): number {
  return firstIndexWhere(events, (event) => comparePositions(toPosition(event), position) > 0)
}

/** Returns the index of the first event at or after `position`; the length if there is none. */
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

/** An event as the sandbox stores it; its wire shape is made on each read. */
export interface SandboxEvent {
  uid: string
  /** The item's `metadata.type`, e.g. `lookalike`. */
  type: string
  severity: string
  /** The severity that the tenant overrode it with; null: none. */
  override: string | null
  createdAtMs: number
  /**
   * When it was matched into the feed and became visible; later than `createdAtMs` for a late
   * arrival.
   */
  arrivedAtMs: number
  /** The match time that pages show; null: none. */
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
  /** Contents of a stealer log, in place of generated ones. */
  stolen?: Partial<Stolen>
  /** If set, the page has this value in place of the item, whatever it is. */
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

/** What may change after an event arrived; its position may not. */
export type EventChange = Partial<Omit<SandboxEvent, 'uid' | 'createdAtMs' | 'groupIds'>>
