/** What the page asks of the engine that runs. */
import type { PageEngine } from '../page/asker.ts'
import type { CallOptions } from '../upstream/call.ts'
import { eventOperations } from '../upstream/resources/events.ts'
import type { Engine } from './engine.ts'

/** undefined until Redis is reached. */
export function buildPageEngine({
  context,
  upstream,
  parts,
  sinceMs,
  by,
}: Engine): PageEngine | undefined {
  if (parts === undefined) return undefined
  const { config, redis, keys, ledgers, generation, clock } = context
  const askedFor = (): CallOptions => ({
    slot: { kind: 'command', name: 'page', dueSinceMs: clock.now() },
    signal: AbortSignal.timeout(serviceMs),
  })
  return {
    config,
    store: { redis, keys, ledgers },
    generation: { number: generation.revision, sinceMs, by },
    async endDigests(sink) {
      const ended = await parts.delivery.grouping.endDigests(sink)
      return ended?.map(({ destination, said }) => `${destination}: ${said}.`)
    },
    triageEvent: (account, uid, type) =>
      upstream
        .client(account)
        .call(eventOperations.act, { targets: [{ uid }], action: { type } }, askedFor()),
    noteEvent: (account, uid, notes) =>
      upstream.client(account).call(eventOperations.note, { uid, notes }, askedFor()),
  }
}

/** Whoever waits for a page waits no longer for the service. */
const serviceMs = 20_000
