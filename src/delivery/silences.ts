/** The silences that were made by command, and those in force. */
import type { Clock } from '../lib/clock.ts'
import type { Logger } from '../lib/logger.ts'
import type { Redis } from '../redis/client.ts'
import type { Keys } from '../redis/keys.ts'
import { isSilenceProblem, parseSilence, type Silence } from '../routing/silences.ts'
import { readSilenceTexts, removeSilence } from '../store/silences.ts'

/** Reads them, and the ids of entries that cannot be read. */
export async function readSilences(
  redis: Redis,
  keys: Keys,
): Promise<{ silences: Silence[]; unreadable: string[] }> {
  const silences: Silence[] = []
  const unreadable: string[] = []
  for (const [id, text] of await readSilenceTexts(redis, keys)) {
    const silence = parseSilence(tryParseJson(text))
    if (isSilenceProblem(silence)) unreadable.push(id)
    else silences.push(silence)
  }
  return { silences, unreadable }
}

function tryParseJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown
  } catch {
    return undefined
  }
}

export interface LiveSilences {
  /** Silences of the file and those made by command, as of the last refresh. */
  current(): readonly Silence[]
  /** Reads the silences again; one that cannot be read silences nothing and is logged once. */
  refreshOnce(): Promise<void>
}

interface SilenceSources {
  config: { silences: readonly Silence[] }
  redis: Redis
  keys: Keys
  clock: Clock
  logger: Logger
}

/** How long an ended silence stays listed. */
const keepEndedMs = 7 * 86_400_000

export function createLiveSilences({
  config,
  redis,
  keys,
  clock,
  logger,
}: SilenceSources): LiveSilences {
  let commandSilences: Silence[] = []
  const unreadable = new Set<string>()

  function warnUnreadable(id: string): void {
    if (!unreadable.has(id))
      logger.warn({ silence: id }, 'silence cannot be read: it silences nothing')
    unreadable.add(id)
  }

  return {
    current: () => [...config.silences, ...commandSilences],
    async refreshOnce() {
      const found = await readSilences(redis, keys)
      found.unreadable.forEach(warnUnreadable)
      commandSilences = found.silences
      for (const { id, endsAtMs } of commandSilences) {
        if (endsAtMs < clock.now() - keepEndedMs) await removeSilence(redis, keys, id)
      }
    },
  }
}
