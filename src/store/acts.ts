/** Who did what by command, page or API: one stream for all accounts. */
import type { Redis } from '../redis/connection.ts'
import type { Keys } from '../redis/keys.ts'

export interface ActNote {
  by: string
  /** As the API names it: `/sinks/soc/pause`. */
  act: string
  via: 'command' | 'page' | 'api'
  /** Whose it concerns; empty: all. */
  account: string
}

/** `unclear`: it was begun, and nobody knows how it ended. */
export type ActOutcome = 'done' | 'nothing to do' | 'refused' | 'failed' | 'unclear'

export interface KnownAct extends ActNote {
  atMs: number
  outcome: ActOutcome
}

/** Some months of a busy desk; older notes are dropped. */
const maxNotes = 10_000

interface Store {
  redis: Redis
  keys: Keys
}

/**
 * Notes an act before it is done; returns the note's id. Throws when Redis takes no more writes: what
 * cannot be recorded is not done.
 */
export async function noteAct({ redis, keys }: Store, note: ActNote): Promise<string> {
  const { by, act, via, account } = note
  const fields = ['by', by, 'act', act, 'via', via, 'account', account]
  return String(await redis.xadd(keys.shared('acts'), 'MAXLEN', '~', maxNotes, '*', ...fields))
}

export async function noteActOutcome(
  { redis, keys }: Store,
  id: string,
  outcome: ActOutcome,
): Promise<void> {
  await redis.xadd(keys.shared('acts'), 'MAXLEN', '~', maxNotes, '*', 'outcome', outcome, 'of', id)
}

/** The newest first. */
export async function readActs({ redis, keys }: Store, count: number): Promise<KnownAct[]> {
  const entries = await redis.xrevrange(keys.shared('acts'), '+', '-', 'COUNT', 2 * count)
  const outcomes = new Map<string, ActOutcome>()
  const acts: KnownAct[] = []
  for (const [id, fields] of entries) {
    const { outcome, of = '', ...note } = toObject(fields)
    if (outcome !== undefined) outcomes.set(of, outcome as ActOutcome)
    else {
      const [atMs, ended] = [Number.parseInt(id, 10), outcomes.get(id) ?? 'unclear']
      acts.push({ ...(note as unknown as ActNote), atMs, outcome: ended })
    }
  }
  return acts.slice(0, count)
}

function toObject(fields: readonly string[]): Partial<Record<string, string>> {
  return Object.fromEntries(
    fields.flatMap((name, at) => (at % 2 === 0 ? [[name, fields[at + 1] ?? '']] : [])),
  )
}
