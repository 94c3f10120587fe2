/** How events come to be in the sandbox: those of the start, those asked for, those that arrive. */
import { systemClock } from '../../lib/clock.ts'
import type { Logger } from '../../lib/logger.ts'
import { createLoop, type Loop } from '../../lib/loop.ts'
import { createRandom, type Random, type SandboxGroup, type SandboxSettings } from '../options.ts'
import type { Generator } from './generator.ts'
import type { EventChange, History, SandboxEvent, Watchlist } from './history.ts'

/**
 * Events are created now, and about something that the first group watches for. With `groupIds` or
 * `identifiers` they show where these say; otherwise wherever they match, which may be nowhere.
 */
export interface EventSupply {
  addEvent(given?: Partial<SandboxEvent>): SandboxEvent
  addEvents(count: number, given?: Partial<SandboxEvent>): SandboxEvent[]
  /** Puts any JSON value where an item of a page belongs. */
  addRawItem(groupId: number, item: unknown, given?: { createdAtMs?: number }): void
  changeEvent(uid: string, change: EventChange): void
}

export function createEventSupply(
  settings: SandboxSettings,
  { history, watch, generator }: { history: History; watch: Watchlist; generator: Generator },
): { supply: EventSupply; arrivals: Loop | undefined } {
  const { now, backlog, eventsPerSecond, lateShare, lateMinMs, lateMaxMs, logger } = settings
  let rawItems = history.all().filter(({ uid }) => uid.startsWith('raw/')).length

  /** Groups without an identifier give no subject to write about. */
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
    const event = generator.make(generator.pickGroup(groups()), nowMs, given)
    return { ...event, ...watch.findPlaces(event) }
  }

  const agesMs = Array.from({ length: backlog }, () => generator.randomAgeMs(86_400_000))
  history.add(agesMs.map(makeAged))
  const arrive = (ageMs: number): void => history.add([makeAged(ageMs)])
  const random = createRandom(settings.seed + 3)
  return {
    arrivals:
      eventsPerSecond > 0
        ? createArrivals({
            perSecond: eventsPerSecond,
            lateShare,
            lateMinMs,
            lateMaxMs,
            random,
            logger,
            arrive,
          })
        : undefined,
    supply: {
      addEvents,
      addEvent: (given) => addEvents(1, given)[0] as SandboxEvent,
      addRawItem: (groupId, item, given = {}) =>
        void addEvents(1, { ...given, groupIds: [groupId], uid: `raw/${++rawItems}`, raw: item }),
      changeEvent: history.change,
    },
  }
}

/** Events that arrive by themselves: a Poisson process, a share of it late. */

interface ArrivalOptions {
  /** Mean; above 0. */
  perSecond: number
  lateShare: number
  /** How long before its arrival a late event was created, at least and at most. */
  lateMinMs: number
  lateMaxMs: number
  random: Random
  logger: Logger
  /** `ageMs`: how long before now the event was created. */
  arrive: (ageMs: number) => void
}

const everyMs = 25

export function createArrivals(options: ArrivalOptions): Loop {
  const { perSecond, lateShare, lateMinMs, lateMaxMs, random, logger, arrive } = options
  const gapMs = (): number => random.exponential(1000 / perSecond)
  let nextAt = systemClock.monotonic() + gapMs()

  function arriveDue(): void {
    const now = systemClock.monotonic()
    while (nextAt <= now) {
      const isLate = random.chance(lateShare)
      arrive(isLate ? random.int(lateMinMs, lateMaxMs) : Math.floor(now - nextAt))
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
