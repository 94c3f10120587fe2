import { readSilences } from '../app/live-silences.ts'
import { formatMistake } from '../config/config-error.ts'
import type { LoadedConfig } from '../config/load.ts'
import { writeSilence } from '../ledger/silence-store.ts'
import { silenceText, type Silence } from '../routing/silences.ts'
import { CommandError, findNamed } from './command-error.ts'
import { loadConfigFile } from './config-file.ts'
import { print, type CommonOptions, type Context } from './context.ts'
import { redisNow, withLedger } from './open-ledger.ts'
import { phaseOf, silenceJson, silenceLine } from './routes-words.ts'
import { harmless } from './words.ts'

/** In the order in which an operator asks: what holds now first. */
const phases = ['active', 'not begun', 'over'] as const

export async function listSilences(context: Context, options: CommonOptions): Promise<void> {
  const { config } = loadConfigFile(context, options.config)
  const { silences, unreadable, nowMs } = await withLedger(config, async (ledger) => {
    const made = await readSilences(ledger.redis, ledger.keys)
    const all = [...config.silences, ...made.silences]
    return { silences: all, unreadable: made.unreadable, nowMs: await redisNow(ledger) }
  })
  const inOrder = phases.flatMap((phase) =>
    silences
      .filter((silence) => phaseOf(silence, nowMs) === phase)
      .toSorted((a, b) => a.endsAtMs - b.endsAtMs),
  )
  print(context, options, {
    json: inOrder.map((silence) => ({
      ...silenceJson(silence),
      phase: phaseOf(silence, nowMs).replace(' ', '_'),
    })),
    lines: () => [
      ...(inOrder.length === 0 ? ['There are no silences.'] : []),
      ...inOrder.map((silence) => `${silenceLine(silence, nowMs)}${originOf(silence)}`),
      ...unreadable.map((id) => `  ${harmless(id, 60)} cannot be read: it silences nothing`),
    ],
  })
}

function originOf({ origin }: Silence): string {
  return origin === 'config' ? ' (of the file)' : ''
}

/** It stays listed as over for a week. */
export async function expireSilence(
  context: Context,
  id: string,
  options: CommonOptions,
): Promise<void> {
  const loaded = loadConfigFile(context, options.config)
  refuseOfFile(loaded, id)
  const { config } = loaded
  const wasOver = await withLedger(config, async ({ redis, keys, books }) => {
    const { silences } = await readSilences(redis, keys)
    const named = silences.map((silence) => ({ name: silence.id, silence }))
    const { silence } = findNamed(named, id, 'silence')
    const nowMs = await redisNow({ redis, keys, books })
    if (silence.endsAtMs <= nowMs) return true
    const endsAtMs = Math.max(nowMs, silence.startsAtMs + 1) // it may not end before it begins
    await writeSilence(redis, keys, { id, text: silenceText({ ...silence, endsAtMs }) })
    return false
  })
  print(context, options, {
    json: { id, expired: !wasOver },
    lines: () => [wasOver ? `${id} was over already` : `${id} ends within seconds`],
  })
}

function refuseOfFile(loaded: LoadedConfig, id: string): void {
  const index = loaded.config.silences.findIndex((silence) => silence.id === id)
  if (index === -1) return
  const problem = `${id} is a silence of the file`
  const remedy = 'remove it there; a running daemon takes the file over on SIGHUP'
  const [mistake] = loaded.place([{ path: ['silences', index], problem, remedy }])
  throw new CommandError('mistake', mistake ? formatMistake(mistake) : `${problem}; ${remedy}`)
}
