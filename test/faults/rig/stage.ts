/**
 * The stage of a chaos run: a service that grows, a Redis behind a proxy, a fleet of replicas, and
 * inboxes for every kind of sink. What strikes it are the disturbances.
 */
import { createKeys } from '../../../src/redis/keys.ts'
import { createRandom, type EndMode, type Random } from '../../../src/sandbox/options.ts'
import { type Sandbox, startSandbox } from '../../../src/sandbox/sandbox.ts'
import { type AccountLedger, openLedger } from '../../../src/store/account-ledger.ts'
import { ledgerConfig } from '../../support/ledger.ts'
import { type Fleet, startFleet } from './fleet.ts'
import { type Recovery, watchRecovery } from './recovery.ts'
import { configOf, type Variant } from './stage-config.ts'
import { startStore, type Store, type StoreKind } from './store.ts'

export interface Stage {
  random: Random
  sandbox: Sandbox
  store: Store
  fleet: Fleet
  recovery: Recovery
  /** The ledger, past every proxy. */
  ledger: AccountLedger
  longMs: number
  /** Ms by which the service's clock is ahead of ours. */
  skew: { ms: number }
  /** Which of two configurations the replicas are to run. */
  roll(variant: Variant): Promise<void>
  close(): Promise<void>
}

export interface StageOptions {
  seed: number
  store: StoreKind
  replicas: number
  /** How long an event loop is blocked, ms. */
  blockMs: number
  /** How long Redis, or a sink, is away for long, ms. */
  longMs: number
  log?: string | undefined
}

export const sinkNames = ['single', 'batch', 'soc', 'oncall', 'team'] as const

/** Every way in which a walk may end is met, run by run. */
const endModes: readonly EndMode[] = ['absent', 'full', 'empty', 'echo']

export async function openStage(options: StageOptions): Promise<Stage> {
  const skew = { ms: 0 }
  const store = await startStore(options.store)
  const sandbox = await startSandbox({
    organizations: [
      { id: 7, limits: { search: 20, basic: 20 }, keys: [{ key: 'fw_sandbox', tenants: [42] }] },
    ],
    slackLimit: { perSecond: 1_000, burst: 1_000 },
    seed: options.seed,
    now: () => Date.now() + skew.ms,
    keep: 1_000_000,
    endMode: endModes[options.seed % endModes.length] ?? 'full',
    shortPages: 0.1,
    emptyPages: 0.1,
  })
  const yamlOf = (variant: Variant): string => configOf(sandbox, store.section, variant)
  const fleet = startFleet({
    yaml: yamlOf('plain'),
    size: options.replicas,
    blockMs: options.blockMs,
    log: options.log,
  })
  const redis = store.client
  const keys = createKeys('tocsin')
  const ledger = await openLedger({ redis, keys, account: 'main', config: ledgerConfig })
  const recovery = watchRecovery(ledger, [`${keys.queuePrefix}:lanes`])
  return {
    random: createRandom(options.seed),
    sandbox,
    store,
    fleet,
    recovery,
    ledger: ledger,
    longMs: options.longMs,
    skew,
    roll: (variant) => fleet.roll(yamlOf(variant)),
    async close() {
      await recovery.stop()
      await fleet.stop()
      await sandbox.close()
      await store.stop()
    },
  }
}
