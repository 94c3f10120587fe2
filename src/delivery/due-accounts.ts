/**
 * Tracks which accounts may have work due for one sink and chooses the next one; and the hints in
 * Redis that tell other processes of due work. Neither is the truth: the ledger is.
 */
import type { Redis } from '../redis/client.ts'
import type { Keys } from '../redis/keys.ts'
import { runScript } from '../redis/scripts.ts'
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
  /** The hint in Redis that named the account. */
  hint: Hint | undefined
  servedAtMs: number
}

export interface DueInfo {
  inMs?: number
  rank?: number
  hint?: Hint | undefined
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

export interface Choice {
  chosen: DueAccount
  /** How many others have the same rank, and the worst rank among the others. */
  rivals: number
  leastRank: number
}

const never = (): boolean => false

/** Work due later than this, ms, is left to the hints. */
export const soonMs = 2_000

export class DueAccounts {
  #known = new Map<string, DueAccount>()
  /** By account: when something of it last was a probe, monotonic ms. */
  readonly #probedAtMs = new Map<string, number>()

  get isEmpty(): boolean {
    return this.#known.size === 0
  }

  note(account: string, { inMs = 0, rank: announced, hint }: DueInfo, nowMs: number): void {
    const known = this.#known.get(account)
    const atMs = nowMs + inMs
    const rank = announced ?? 4
    this.#known.set(account, {
      account,
      atMs: Math.min(known?.atMs ?? atMs, atMs),
      rank: Math.max(known?.rank ?? rank, rank),
      knownRank: Math.max(known?.knownRank ?? 0, announced ?? 0),
      hint: hint ?? known?.hint,
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
  ): Choice | undefined {
    let sinceMs: ((one: DueAccount) => number) | undefined
    if (isOldest) sinceMs = ({ servedAtMs }) => servedAtMs
    if (isProbe) sinceMs = ({ account }) => this.#probedAtMs.get(account) ?? -Infinity
    let choice: Choice | undefined
    for (const candidate of this.#known.values()) {
      if (candidate.atMs > nowMs || isBusy(candidate.account)) continue
      if (candidate.knownRank < leastKnown) continue
      choice = choice
        ? considerAccount(choice, candidate, sinceMs)
        : { chosen: candidate, rivals: 0, leastRank: 1 }
    }
    return choice
  }

  /**
   * Records the result of a look at an account: it is looked at again after `inMs` if that is soon,
   * else when a hint names it. Returns the hint that has to be cleared, if any.
   */
  noteServed(
    seen: DueAccount,
    result: { inMs?: number; rank: number; knownRank?: number },
    nowMs: number,
  ): Hint | undefined {
    if (this.#known.get(seen.account) !== seen) return undefined // nudged again meanwhile
    this.#known.delete(seen.account)
    const { inMs, rank, knownRank = 0 } = result
    if (inMs === undefined || inMs > soonMs) return seen.hint
    const served = { atMs: nowMs + inMs, rank, knownRank, servedAtMs: nowMs }
    this.#known.set(seen.account, { ...seen, ...served })
    return undefined
  }

  /** Removes and returns all hints; the caller clears them in Redis. */
  takeHints(): Hint[] {
    const hints = [...this.#known.values()].flatMap(({ hint }) => hint ?? [])
    for (const [account, one] of this.#known) this.#known.set(account, { ...one, hint: undefined })
    return hints
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

/**
 * Updates the choice with one more candidate: by rank, or with `sinceMs` by what has waited longest.
 */
function considerAccount(
  { chosen, rivals, leastRank }: Choice,
  candidate: DueAccount,
  sinceMs: ((one: DueAccount) => number) | undefined,
): Choice {
  if (sinceMs) {
    const isFirst = sinceMs(candidate) < sinceMs(chosen)
    return { chosen: isFirst ? candidate : chosen, rivals: 0, leastRank: 1 }
  }
  const isOlder = candidate.servedAtMs < chosen.servedAtMs
  if (candidate.rank > chosen.rank) return { chosen: candidate, rivals: 0, leastRank: chosen.rank }
  if (candidate.rank < chosen.rank)
    return { chosen, rivals, leastRank: Math.max(leastRank, candidate.rank) }
  return { chosen: isOlder ? candidate : chosen, rivals: rivals + 1, leastRank: candidate.rank }
}

/** Account and sink names contain no `|`. */
interface AccountSink {
  account: string
  sink: string
}

export interface Hint extends AccountSink {
  /** The value that was read; it changes with each write. */
  value: string
}

/**
 * Hints in Redis, written after a commit, so that no process has to ask every account for work. A
 * hint may be lost, with Redis or its writer; the slow pass, every ten seconds, finds such work.
 */
export interface WorkHints {
  write(hints: readonly (AccountSink & { inMs: number })[]): Promise<void>
  /** Returns the hints whose time has come, the earliest first, from the `offset`-th on. */
  read(max: number, offset?: number): Promise<Hint[]>
  /**
   * Clears hints that were looked at; the next look is due in `inMs` (undefined: none). A hint that
   * was written again meanwhile stays.
   */
  clear(hints: readonly (Hint & { inMs: number | undefined })[]): Promise<void>
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
  /** Announces due work of an account; resolves when other processes can see it. */
  announce(account: string, work: readonly DueWork[]): Promise<void>
  /** Announces the changes that a ledger script returned. */
  announceChanges(account: string, made: readonly ItemChange[]): Promise<void>
  /** Account ledgers that have, or had, items for a sink, as far as this process has seen. */
  ledgersFor(sink: string): readonly AccountLedger[]
}

export function createWorkHints(redis: Redis, keys: Keys): WorkHints {
  const run = (...args: (string | number)[]): Promise<unknown> =>
    runScript(redis, 'work-hints', [keys.shared('work')], args)
  return {
    async write(hints) {
      const args = hints.flatMap((hint) => [hintName(hint), hint.inMs])
      if (hints.length > 0) await run('tell', ...args)
    },
    async read(max, offset = 0) {
      const answer = (await run('read', max, offset)) as string[]
      return answer.flatMap((text, i) => {
        const [account = '', sink = ''] = text.split('|')
        return i % 2 === 0 ? [{ account, sink, value: answer[i + 1] ?? '' }] : []
      })
    },
    async clear(hints) {
      const args = hints.flatMap((hint) => [hintName(hint), hint.value, hint.inMs ?? ''])
      if (hints.length > 0) await run('clear', ...args)
    },
  }
}

function hintName({ account, sink }: AccountSink): string {
  return `${account}|${sink}`
}
