/**
 * One account's ledger leads: it holds the windows of digests, which span all accounts, and Tocsin's own events.
 * It is chosen once, and stays whatever order the accounts of a file have.
 */
import type { Keys } from '../redis/keys.ts'
import type { Redis } from '../redis/connection.ts'
import type { Book } from './book.ts'
import { parseRef } from './refs.ts'

interface Store {
  redis: Redis
  keys: Keys
}

/**
 * Puts the leading book first; without one the first leads from now on. Where the ledger of the one that led
 * is not open any more, its digests go on here, in the windows in which they were.
 */
export async function claimLead({ redis, keys }: Store, books: Book[]): Promise<void> {
  const [first] = books
  if (!first) return
  const name = keys.shared('lead')
  if ((await redis.exists(name)) === 0) await redis.set(name, first.account, 'NX')
  const lead = (await redis.get(name)) ?? first.account
  if (moveToFront(books, lead)) return
  await takeOverDigests({ redis, keys }, { from: lead, to: first })
  await redis.set(name, first.account)
}

/** The same for who changes nothing. */
export async function findLead({ redis, keys }: Store, books: Book[]): Promise<void> {
  const lead = await redis.get(keys.shared('lead'))
  if (lead !== null) moveToFront(books, lead)
}

function moveToFront(books: Book[], account: string): boolean {
  const at = books.findIndex((book) => book.account === account)
  const [lead] = at === -1 ? [] : books.splice(at, 1)
  if (lead) books.unshift(lead)
  return lead !== undefined
}

/** Again after a crash: a window that is set stays. */
async function takeOverDigests(
  { redis, keys }: Store,
  { from: account, to }: { from: string; to: Book },
): Promise<void> {
  const timers = await redis.zrange(keys.account(account, 'timers'), '0', '-1', 'WITHSCORES')
  for (let at = 0; at < timers.length; at += 2) {
    const ref = parseRef(timers[at] ?? '')
    if (ref.kind !== 'gathering') continue
    const fields = ['kind', 'about', 'opened', 'from', 'note'] as const
    const name = keys.account(account, 'gather', ref.id)
    const [kind, about, opened, from, note] = await redis.hmget(name, ...fields)
    if (kind !== 'digest' || !about || !opened || !from) continue
    const window = [opened, note ?? '{}', from]
    await to.run('ensure-digest', ref.id, ref.sink, timers[at + 1] ?? opened, about, ...window)
  }
}
