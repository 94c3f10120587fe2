/** The silences that were made by command. */
import type { Redis } from '../redis/client.ts'
import type { Keys } from '../redis/keys.ts'
import { isSilenceProblem, parseSilence, type Silence } from '../routing/silences.ts'
import { readSilenceTexts } from '../store/silences.ts'

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
