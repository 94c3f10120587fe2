/** Adds events to the sandbox: at the start, on request, and by arrivals. */
import { systemClock } from '../../lib/clock.ts'
import { createLoop, type Loop } from '../../lib/loop.ts'
import type { SandboxGroup, SandboxSettings } from '../options.ts'
import { createGenerator } from './generator.ts'
import type { EventChange, History, SandboxEvent } from './history.ts'

/**
 * Adds events on request. By default they are created now, about something that the first group
 * watches for.
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
  history: History,
  subjects: () => readonly SandboxGroup[],
): { supply: EventSupply; arrivals: Loop | undefined } {
  const { now, backlog, eventsPerSecond, logger } = settings
  const generator = createGenerator(settings.seed)
  const { random } = generator
  let rawItems = 0

  function addEvents(count: number, given: Partial<SandboxEvent> = {}): SandboxEvent[] {
    const groups = subjects()
    const group = groups.find(({ id }) => id === given.groupIds?.[0]) ?? groups[0]
    if (!group) throw new Error('the sandbox has no identifier group to add an event to')
    const added = Array.from({ length: count }, () => generator.make(group, now(), given))
    history.add(added)
    return added
  }

  function addAged(ageMs: number): void {
    const nowMs = now()
    const group = random.pick(subjects())
    history.add([generator.make(group, nowMs, { createdAtMs: nowMs - ageMs })])
  }

  const agesMs = Array.from({ length: backlog }, () => random.int(0, 86_400_000))
  agesMs.forEach(addAged)
  const gapMs = 1000 / eventsPerSecond
  let nextAtMs = systemClock.monotonic() + gapMs
  const arrivals = createLoop({
    name: 'sandbox arrivals',
    everyMs: 25,
    logger,
    async tick() {
      for (const nowMs = systemClock.monotonic(); nextAtMs <= nowMs; nextAtMs += gapMs) addAged(0)
    },
  })
  return {
    arrivals: eventsPerSecond > 0 ? arrivals : undefined,
    supply: {
      addEvents,
      addEvent: (given) => addEvents(1, given)[0] as SandboxEvent,
      addRawItem: (groupId, item, given = {}) =>
        void addEvents(1, { ...given, groupIds: [groupId], uid: `raw/${++rawItems}`, raw: item }),
      changeEvent: history.change,
    },
  }
}
