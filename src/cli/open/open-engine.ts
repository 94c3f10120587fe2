/**
 * The daemon's engine for one command: makes digests as the daemon does; a running daemon sends
 * them.
 */
import type { Config } from '../../config/config.ts'
import { expectPolling } from '../../config/warnings.ts'
import {
  buildSuppressionRules,
  buildFlushContext,
  type FlusherParts,
} from '../../daemon/grouping.ts'
import { buildMemberOptions } from '../../delivery/member-options.ts'
import { buildSinks } from '../../daemon/sinks.ts'
import type { Circuit } from '../../delivery/circuit.ts'
import { openCircuit } from '../../delivery/sink-address.ts'
import { readSilences } from '../../delivery/silences.ts'
import type { MemberOptions } from '../../delivery/delivery-member.ts'
import { createWorkHints } from '../../delivery/due-accounts.ts'
import { unregistered } from '../../daemon/context.ts'
import type { FlushContext } from '../../grouping/flush-context.ts'
import { type DigestSink, hasDigest } from '../../grouping/digest-flush.ts'
import { defaultTimings } from '../../lib/clock.ts'
import { createMetrics } from '../../lib/metrics.ts'
import { createRedisClock } from '../../redis/scripts.ts'
import { createRouter } from '../../routing/router.ts'
import type { Sink } from '../../sinks/sink.ts'
import { silentLogger } from '../context.ts'
import { readKnownOrganizations } from '../feeds/feed-report.ts'
import { type OpenStore, withStore } from './open-store.ts'
import { CommandError, findNamed } from '../terminal.ts'

export interface OpenEngine {
  store: OpenStore
  sinks: ReadonlyMap<string, Sink>
  circuit: Circuit
  flushContext: FlushContext
  /** Secrets stay masked. */
  memberOptions: MemberOptions
}

/** Throws StoreError, and whatever `use` throws. */
export async function withEngine<Result>(
  config: Config,
  use: (parts: OpenEngine) => Promise<Result>,
): Promise<Result> {
  const environment = { clock: createRedisClock(), logger: silentLogger }
  const sinks = await buildSinks(config.sinks, environment)
  try {
    return await withStore(config, async (store) => {
      await environment.clock.follow(store.redis)
      const router = createRouter(config.route)
      const { silences } = await readSilences(store.redis, store.keys)
      const rules = buildSuppressionRules({ config, ...environment }, router, () => [
        ...config.silences,
        ...silences,
      ])
      const circuit = openCircuit(store, config)
      const engineContext = {
        ...environment,
        ...store,
        config,
        newAccounts: [],
        foreignAccounts: new Map<string, number>(),
        metrics: createMetrics(environment),
        timings: defaultTimings,
        generation: unregistered(),
      }
      const hints = createWorkHints(store.redis, store.keys)
      const drains: FlusherParts['drains'] = {
        announce: (account, changes) =>
          hints.write(changes.map(({ sink }) => ({ account, sink, inMs: 0 }))),
      }
      const retryNow = { ensureProbe: () => Promise.resolve(false) }
      const polling = expectPolling(config, await readKnownOrganizations(store, config.accounts))
      const expected: FlusherParts['expectedPolling'] = (feed) =>
        polling.get(feed) ?? { lagObjectiveMs: Infinity }
      const flushContext = buildFlushContext(engineContext, {
        sinks,
        router,
        rules,
        circuit,
        retryNow,
        drains,
        expectedPolling: expected,
      })
      return use({
        store,
        sinks,
        circuit,
        flushContext,
        memberOptions: buildMemberOptions(config),
      })
    })
  } finally {
    await Promise.all([...sinks.values()].map((sink) => sink.close()))
  }
}

/** The sink with its digest. Throws CommandError. */
export function requireDigestSink(
  { flushContext }: OpenEngine,
  { sinks }: Config,
  name: string,
): DigestSink {
  findNamed(sinks, name, 'sink')
  const sink = flushContext.sinks.get(name)
  if (sink && hasDigest(sink)) return sink
  const others = [...flushContext.sinks.values()].filter(hasDigest).map((other) => other.name)
  const remedy =
    others.length === 0
      ? 'no sink has one; give it a digest in the configuration'
      : `those that have one: ${others.join(', ')}`
  throw new CommandError('mistake', `the sink "${name}" has no digest; ${remedy}`)
}
