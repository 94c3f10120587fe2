/** Every event of the sandbox, in order of creation per group and in order of arrival over all. */
import type { EventChange, SandboxEvent } from './sandbox-event.ts'
import type { Places } from './watch.ts'

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
  place(uid: string, places: Places): void
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
      group.splice(firstAfter(group, positionOf(event)), 0, event)
    }
  }

  function add(events: readonly SandboxEvent[]): void {
    events.forEach(remember)
    events
      .toSorted((left, right) => comparePositions(positionOf(left), positionOf(right)))
      .forEach(enterGroups)
  }

  function known(uid: string): SandboxEvent {
    const event = byUid.get(uid)
    if (!event) throw new Error(`the sandbox has no event ${uid}`)
    return event
  }

  return {
    add,
    change: (uid, change) => void Object.assign(known(uid), change),
    place(uid, places) {
      const event = known(uid)
      for (const groupId of event.groupIds) {
        const group = byGroup.get(groupId) ?? []
        group.splice(firstAtOrAfter(group, positionOf(event)), 1)
      }
      Object.assign(event, places)
      enterGroups(event)
    },
    get: (uid) => byUid.get(uid),
    ofGroup: (groupId) => byGroup.get(groupId) ?? [],
    all: () => arrived,
  }
}

export function positionOf(event: Placed): Position {
  return [event.createdAtMs, event.uid]
}

export function comparePositions(left: Position, right: Position): number {
  if (left[0] !== right[0]) return left[0] - right[0]
  if (left[1] === right[1]) return 0
  return left[1] < right[1] ? -1 : 1
}

/** Index of the first event behind `position`; the length where there is none. */
export function firstAfter(events: readonly Placed[], position: Position): number {
  return firstIndexWhere(events, (event) => comparePositions(positionOf(event), position) > 0)
}

/** Index of the first event at or behind `position`; the length where there is none. */
export function firstAtOrAfter(events: readonly Placed[], position: Position): number {
  return firstIndexWhere(events, (event) => comparePositions(positionOf(event), position) >= 0)
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
