/** What version 0.4.0 left in Redis, written by its own code: prefix `tocsin`, account `main`. */
import { readFileSync } from 'node:fs'
import type { Redis } from '../../src/redis/connection.ts'

interface StoredKey {
  text?: string
  hash?: Record<string, string>
  set?: string[]
  sorted?: Record<string, number>
}

interface OldStore {
  writtenAtMs: number
  store: Record<string, StoredKey>
}

const weekMs = 7 * 24 * 3_600_000

/** The store as if 0.4.0 had written it just now: its times, and the weeks of its marks, moved to today. */
function storeOfToday(): OldStore['store'] {
  const text = readFileSync(new URL('../fixtures/store-0.4.json', import.meta.url), 'utf8')
  const { writtenAtMs } = JSON.parse(text) as OldStore
  const nowMs = Date.now()
  const [oldWeek, week] = [writtenAtMs, nowMs].map((ms) => String(Math.floor(ms / weekMs)))
  const moved = text
    .replaceAll(/\b17\d{11}\b/g, (ms) => String(Number(ms) + nowMs - writtenAtMs))
    .replaceAll(`:marks:${oldWeek}:`, `:marks:${week}:`)
    .replaceAll(`"${oldWeek}"`, `"${week}"`)
    .replaceAll(`"${oldWeek}:n"`, `"${week}:n"`)
  return (JSON.parse(moved) as OldStore).store
}

/** Empties the Redis first. */
export async function loadStoreOf04(redis: Redis): Promise<void> {
  await redis.flushdb()
  for (const [name, { text, hash, set, sorted }] of Object.entries(storeOfToday())) {
    if (text !== undefined) await redis.set(name, text)
    if (hash) await redis.hset(name, hash)
    if (set) await redis.sadd(name, ...set)
    const scores = Object.entries(sorted ?? {}).flatMap(([member, score]) => [score, member])
    if (sorted) await redis.zadd(name, ...scores)
  }
}
