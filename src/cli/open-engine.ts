/** The daemon's own way of making digests, for a command; what it makes ready a running daemon sends. */
import type { Config } from '../config/config.ts'
import { expectPolling } from '../config/warnings.ts'
import { buildGate, buildTurns, type FlusherParts, readSilences } from '../daemon/grouping.ts'
import { addressPrints, buildSinks } from '../daemon/sinks.ts'
import { type Circuit, createCircuit } from '../delivery/circuit.ts'
import { createWorkHints } from '../delivery/due-accounts.ts'
import type { TurnOptions } from '../grouping/flush-context.ts'
import { type DigestSink, hasDigest } from '../grouping/flush.ts'
import { defaultTimings, systemClock } from '../lib/clock.ts'
import { createMetrics } from '../lib/metrics.ts'
import { createRouter } from '../routing/router.ts'
import type { Sink } from '../sinks/sink.ts'
import { quiet } from './context.ts'
import { knownOrganizations } from './feed-report.ts'
import { type OpenLedger, withLedger } from './open-ledger.ts'
import { CommandError, findNamed } from './terminal.ts'

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

/** The sink with its digest. Throws CommandError. */
export function digestSinkOf({ turns }: CommandTurns, { sinks }: Config, name: string): DigestSink {
  findNamed(sinks, name, 'sink')
  const sink = turns.sinks.get(name)
  if (sink && hasDigest(sink)) return sink
  const others = [...turns.sinks.values()].filter(hasDigest).map((other) => other.name)
  const remedy =
    others.length === 0
      ? 'no sink has one; give it a digest in the configuration'
      : `those that have one: ${others.join(', ')}`
  throw new CommandError('mistake', `the sink "${name}" has no digest; ${remedy}`)
}
