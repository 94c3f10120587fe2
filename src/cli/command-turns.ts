/** The daemon's own way of making digests, for a command; what it makes ready a running daemon sends. */
import { addressPrints } from '../app/address-prints.ts'
import { buildGate } from '../app/build-gate.ts'
import { buildTurns, type FlusherParts } from '../app/build-flusher.ts'
import { buildSinks } from '../app/build-sinks.ts'
import { readSilences } from '../app/live-silences.ts'
import type { Config } from '../config/config.ts'
import { expectPolling } from '../config/lane-outlook.ts'
import { createCircuit, type Circuit } from '../delivery/circuit.ts'
import type { TurnOptions } from '../digest/turn-options.ts'
import { createRouter } from '../routing/router.ts'
import { systemClock } from '../runtime/clock.ts'
import { createMetrics } from '../runtime/metrics.ts'
import { defaultTimings } from '../runtime/timings.ts'
import type { Sink } from '../sinks/sink.ts'
import { quiet } from './context.ts'
import { knownOrganizations } from './feed-report.ts'
import { createWorkHints } from '../delivery/work-hints.ts'
import { withLedger, type OpenLedger } from './open-ledger.ts'

export interface CommandTurns {
  ledger: OpenLedger
  sinks: ReadonlyMap<string, Sink>
  circuit: Circuit
  turns: TurnOptions
}

/** Throws StoreError, and whatever `work` throws. */
export async function withTurns<Result>(
  config: Config,
  work: (parts: CommandTurns) => Promise<Result>,
): Promise<Result> {
  const environment = { clock: systemClock, logger: quiet }
  const sinks = await buildSinks(config.sinks, environment)
  try {
    return await withLedger(config, async (ledger) => {
      const router = createRouter(config.route)
      const { silences } = await readSilences(ledger.redis, ledger.keys)
      const gate = buildGate({ config, clock: systemClock }, router, () => [
        ...config.silences,
        ...silences,
      ])
      const circuit = createCircuit(ledger.redis, ledger.keys, addressPrints(config, ledger.books))
      const shared = {
        ...environment,
        ...ledger,
        config,
        newAccounts: [],
        metrics: createMetrics(environment),
        timings: defaultTimings,
        generation: { number: 0, hash: '', isActive: false },
      }
      const hints = createWorkHints(ledger.redis, ledger.keys)
      const drains: FlusherParts['drains'] = {
        tell: (account, made) => hints.tell(made.map(({ sink }) => ({ account, sink, inMs: 0 }))),
      }
      const wake = { ensureTried: () => Promise.resolve(false) }
      const polling = expectPolling(config, await knownOrganizations(ledger, config.accounts))
      const expected: FlusherParts['expected'] = (feed) =>
        polling.get(feed) ?? { lagObjectiveMs: Infinity }
      const turns = buildTurns(shared, { sinks, router, gate, circuit, wake, drains, expected })
      return work({ ledger, sinks, circuit, turns })
    })
  } finally {
    await Promise.all([...sinks.values()].map((sink) => sink.close()))
  }
}
