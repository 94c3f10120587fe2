/** How events come to be in the sandbox: those of the start, those asked for, those that arrive. */
import type { Loop } from '../../runtime/loop.ts'
import type { SandboxSettings } from '../options.ts'
import { createRandom } from '../random.ts'
import { createArrivals } from './arrivals.ts'
import { createGenerator } from './generator.ts'
import type { History } from './history.ts'
import type { EventChange, SandboxEvent } from './sandbox-event.ts'

/** Without `groupIds` they go to the first group, and are created now. */
export interface EventSupply {
  addEvent(given?: Partial<SandboxEvent>): SandboxEvent
  addEvents(count: number, given?: Partial<SandboxEvent>): SandboxEvent[]
  /** Puts any JSON value where an item of a page belongs. */
  addRawItem(groupId: number, item: unknown, given?: { createdAtMs?: number }): void
  changeEvent(uid: string, change: EventChange): void
}

export function createEventSupply(
  settings: SandboxSettings,
  history: History,
): { supply: EventSupply; arrivals: Loop | undefined } {
  const { groups, now, backlog, eventsPerSecond, lateShare, lateMaxMs, logger } = settings
  const generator = createGenerator(settings.seed)
  let rawItems = 0

  function addEvents(count: number, given: Partial<SandboxEvent> = {}): SandboxEvent[] {
    const group = groups.find(({ id }) => id === given.groupIds?.[0]) ?? groups[0]
    if (!group) throw new Error('the sandbox has no identifier group to add an event to')
    const made = Array.from({ length: count }, () => generator.make(group, now(), given))
    history.add(made)
    return made
  }

  function eventOfAge(ageMs: number): SandboxEvent {
    const nowMs = now()
    return generator.make(generator.groupOf(groups), nowMs, { createdAtMs: nowMs - ageMs })
  }

  const standing = Array.from({ length: backlog }, () => generator.ageUpTo(86_400_000))
  history.add(standing.map(eventOfAge))
  const arrive = (ageMs: number): void => history.add([eventOfAge(ageMs)])
  const random = createRandom(settings.seed + 3)
  return {
    arrivals:
      eventsPerSecond > 0
        ? createArrivals({
            perSecond: eventsPerSecond,
            lateShare,
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
