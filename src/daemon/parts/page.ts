/** What the page asks of the engine that runs. */
import { formatMistake } from '../../config/config.ts'
import type { PageEngine, Reloaded } from '../../page/asker.ts'
import type { CallOptions } from '../../upstream/call.ts'
import { eventOperations } from '../../upstream/resources/events.ts'
import type { Engine } from '../engine.ts'
import type { ReloadOutcome } from '../reload.ts'

/** undefined until Redis is reached. */
export function buildPageEngine(
  { context, upstream, parts, sinceMs, by }: Engine,
  reload: ((by: string) => Promise<ReloadOutcome>) | undefined,
): PageEngine | undefined {
  if (parts === undefined) return undefined
  const { config, redis, keys, ledgers, generation, clock } = context
  const askedFor = (): CallOptions => ({
    slot: { kind: 'command', name: 'page', dueSinceMs: clock.now() },
    signal: AbortSignal.timeout(serviceMs),
  })
  return {
    config,
    store: { redis, keys, ledgers },
    generation: { number: generation.number, sinceMs, by },
    triageEvent: (account, uid, type) =>
      upstream
        .client(account)
        .call(eventOperations.act, { targets: [{ uid }], action: { type } }, askedFor()),
    reload: reload && (async (user) => withoutPlaces(await reload(user))),
    noteEvent: (account, uid, notes) =>
      upstream.client(account).call(eventOperations.note, { uid, notes }, askedFor()),
  }
}

function withoutPlaces(outcome: ReloadOutcome): Reloaded {
  if (outcome.status !== 'refused') return outcome
  return { status: 'refused', mistakes: outcome.mistakes.map(formatMistake) }
}

/** Whoever waits for a page waits no longer for the service. */
const serviceMs = 20_000
