/**
 * Limits guesses at passwords and tokens, over all replicas: failures of the last ten minutes are
 * counted in Redis. A guess is counted before it is judged, and given back if it was right. So many
 * at once get no further than one after the other.
 */
import { createHash } from 'node:crypto'
import { isIPv6 } from 'node:net'
import type { Redis } from '../../redis/client.ts'
import type { Keys } from '../../redis/keys.ts'
import { runScript } from '../../redis/scripts.ts'

export interface Guesser {
  address: string
  /** As it was typed; of a token there is none. */
  name?: string
}

export interface Guesses {
  /** Returns how long to wait before a guess is judged, ms; 0: not at all. */
  look(who: Guesser): Promise<number>
  /** The same, and counts the guess if it is to be judged. */
  take(who: Guesser): Promise<number>
  giveBack(who: Guesser): Promise<void>
}

const windowMs = 10 * 60_000

/** Failures within the window. */
const limits = { pair: 10, address: 50, name: 100, token: 50 }

export function createGuesses({ redis, keys }: { redis: Redis; keys: Keys }): Guesses {
  async function count(who: Guesser, change: 1 | 0 | -1): Promise<number> {
    const counted = countersOf(who)
    const names = counted.map(([kind, text]) => keys.shared('guesses', kind, digest(text)))
    const most = counted.map(([kind]) => limits[kind])
    return Number(await runScript(redis, 'count-guess', names, [change, windowMs, ...most]))
  }
  return {
    look: (who) => count(who, 0),
    take: (who) => count(who, 1),
    giveBack: async (who) => void (await count(who, -1)),
  }
}

function countersOf({ address, name }: Guesser): [keyof typeof limits, string][] {
  const from = networkOf(address)
  if (name === undefined) return [['token', from]]
  return [
    ['pair', `${from} ${name}`],
    ['address', from],
    ['name', name],
  ]
}

/** Whoever has an IPv6 address has 2^64 of them. */
function networkOf(address: string): string {
  if (!isIPv6(address)) return address
  const [head = '', tail] = address.split('%', 1)[0]?.split('::') ?? []
  const parts = (text: string): string[] => (text === '' ? [] : text.split(':'))
  const [left, right] = [parts(head), parts(tail ?? '')]
  const zeros = Array.from({ length: Math.max(0, 8 - left.length - right.length) }, () => '0')
  return [...left, ...(tail === undefined ? [] : zeros), ...right].slice(0, 4).join(':')
}

/** Names are anybody's text, and of any length. */
function digest(text: string): string {
  return createHash('sha256').update(text).digest('base64url')
}
