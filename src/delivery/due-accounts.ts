/** Which accounts may have something due for one sink, and whose turn it is. Hints and nudges, no truth. */
import type { Hint } from './work-hints.ts'

export interface DueAccount {
  account: string
  /** When to look, monotonic ms. */
  atMs: number
  /** Of the worst that may be due, as far as it is known. */
  rank: number
  /** What says so in Redis. */
  hint: Hint | undefined
  servedAtMs: number
}

export interface Told {
  inMs?: number
  rank?: number
  hint?: Hint | undefined
}

/** What is due later than this is left to the hints, ms. */
export const soonMs = 2_000

export class DueAccounts {
  #known = new Map<string, DueAccount>()

  get isEmpty(): boolean {
    return this.#known.size === 0
  }

  tell(account: string, { inMs = 0, rank = 4, hint }: Told, nowMs: number): void {
    const known = this.#known.get(account)
    const atMs = nowMs + inMs
    this.#known.set(account, {
      account,
      atMs: Math.min(known?.atMs ?? atMs, atMs),
      rank: Math.max(known?.rank ?? rank, rank),
      hint: hint ?? known?.hint,
      servedAtMs: known?.servedAtMs ?? 0,
    })
  }

  /** Those to look at now: the worst first, of several the one that was served longest ago. */
  ready(nowMs: number): DueAccount[] {
    return [...this.#known.values()]
      .filter(({ atMs }) => atMs <= nowMs)
      .toSorted((a, b) => b.rank - a.rank || a.servedAtMs - b.servedAtMs)
  }

  /**
   * What was found: the account is looked at again at once, soon (`inMs`), or when a hint says so. Resolves with
   * the hint that has to be cleared, if there is one.
   */
  served(
    seen: DueAccount,
    found: { inMs?: number; rank: number },
    nowMs: number,
  ): Hint | undefined {
    if (this.#known.get(seen.account) !== seen) return undefined // told anew meanwhile
    this.#known.delete(seen.account)
    const { inMs, rank } = found
    if (inMs === undefined || inMs > soonMs) return seen.hint
    this.#known.set(seen.account, { ...seen, atMs: nowMs + inMs, rank, servedAtMs: nowMs })
    return undefined
  }

  /** All hints: whoever takes them clears them. */
  takeHints(): Hint[] {
    const hints = [...this.#known.values()].flatMap(({ hint }) => hint ?? [])
    for (const [account, one] of this.#known) this.#known.set(account, { ...one, hint: undefined })
    return hints
  }

  drop(account: string): void {
    this.#known.delete(account)
  }

  /** When the next look is due, monotonic ms. */
  get nextMs(): number | undefined {
    const times = [...this.#known.values()].map(({ atMs }) => atMs)
    return times.length === 0 ? undefined : Math.min(...times)
  }
}
