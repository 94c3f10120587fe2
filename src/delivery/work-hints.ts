/**
 * Which account has something due for which sink: a hint for whoever delivers, so that nobody asks every account.
 * Told after a commit. Redis may lose it, and who commits may die before it tells: a slow pass over all accounts,
 * every ten seconds, finds what no hint names.
 */
import type { Book } from '../ledger/book.ts'
import type { MadeWork } from '../ledger/collecting.ts'
import type { Redis } from '../redis/connection.ts'
import type { Keys } from '../redis/keys.ts'
import { runScript } from '../redis/scripts.ts'

/** Names of configurations hold no `|`. */
export interface Pair {
  account: string
  sink: string
}

export interface Hint extends Pair {
  /** What was read; changes with each telling. */
  value: string
}

export interface WorkHints {
  tell(hints: readonly (Pair & { inMs: number })[]): Promise<void>
  /** Those whose time has come, the earliest first. */
  read(max: number): Promise<Hint[]>
  /** Looked at: the next is due in `inMs` (undefined: nothing is), unless something was told meanwhile. */
  clear(hints: readonly (Hint & { inMs: number | undefined })[]): Promise<void>
}

/** A piece of work as those who make it tell of it. */
export interface ToldWork {
  sink: string
  /** Rank of its severity, 1 to 5; left out: 4. */
  rank?: number
  /** When it is due, ms from now; left out: it is. */
  inMs?: number
}

/** What those who make work need of the drains. */
export interface WorkTeller {
  /** Says what an account has due; returns when other processes can know it. */
  tell(account: string, work: readonly ToldWork[]): Promise<void>
  /** What a ledger script made ready. */
  tellMade(account: string, made: readonly MadeWork[]): Promise<void>
  /** The books that have, or had, items for a sink, as far as this process has seen. */
  booksOf(sink: string): readonly Book[]
}

export function createWorkHints(redis: Redis, keys: Keys): WorkHints {
  const run = (...args: (string | number)[]): Promise<unknown> =>
    runScript(redis, 'work-hints', [keys.shared('work')], args)
  return {
    async tell(hints) {
      const told = hints.flatMap((hint) => [nameOf(hint), Math.ceil(hint.inMs)])
      if (told.length > 0) await run('tell', ...told)
    },
    async read(max) {
      const answer = (await run('read', max)) as string[]
      return answer.flatMap((text, i) => {
        const [account = '', sink = ''] = text.split('|')
        return i % 2 === 0 ? [{ account, sink, value: answer[i + 1] ?? '' }] : []
      })
    },
    async clear(hints) {
      const cleared = hints.flatMap((hint) => {
        const next = hint.inMs === undefined ? '' : Math.ceil(hint.inMs)
        return [nameOf(hint), hint.value, next]
      })
      if (cleared.length > 0) await run('clear', ...cleared)
    },
  }
}

function nameOf({ account, sink }: Pair): string {
  return `${account}|${sink}`
}
