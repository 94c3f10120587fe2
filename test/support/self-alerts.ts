/** Replicas that watch over one ledger on a real Redis, driven look by look with a clock to set. */
import type { Clock } from '../../src/lib/clock.ts'
import type { Keys } from '../../src/redis/keys.ts'
import type { Snapshot } from '../../src/operator/alerts/conditions.ts'
import { createPublisher, type Publish } from '../../src/operator/alerts/publisher.ts'
import type { ProblemKind } from '../../src/operator/alerts/troubles.ts'
import type { Problem } from '../../src/operator/alerts/troubles.ts'
import { createSelfAlerts, type SelfAlerts } from '../../src/operator/alerts/self-alerts.ts'
import type { AccountLedger } from '../../src/store/account-ledger.ts'
import { type LedgerRecord, scanRecords } from '../../src/store/records.ts'
import { silent } from './ledger.ts'

export interface NoticesRig {
  /** The hour of all replicas; a test moves it. */
  clock: Clock & { atMs: number }
  /** What the replicas see, read now unless `atMs` says when; a test changes it. */
  snapshot: Omit<Snapshot, 'atMs'> & Partial<Pick<Snapshot, 'atMs'>>
  publish: Publish
  /** One more replica; `tell` where it tells otherwise. */
  replica(given?: {
    publish?: Publish
    isActive?: () => boolean
    ways?: string[]
    readSnapshot?: () => Promise<Snapshot>
  }): SelfAlerts
  /** The ledger's records of what was told, by uid. */
  told(): Promise<LedgerRecord[]>
  /** Sinks of the items that were made and queued, in order. */
  queued: string[]
}

export function aProblem(kind: ProblemKind, subject: string, more: Partial<Problem> = {}): Problem {
  const words = { detail: 'why', remedy: 'what helps' }
  return { kind, check: 'feed', subject, status: 'problem', ...words, ...more }
}

export function aNoticesRig({ ledger, keys }: { ledger: AccountLedger; keys: Keys }): NoticesRig {
  const clock = {
    atMs: Date.UTC(2026, 10, 21, 8),
    now: () => clock.atMs,
    monotonic: () => clock.atMs,
    sleep: () => Promise.resolve(),
  }
  const redis = { isFull: false }
  const snapshot: NoticesRig['snapshot'] = { problems: [], redis, deafSinks: [] }
  const queued: string[] = []
  const ways = {
    ledger: ledger,
    destinationsFor: (sink: string) => (sink === 'oncall' ? ['oncall:ann', 'oncall:bob'] : [sink]),
    batchWaitMs: () => undefined,
  }
  const tell = createPublisher({
    ...ways,
    queue: (_account, made) => void queued.push(...made.map(({ k }) => k)),
    titleOf: ({ type }) => type,
    generation: () => 1,
    clock,
  })
  return {
    clock,
    snapshot,
    publish: tell,
    queued,
    replica: (given = {}) =>
      createSelfAlerts({
        config: { afterMs: 300_000 },
        targets: given.ways ?? ['soc', 'oncall', 'siem'],
        redis: ledger.redis,
        keys,
        publish: given.publish ?? tell,
        readSnapshot:
          given.readSnapshot ??
          (() => Promise.resolve({ atMs: clock.atMs, ...structuredClone(snapshot) })),
        lagObjectiveMs: () => 300_000,
        isActive: given.isActive ?? (() => true),
        clock,
        logger: silent,
      }),
    async told() {
      const records: LedgerRecord[] = []
      for await (const record of scanRecords(ledger)) records.push(record)
      return records.toSorted((left, right) => (left.uid < right.uid ? -1 : 1))
    },
  }
}
