/** Silences as a command knows them: those of the file, and those made by command while Redis answers. */
import { readSilences } from '../app/live-silences.ts'
import type { Config } from '../config/config.ts'
import { createKeys } from '../redis/keys.ts'
import { StoreError } from '../redis/store-error.ts'
import type { Silence } from '../routing/silences.ts'
import { withRedis } from './open-ledger.ts'

export interface KnownSilences {
  silences: readonly Silence[]
  /** Why those made by command are not among them; undefined: they are. */
  missing: string | undefined
}

/** A command that can do without Redis does not wait long for it. */
const patienceMs = 1_000

/** Never throws because of Redis. */
export async function knownSilences(config: Config): Promise<KnownSilences> {
  try {
    const keys = createKeys(config.redis.prefix)
    const { silences } = await withRedis(
      config.redis,
      (redis) => readSilences(redis, keys),
      patienceMs,
    )
    return { silences: [...config.silences, ...silences], missing: undefined }
  } catch (error) {
    if (!(error instanceof StoreError)) throw error
    return { silences: config.silences, missing: error.message }
  }
}

/** What is said where some may be missing. */
export function missingLines({ missing }: KnownSilences): string[] {
  return missing === undefined ? [] : [`  silences made by command are not known: ${missing}`]
}
