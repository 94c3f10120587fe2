/**
 * Tracks which accounts may have work due for one sink and chooses the next one. It is no truth: the
 * ledger is.
 */
import type { AccountLedger } from '../store/account-ledger.ts'
import type { ItemChange } from '../store/pending-items.ts'

export interface DueAccount {
  account: string
  /** When to look, monotonic ms. */
  atMs: number
  /** Rank of the worst item that may be due, as far as known. */
  rank: number
  /** Rank of the worst that certainly waits: announced, or left by the last claim; 0: unknown. */
  knownRank: number
  servedAtMs: number
}

export interface DueInfo {
  inMs?: number
  rank?: number
}

interface ChoiceOptions {
  /** Only accounts of which something as severe is known to wait. */
  leastKnown?: number
  /** Chooses the account that was served longest ago, whatever its rank. */
  isOldest?: boolean
  /** Chooses the account whose message was a probe longest ago, whatever its rank. */
  isProbe?: boolean
  /** Whether the account is being served already. */
  isBusy?: (account: string) => boolean
}

const never = (): boolean => false

/** Work due later than this is left to the slow pass, which looks further ahead. */
const soonMs = 30_000

export class DueAccounts {
  #known = new Map<string, DueAccount>()
  /** By account: when something of it last was a probe, monotonic ms. */
  readonly #probedAtMs = new Map<string, number>()

  get isEmpty(): boolean {
    return this.#known.size === 0
  }

  note(account: string, { inMs = 0, rank: announced }: DueInfo, nowMs: number): void {
    if (inMs > soonMs) return
    const known = this.#known.get(account)
    const atMs = nowMs + inMs
    const rank = announced ?? 4
    this.#known.set(account, {
      account,
      atMs: Math.min(known?.atMs ?? atMs, atMs),
      rank: Math.max(known?.rank ?? rank, rank),
      knownRank: Math.max(known?.knownRank ?? 0, announced ?? 0),
      servedAtMs: known?.servedAtMs ?? 0,
    })
  }

  noteProbed(account: string, nowMs: number): void {
    this.#probedAtMs.set(account, nowMs)
  }

  /**
   * Chooses the account with the worst rank, among equals the one served longest ago; with
   * `isOldest` the one served longest ago, whatever its rank.
   */
  choose(
    nowMs: number,
    { isOldest = false, isProbe = false, isBusy = never, leastKnown = 0 }: ChoiceOptions = {},
  ): DueAccount | undefined {
    let sinceMs: ((one: DueAccount) => number) | undefined
    if (isOldest) sinceMs = ({ servedAtMs }) => servedAtMs
    if (isProbe) sinceMs = ({ account }) => this.#probedAtMs.get(account) ?? -Infinity
    const candidates = [...this.#known.values()].filter(
      ({ atMs, account, knownRank }) =>
        atMs <= nowMs && !isBusy(account) && knownRank >= leastKnown,
    )
    const [first] = candidates.toSorted((a, b) =>
      sinceMs ? sinceMs(a) - sinceMs(b) : b.rank - a.rank || a.servedAtMs - b.servedAtMs,
    )
    return first
  }

  /** Records the result of a look at an account: it is looked at again after `inMs` if that is soon. */
  noteServed(
    seen: DueAccount,
    result: { inMs: number; rank: number; knownRank?: number },
    nowMs: number,
  ): void {
    if (this.#known.get(seen.account) !== seen) return // nudged again meanwhile
    this.#known.delete(seen.account)
    const { inMs, rank, knownRank = 0 } = result
    if (inMs > soonMs) return
    const served = { atMs: nowMs + inMs, rank, knownRank, servedAtMs: nowMs }
    this.#known.set(seen.account, { ...seen, ...served })
  }

  drop(account: string): void {
    this.#known.delete(account)
  }

  /** When the next look at an account that is not being served is due, monotonic ms. */
  nextMs({ isBusy = never, leastKnown = 0 }: ChoiceOptions = {}): number | undefined {
    let nextMs: number | undefined
    for (const { account, atMs, knownRank } of this.#known.values()) {
      if (isBusy(account) || knownRank < leastKnown) continue
      nextMs = Math.min(nextMs ?? atMs, atMs)
    }
    return nextMs
  }
}

/** Due work as announced by the code that created it. */
export interface DueWork {
  sink: string
  /** Rank of its severity, 1 to 5; left out: 4. */
  rank?: number
  /** When it is due, ms from now; omitted: now. */
  inMs?: number
}

/** The part of the drains that creators of work need. */
export interface WorkAnnouncer {
  /** Announces due work of an account; other processes find it by their slow pass. */
  announce(account: string, work: readonly DueWork[]): void
  /** Announces the changes that a ledger script returned. */
  announceChanges(account: string, made: readonly ItemChange[]): void
  /** Account ledgers that have, or had, items for a sink, as far as this process has seen. */
  ledgersFor(sink: string): readonly AccountLedger[]
}
