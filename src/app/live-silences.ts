import type { Keys } from '../redis/keys.ts'
import type { Redis } from '../redis/connection.ts'
import { readSilenceTexts, removeSilence } from '../ledger/silence-store.ts'
import { isSilenceProblem, parseSilence, type Silence } from '../routing/silences.ts'
import type { Shared } from './shared.ts'

export interface LiveSilences {
  /** Those of the file and those made by command, as of the last look. */
  current(): readonly Silence[]
  /** Looks again; what cannot be read silences nothing, and is said once. */
  refreshOnce(): Promise<void>
}

/** How long one that is over is still listed. */
const rememberedMs = 7 * 86_400_000

export function createLiveSilences({
  config,
  redis,
  keys,
  clock,
  logger,
}: Pick<Shared, 'config' | 'redis' | 'keys' | 'clock' | 'logger'>): LiveSilences {
  let made: Silence[] = []
  const unreadable = new Set<string>()

  function complain(id: string): void {
    if (!unreadable.has(id))
      logger.warn({ silence: id }, 'silence cannot be read: it silences nothing')
    unreadable.add(id)
  }

  return {
    current: () => [...config.silences, ...made],
    async refreshOnce() {
      const found = await readSilences(redis, keys)
      found.unreadable.forEach(complain)
      made = found.silences
      for (const { id, endsAtMs } of made) {
        if (endsAtMs < clock.now() - rememberedMs) await removeSilence(redis, keys, id)
      }
    },
  }
}

/** Those made by command, and the ids of what cannot be read as one. */
export async function readSilences(
  redis: Redis,
  keys: Keys,
): Promise<{ silences: Silence[]; unreadable: string[] }> {
  const silences: Silence[] = []
  const unreadable: string[] = []
  for (const [id, text] of await readSilenceTexts(redis, keys)) {
    const silence = parseSilence(jsonOf(text))
    if (isSilenceProblem(silence)) unreadable.push(id)
    else silences.push(silence)
  }
  return { silences, unreadable }
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text) as unknown
  } catch {
    return undefined
  }
}
