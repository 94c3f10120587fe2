/** Adds events to the sandbox: at the start, on request, and by arrivals. */
import { systemClock } from '../../lib/clock.ts'
import { createLoop, type Loop } from '../../lib/loop.ts'
import { createRandom, type SandboxGroup, type SandboxSettings } from '../options.ts'
import type { Generator } from './generator.ts'
import type { EventChange, History, SandboxEvent, Watchlist } from './history.ts'

/**
 * Adds events on request. By default they are created now, about something that the first group
 * watches for. With `groupIds` or `identifiers` they show there; otherwise wherever they match,
 * which may be nowhere.
 */
export interface EventSupply {
  addEvent(given?: Partial<SandboxEvent>): SandboxEvent
  addEvents(count: number, given?: Partial<SandboxEvent>): SandboxEvent[]
  /** Adds any JSON value in place of an item of a page. */
  addRawItem(groupId: number, item: unknown, given?: { createdAtMs?: number }): void
  changeEvent(uid: string, change: EventChange): void
}

export function createEventSupply(
  settings: SandboxSettings,
  { history, watch, generator }: { history: History; watch: Watchlist; generator: Generator },
): { supply: EventSupply; arrivals: Loop | undefined } {
  const { now, backlog, eventsPerSecond } = settings
  const { random } = generator
  let rawItems = 0

  /** Leaves out groups without an identifier: they give no subject to write about. */
  function groups(): SandboxGroup[] {
    return watch.groups().filter(({ identifiers }) => identifiers.length > 0)
  }

  function addEvents(count: number, given: Partial<SandboxEvent> = {}): SandboxEvent[] {
    const known = groups()
    const group = known.find(({ id }) => id === given.groupIds?.[0]) ?? known[0]
    if (!group) throw new Error('the sandbox has no identifier group to add an event to')
    const isPlaced = given.groupIds !== undefined || given.identifiers !== undefined
    const added = Array.from({ length: count }, () => {
      const event = generator.make(group, now(), given)
      return isPlaced ? event : { ...event, ...watch.findPlaces(event) }
    })
    history.add(added)
    return added
  }

  function makeAged(ageMs: number): SandboxEvent {
    const nowMs = now()
    const given = { createdAtMs: nowMs - ageMs }
    const event = generator.make(random.pick(groups()), nowMs, given)
    return { ...event, ...watch.findPlaces(event) }
  }

  const agesMs = Array.from({ length: backlog }, () => random.int(0, 86_400_000))
  history.add(agesMs.map(makeAged))
  const arrive = (ageMs: number): void => history.add([makeAged(ageMs)])
  return {
    arrivals: eventsPerSecond > 0 ? createArrivals(eventsPerSecond, settings, arrive) : undefined,
    supply: {
      addEvents,
      addEvent: (given) => addEvents(1, given)[0] as SandboxEvent,
      addRawItem: (groupId, item, given = {}) =>
        void addEvents(1, { ...given, groupIds: [groupId], uid: `raw/${++rawItems}`, raw: item }),
      changeEvent: history.change,
    },
  }
}

const everyMs = 25
const minLateMs = 60_000

/**
 * Arrivals: a Poisson process of `perSecond` on average, with a share of late ones. `arrive` gets the
 * age at arrival.
 */
export function createArrivals(
  perSecond: number,
  { seed, lateShare, lateMaxMs, logger }: SandboxSettings,
  arrive: (ageMs: number) => void,
): Loop {
  const random = createRandom(seed + 3)
  const gapMs = (): number => random.exponential(1000 / perSecond)
  let nextAt = systemClock.monotonic() + gapMs()

  function arriveDue(): void {
    const now = systemClock.monotonic()
    while (nextAt <= now) {
      const isLate = random.chance(lateShare)
      const lateMs = random.int(Math.min(minLateMs, lateMaxMs), lateMaxMs)
      arrive(isLate ? lateMs : Math.floor(now - nextAt))
      nextAt += gapMs()
    }
  }

  return createLoop({
    name: 'sandbox arrivals',
    everyMs,
    logger,
    tick: (): Promise<void> => Promise.resolve(arriveDue()),
  })
}
