/** Chance that can be repeated: the same seed tells the same story (mulberry32). */
export interface Random {
  /** In [0, 1). */
  next(): number
  chance(probability: number): boolean
  /** A whole number from `min` to `max`, both included. */
  int(min: number, max: number): number
  pick<T>(list: readonly T[]): T
  hex(digits: number): string
  /** Exponentially distributed: the gaps of a Poisson process. */
  exponential(mean: number): number
  /** A seed from which the numbers go on as they do here. */
  seed(): number
}

export function createRandom(seed: number): Random {
  let state = seed >>> 0

  function next(): number {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = state
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }

  function int(min: number, max: number): number {
    return min + Math.floor(next() * (max - min + 1))
  }

  return {
    next,
    int,
    chance: (probability) => next() < probability,
    pick: <T>(list: readonly T[]) => list[int(0, list.length - 1)] as T,
    hex: (digits) => Array.from({ length: digits }, () => int(0, 15).toString(16)).join(''),
    exponential: (mean) => -mean * Math.log(1 - next()),
    seed: () => state,
  }
}

/** FNV-1a, 32 bits: what varies from event to event but never between two readings of one event. */
export function hashOf(text: string): number {
  let hash = 0x811c9dc5
  for (let index = 0; index < text.length; index++) {
    hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193)
  }
  return hash >>> 0
}
