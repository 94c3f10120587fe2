/** Which accounts may have something due for one sink, and whose turn it is. Hints and nudges, no truth. */
import type { Redis } from '../redis/connection.ts'
import type { Keys } from '../redis/keys.ts'
import { runScript } from '../redis/scripts.ts'
import type { AccountLedger } from '../store/account-ledger.ts'
import type { ItemChange } from '../store/pending-items.ts'

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

export interface DueInfo {
  inMs?: number
  rank?: number
  hint?: Hint | undefined
}

interface ChoiceOptions {
  /** The one that was served longest ago, whatever it has. */
  isOldest?: boolean
  /** Is looked at already. */
  isBusy?: (account: string) => boolean
}

export interface Choice {
  chosen: DueAccount
  /** How many others have the same rank, and the worst rank among the others. */
  rivals: number
  leastRank: number
}

const never = (): boolean => false

/** What is due later than this is left to the hints, ms. */
export const soonMs = 2_000

export class DueAccounts {
  #known = new Map<string, DueAccount>()

  get isEmpty(): boolean {
    return this.#known.size === 0
  }

  note(account: string, { inMs = 0, rank = 4, hint }: DueInfo, nowMs: number): void {
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

  /** Whose turn it is: the worst, of several the one that was served longest ago; or that one, whatever it has. */
  choose(
    nowMs: number,
    { isOldest = false, isBusy = never }: ChoiceOptions = {},
  ): Choice | undefined {
    let choice: Choice | undefined
    for (const candidate of this.#known.values()) {
      if (candidate.atMs > nowMs || isBusy(candidate.account)) continue
      choice = choice
        ? considerAccount(choice, candidate, isOldest)
        : { chosen: candidate, rivals: 0, leastRank: 1 }
    }
    return choice
  }

  /**
   * What was found: the account is looked at again at once, soon (`inMs`), or when a hint says so. Resolves with
   * the hint that has to be cleared, if there is one.
   */
  noteServed(
    seen: DueAccount,
    result: { inMs?: number; rank: number },
    nowMs: number,
  ): Hint | undefined {
    if (this.#known.get(seen.account) !== seen) return undefined // told anew meanwhile
    this.#known.delete(seen.account)
    const { inMs, rank } = result
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

  /** When the next look is due at an account that is not looked at already, monotonic ms. */
  nextMs({ isBusy = never }: ChoiceOptions = {}): number | undefined {
    let nextMs: number | undefined
    for (const { account, atMs } of this.#known.values()) {
      if (!isBusy(account)) nextMs = Math.min(nextMs ?? atMs, atMs)
    }
    return nextMs
  }
}

/** The turn with one more account to choose from. */
function considerAccount(
  { chosen, rivals, leastRank }: Choice,
  candidate: DueAccount,
  isOldest: boolean,
): Choice {
  const isOlder = candidate.servedAtMs < chosen.servedAtMs
  if (isOldest) return { chosen: isOlder ? candidate : chosen, rivals: 0, leastRank: 1 }
  if (candidate.rank > chosen.rank) return { chosen: candidate, rivals: 0, leastRank: chosen.rank }
  if (candidate.rank < chosen.rank)
    return { chosen, rivals, leastRank: Math.max(leastRank, candidate.rank) }
  return { chosen: isOlder ? candidate : chosen, rivals: rivals + 1, leastRank: candidate.rank }
}

/**
 * Which account has something due for which sink: a hint for whoever delivers, so that nobody asks every account.
 * Told after a commit. Redis may lose it, and who commits may die before it tells: a slow pass over all accounts,
 * every ten seconds, finds what no hint names.
 */

/** Names of configurations hold no `|`. */
interface AccountSink {
  account: string
  sink: string
}

export interface Hint extends AccountSink {
  /** What was read; changes with each telling. */
  value: string
}

export interface WorkHints {
  write(hints: readonly (AccountSink & { inMs: number })[]): Promise<void>
  /** Those whose time has come, the earliest first. */
  read(max: number): Promise<Hint[]>
  /** Looked at: the next is due in `inMs` (undefined: nothing is), unless something was told meanwhile. */
  clear(hints: readonly (Hint & { inMs: number | undefined })[]): Promise<void>
}

/** A piece of work as those who make it tell of it. */
export interface DueWork {
  sink: string
  /** Rank of its severity, 1 to 5; left out: 4. */
  rank?: number
  /** When it is due, ms from now; left out: it is. */
  inMs?: number
}

/** What those who make work need of the drains. */
export interface WorkAnnouncer {
  /** Says what an account has due; returns when other processes can know it. */
  announce(account: string, work: readonly DueWork[]): Promise<void>
  /** What a ledger script made ready. */
  announceChanges(account: string, made: readonly ItemChange[]): Promise<void>
  /** The books that have, or had, items for a sink, as far as this process has seen. */
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
    async read(max) {
      const answer = (await run('read', max)) as string[]
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
