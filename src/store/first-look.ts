/**
 * One look at all keys, ever, for what older versions left: accounts that nobody registered, and records
 * that no index has. Paused steps, resumed where they were broken off; afterwards nothing asks Redis for
 * names of keys.
 */
import type { Keys } from '../redis/keys.ts'
import { holdLease, releaseLease } from '../redis/lease.ts'
import { masterIds, scanNode, type MasterId } from '../redis/nodes.ts'
import type { Redis } from '../redis/connection.ts'
import { runScript } from '../redis/scripts.ts'

interface Place {
  redis: Redis
  keys: Keys
}

/** How long one that no longer says so is believed to look, ms. */
const leaseMs = 60_000

/** Names that one step asks Redis for, and the pause after it, ms: others use this Redis, too. */
const stepLength = 1_000
export const lookPauseMs = 20

/** Records that one script puts into the index: it stops everybody else meanwhile. */
const pageLength = 200

/**
 * Goes on where a look was broken off, unless that node was restarted meanwhile. Resolves with whether it is
 * done; false: another process is at it, or `mayGoOn` said no.
 */
export async function lookOnce(
  place: Place,
  { holder, mayGoOn }: { holder: string; mayGoOn: () => Promise<boolean> },
): Promise<boolean> {
  const { redis, keys } = place
  if (await isLookDone(place)) return true
  const lease = keys.shared('accounts-looking')
  const hold = (): Promise<boolean> => holdLease(redis, lease, { holder, ms: leaseMs })
  if (!(await hold())) return false
  try {
    const hasEnded = (await redis.hexists(keys.shared('look'), 'done')) === 1
    if (hasEnded) await redis.del(keys.shared('look')) // an older version added an account since
    for (const node of await masterIds(redis)) {
      if (!(await lookThrough(place, node, async () => (await mayGoOn()) && hold()))) return false
    }
    for (const account of await namesOf(place)) {
      await redis.set(keys.account(account, 'indexed'), '1')
    }
    await redis.hset(keys.shared('look'), 'done', await nowMs(redis))
    return true
  } finally {
    await releaseLease(redis, lease, holder)
  }
}

/** Whether it was made, and every account has an index: one that a replica of an older version added has none. */
export async function isLookDone(place: Place): Promise<boolean> {
  const { redis, keys } = place
  if ((await redis.hexists(keys.shared('look'), 'done')) === 0) return false
  const accounts = await namesOf(place)
  for (let at = 0; at < accounts.length; at += accountsAtOnce) {
    const some = accounts.slice(at, at + accountsAtOnce)
    const indexed = some.map((account) => redis.exists(keys.account(account, 'indexed')))
    if ((await Promise.all(indexed)).includes(0)) return false
  }
  return true
}

/**
 * What the look found is void once an older version has worked on the store: it keeps no index. The look is made
 * anew; until it is done, nothing relies on the index of these accounts.
 */
export async function forgetLook(
  { redis, keys }: Place,
  accounts: readonly string[],
): Promise<void> {
  for (const account of accounts) {
    await redis.unlink(keys.account(account, 'indexed'), keys.account(account, 'records'))
    await redis.hdel(keys.account(account, 'counters'), 'records')
  }
  await redis.unlink(keys.shared('look'))
}

/** Of the registered accounts. */
async function namesOf({ redis, keys }: Place): Promise<string[]> {
  const fields = await redis.hkeys(keys.shared('accounts'))
  return [...new Set(fields.map((field) => field.split('|')[0] ?? ''))]
}

/** Accounts that are asked at once. */
const accountsAtOnce = 50

async function lookThrough(
  place: Place,
  { name, run, node }: MasterId,
  mayGoOn: () => Promise<boolean>,
): Promise<boolean> {
  const { redis, keys } = place
  const look = keys.shared('look')
  const [before, from] = ((await redis.hget(look, name)) ?? '').split(' ')
  let cursor = before === run ? (from ?? '0') : '0' // a cursor means nothing to a server that was restarted
  while (cursor !== 'end') {
    const step = await scanNode(node, keys.account('*', '*'), { cursor, count: stepLength })
    await takeUp(place, step.names)
    cursor = step.cursor === '0' ? 'end' : step.cursor
    await redis.hset(look, name, `${run} ${cursor}`)
    if (cursor !== 'end' && !(await mayGoOn())) return false
  }
  return true
}

/** The pattern may match keys that are nobody's account. */
async function takeUp({ redis, keys }: Place, names: readonly string[]): Promise<void> {
  const records = new Map<string, string[]>()
  for (const name of names) {
    const [, account = '', recordId] =
      /:([a-z][a-z0-9_-]{0,39})\}:(?:mark-key|rec:([0-9a-f]{24}))/.exec(name) ?? []
    const isRecord = recordId !== undefined && name === keys.account(account, 'rec', recordId)
    if (isRecord) records.set(account, [...(records.get(account) ?? []), recordId])
    if (name !== keys.account(account, 'mark-key')) continue
    await redis.hsetnx(keys.shared('accounts'), `${account}|since`, await nowMs(redis))
  }
  for (const [account, ids] of records) {
    for (let at = 0; at < ids.length; at += pageLength) {
      const page = ids.slice(at, at + pageLength)
      const base = [keys.account(account), keys.account(account, 'moved')] // as every book names its keys
      await runScript(redis, 'index-records', base, page)
    }
  }
}

async function nowMs(redis: Redis): Promise<number> {
  const [seconds, micros] = await redis.time()
  return Number(seconds) * 1000 + Math.floor(Number(micros) / 1000)
}
