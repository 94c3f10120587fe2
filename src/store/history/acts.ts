/** Who did what by command, page or API: one stream for all accounts, kept as long as the history. */
import type { Redis } from '../../redis/client.ts'
import type { Keys } from '../../redis/keys.ts'

export interface ActNote {
  by: string
  /** As the API names it: `/sinks/soc/pause`. */
  act: string
  via: 'command' | 'page' | 'api'
  /** Whose it concerns; empty: all. */
  account: string
  /** What it is to touch, as lists name it; the first of many are kept. */
  items?: readonly string[]
}

/** `unclear`: it was begun, and nobody knows how it ended. */
export type ActOutcome = 'done' | 'nothing to do' | 'refused' | 'unclear'

export interface KnownAct extends Omit<ActNote, 'items'> {
  atMs: number
  outcome: ActOutcome
  items: string[]
  /** Further ones, whose names are not kept. */
  more: number
}

/** So many acts are kept that changed nothing: they fill no memory, and push out none that did. */
const maxIdle = 1_000

/** Of those a list shows so many. */
const idleShown = 20

/** Names of an act's items that are kept, and characters of each. */
const [maxItems, maxLength] = [20, 120]

interface Store {
  redis: Redis
  keys: Keys
}

/**
 * Notes an act before it is done; returns the note's id. Throws when Redis takes no more writes: what
 * cannot be recorded is not done.
 */
export async function noteAct({ redis, keys }: Store, note: ActNote): Promise<string> {
  return String(await redis.xadd(keys.shared('acts'), '*', ...fieldsOf(note)))
}

function fieldsOf({ by, act, via, account, items = [] }: ActNote): string[] {
  const named = items.slice(0, maxItems).map((item) => item.slice(0, maxLength))
  const touched = ['items', JSON.stringify(named), 'more', String(items.length - named.length)]
  return ['by', by, 'act', act, 'via', via, 'account', account, ...(items[0] ? touched : [])]
}

export async function noteActOutcome(
  { redis, keys }: Store,
  id: string,
  outcome: ActOutcome,
): Promise<void> {
  await redis.xadd(keys.shared('acts'), '*', 'outcome', outcome, 'of', id)
}

/** Moves the note of an act that changed nothing to those that make room for each other, not for what was done. */
export async function moveIdleAct(
  { redis, keys }: Store,
  { id, note, outcome }: { id: string; note: ActNote; outcome: ActOutcome },
): Promise<void> {
  const idle = [...fieldsOf(note), 'at', id, 'outcome', outcome]
  await redis
    .multi()
    .xadd(keys.shared('idle-acts'), 'MAXLEN', '~', maxIdle, '*', ...idle)
    .xdel(keys.shared('acts'), id)
    .exec()
}

/** Drops what was noted before `beforeMs`. */
export async function trimActs({ redis, keys }: Store, beforeMs: number): Promise<void> {
  for (const name of ['acts', 'idle-acts']) {
    await redis.xtrim(keys.shared(name), 'MINID', '~', Math.floor(beforeMs))
  }
}

/** The newest `count` that may have changed something, and the newest that did not; the newest first. */
export async function readActs({ redis, keys }: Store, count: number): Promise<KnownAct[]> {
  const newest = ['+', '-', 'COUNT'] as const
  const entries = await redis.xrevrange(keys.shared('acts'), ...newest, 2 * count)
  const idle = await redis.xrevrange(keys.shared('idle-acts'), ...newest, idleShown)
  const outcomes = new Map<string, ActOutcome>()
  const acts: Noted[] = []
  for (const [id, fields] of entries) {
    const { outcome, of = '', ...note } = toObject(fields)
    if (outcome !== undefined) outcomes.set(of, outcome as ActOutcome)
    else acts.push({ id, act: toAct(id, note, outcomes.get(id) ?? 'unclear') })
  }
  const known = [...acts.slice(0, count), ...idle.map(([, fields]) => toIdle(fields))]
  return known.toSorted((one, other) => compareIds(other.id, one.id)).map(({ act }) => act)
}

/** An act by the id of its note: several may begin in one millisecond. */
interface Noted {
  id: string
  act: KnownAct
}

function compareIds(one: string, other: string): number {
  const [[ms = 0, number = 0], [otherMs = 0, otherNumber = 0]] = [toNumbers(one), toNumbers(other)]
  return ms - otherMs || number - otherNumber
}

const toNumbers = (id: string): number[] => id.split('-').map(Number)

function toIdle(fields: readonly string[]): Noted {
  const { outcome, at: id = '', ...note } = toObject(fields)
  return { id, act: toAct(id, note, outcome as ActOutcome) }
}

type Fields = Partial<Record<string, string>>

function toAct(
  id: string,
  { items = '[]', more = '0', ...note }: Fields,
  outcome: ActOutcome,
): KnownAct {
  return {
    ...(note as unknown as Omit<ActNote, 'items'>),
    items: JSON.parse(items) as string[],
    more: Number(more),
    atMs: Number.parseInt(id, 10),
    outcome,
  }
}

function toObject(fields: readonly string[]): Fields {
  return Object.fromEntries(
    fields.flatMap((name, at) => (at % 2 === 0 ? [[name, fields[at + 1] ?? '']] : [])),
  )
}
