/** Whether what waits for a sink goes to its fallback, and how that is said. Pure. */
import type { CircuitReading } from '../circuit.ts'

/**
 * From when on it goes there, ms, or why it stays. A paused sink keeps its items: the pause is the
 * operator's decision. They also stay while the circuit is half open, and while the fallback takes
 * nothing either.
 */
export function fallbackFrom(
  { state, openedAtMs = Infinity, paused }: CircuitReading,
  fallbackAfterMs: number,
  fallback: CircuitReading,
): number | keyof typeof stayingWords {
  if (paused !== undefined) return 'paused'
  if (state === 'closed' || state === 'half_open') return state
  const isShut = fallback.state === 'open' || fallback.state === 'disabled'
  if (isShut || fallback.paused !== undefined) return 'shut'
  return state === 'disabled' ? -Infinity : openedAtMs + fallbackAfterMs
}

const stayingWords = {
  closed: () => undefined,
  paused: (fallback: string) => `nothing goes to its fallback ${fallback} while it is paused`,
  half_open: (fallback: string) =>
    `nothing goes to its fallback ${fallback} while one message tries`,
  shut: (fallback: string) => `its fallback ${fallback} takes nothing either`,
}

interface Relieved {
  name: string
  fallback?: string | undefined
  fallbackAfterMs: number
}

/** Who gets what waits for a sink; undefined while it takes messages itself. */
export function describeFallback(
  { name, fallback, fallbackAfterMs }: Relieved,
  circuits: ReadonlyMap<string, CircuitReading>,
  nowMs: number,
): string | undefined {
  const [own, other] = [circuits.get(name), circuits.get(fallback ?? '')]
  if (!own || (own.state === 'closed' && !own.paused)) return undefined
  if (fallback === undefined || !other) return 'it has no fallback'
  const from = fallbackFrom(own, fallbackAfterMs, other)
  if (typeof from === 'string') return stayingWords[from](fallback)
  const second = from > nowMs && new Date(from).toISOString().slice(0, 19).replace('T', ' ')
  return `its fallback ${fallback} takes what waits${second ? ` from ${second} UTC on` : ''}`
}
