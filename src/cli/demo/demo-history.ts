/**
 * The story that the demo's sandbox tells: one sequence of events that goes on where the last run
 * stopped. An event is on disk before the sandbox shows it, so no uid is used twice; and each but the
 * late ones is younger than all before it, so no cursor has passed it.
 */
import { createGenerator } from '../../sandbox/history/generator.ts'
import type { SandboxEvent } from '../../sandbox/history/sandbox-event.ts'
import { withDefaults } from '../../sandbox/options.ts'
import { openStoryFile, type StoryLine } from './demo-story-file.ts'

export interface DemoHistory {
  /** Events of earlier runs that still stand, in the order in which they were told. */
  readonly earlier: readonly SandboxEvent[]
  /** The next event of the story; it chooses its group, and shows itself at `nowMs`. */
  next(createdAtMs: number, nowMs: number): SandboxEvent
  /** As `next`, but created just then, also where a cursor has passed that time. */
  late(createdAtMs: number, nowMs: number): SandboxEvent
  isLate(uid: string): boolean
}

export interface DemoHistoryOptions {
  file: string
  seed: number
  nowMs: number
  /** How many events of earlier runs stand again at most. */
  keep?: number
}

interface Line extends StoryLine {
  event: SandboxEvent
  isLate?: true
}

/** Long before the ledger forgets that it had an event. */
const keepMs = 30 * 86_400_000

export function openDemoHistory(options: DemoHistoryOptions): DemoHistory {
  const { file, seed, nowMs, keep = 2_000 } = options
  const stands = ({ event }: Line): boolean => event.createdAtMs > nowMs - keepMs
  const story = openStoryFile<Line>({ file, keep, stands })
  const lateUids = new Set(story.kept.filter(({ isLate }) => isLate).map(({ event }) => event.uid))
  let number = story.told
  let newestMs = Math.max(-Infinity, ...story.kept.map(({ event }) => event.createdAtMs))
  const tell = createStory(seed, number)

  function add(event: SandboxEvent, isLate: boolean): SandboxEvent {
    number += 1
    if (isLate) lateUids.add(event.uid)
    story.append({ number, event, ...(isLate && { isLate }) })
    return event
  }

  return {
    earlier: story.kept.map(({ event }) => event),
    next(createdAtMs, atMs) {
      newestMs = Math.max(newestMs + 1, createdAtMs)
      return add(tell(newestMs, atMs), false)
    },
    late: (createdAtMs, atMs) => add(tell(createdAtMs, atMs), true),
    isLate: (uid) => lateUids.has(uid),
  }
}

/** The same events for the same seed, from behind the first `told` ones on. */
function createStory(
  seed: number,
  told: number,
): (createdAtMs: number, nowMs: number) => SandboxEvent {
  const { groups } = withDefaults({})
  const generator = createGenerator(seed)
  const tell = (createdAtMs: number, nowMs: number): SandboxEvent =>
    generator.make(generator.groupOf(groups), nowMs, { createdAtMs })
  for (let again = 0; again < told; again++) tell(0, 0)
  return tell
}
