/**
 * The story that the demo's sandbox tells: one sequence of events that goes on where the last run
 * stopped. An event is on disk before the sandbox shows it, so no uid is used twice; and each is
 * younger than all before it, so no cursor has passed it.
 */
import { appendFileSync, existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { createGenerator } from '../../sandbox/history/generator.ts'
import type { SandboxEvent } from '../../sandbox/history/sandbox-event.ts'
import { withDefaults } from '../../sandbox/options.ts'

export interface DemoHistory {
  /** Events of earlier runs that still stand, oldest first. */
  readonly earlier: readonly SandboxEvent[]
  /** The next event of the story; it chooses its group, and shows itself at `nowMs`. */
  next(createdAtMs: number, nowMs: number): SandboxEvent
}

export interface DemoHistoryOptions {
  file: string
  seed: number
  nowMs: number
  /** How many events of earlier runs stand again at most. */
  keep?: number
}

interface Line {
  /** Its place in the story, from 1. */
  number: number
  event: SandboxEvent
}

/** Long before the ledger forgets that it had an event. */
const keepMs = 30 * 86_400_000

export function openDemoHistory(options: DemoHistoryOptions): DemoHistory {
  const { file, seed, nowMs, keep = 2_000 } = options
  const { lines, isTorn } = readLines(file)
  const kept = lines.slice(-keep).filter(({ event }) => event.createdAtMs > nowMs - keepMs)
  const last = lines.at(-1)
  if (isTorn || kept.length < lines.length) rewrite(file, kept.length > 0 ? kept : lines.slice(-1))
  let number = last?.number ?? 0
  let newestMs = last?.event.createdAtMs ?? -Infinity
  const tell = createStory(seed, number)
  return {
    earlier: kept.map(({ event }) => event),
    next(createdAtMs, atMs) {
      newestMs = Math.max(newestMs + 1, createdAtMs)
      number += 1
      const event = tell(newestMs, atMs)
      appendFileSync(file, textOf({ number, event }), { mode: 0o600 })
      return event
    },
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

function readLines(file: string): { lines: Line[]; isTorn: boolean } {
  if (!existsSync(file)) return { lines: [], isTorn: false }
  const texts = readFileSync(file, 'utf8').split('\n')
  const torn = texts.pop() // what a crash cut off was never shown
  return { lines: texts.map((text) => JSON.parse(text) as Line), isTorn: torn !== '' }
}

function rewrite(file: string, lines: readonly Line[]): void {
  writeFileSync(`${file}.new`, lines.map(textOf).join(''), { mode: 0o600 })
  renameSync(`${file}.new`, file)
}

function textOf(line: Line): string {
  return `${JSON.stringify(line)}\n`
}
