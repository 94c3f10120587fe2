/** A mail sink with a digest every morning, over one account or several, on a real Redis. */
import type { SinkDigest } from '../../src/grouping/placement.ts'
import type { ThreatEvent } from '../../src/event.ts'
import type { AccountLedger } from '../../src/store/account-ledger.ts'
import type { Keys } from '../../src/redis/keys.ts'
import { createSchedule } from '../../src/lib/cron-schedule.ts'
import { aGatheringRig, type GatheringRig, type GatheringRigOptions } from './grouping.ts'
import { takeIn, type RedisForTests } from './ledger.ts'
import { aRehearsedSink, type RehearsedSink } from './rehearsed-sink.ts'

export const dayMs = 86_400_000

export interface DigestRig extends GatheringRig {
  keys: Keys
  ledgers: AccountLedger[]
  oncall: RehearsedSink
  show(ledger: AccountLedger, ...events: Partial<ThreatEvent>[]): Promise<void>
  /** Sets the clock to the n-th 08:00 UTC from now, and a little. */
  toMorning(n: number): void
}

export const everyMorning: SinkDigest = {
  schedule: createSchedule({ cron: '0 8 * * *', timeZone: 'UTC' }),
  timeZone: 'UTC',
  immediate: 'critical',
  sendsEmpty: true,
  maxItems: 5,
}

export interface DigestRigOptions extends Partial<GatheringRigOptions> {
  /** null: the sink has none. */
  digest?: Partial<SinkDigest> | null
  recipients?: number
  accounts?: number
  /** How far its clock is ahead when it starts, ms. */
  aheadMs?: number
}

/** With another rig's `keys` and `ledgers` it is the same place under another configuration. */
export async function aDigestRig(
  given: RedisForTests,
  { digest = {}, recipients = 1, accounts = 1, aheadMs = 0, ...options }: DigestRigOptions = {},
): Promise<DigestRig> {
  const { keys = given.keys(), ledgers = [] } = options
  for (let i = ledgers.length; i < accounts; i += 1) {
    ledgers.push(await given.ledger({ keys, account: `a${i}` }))
  }
  const oncall = aRehearsedSink('oncall', {
    type: 'email',
    destinations: Array.from({ length: recipients }, (_, i) => ({
      id: `oncall:${i}`,
      label: `${i}`,
    })),
  })
  const rig = aGatheringRig({
    redis: given.redis,
    sinks: [oncall],
    digests: { oncall: digest === null ? undefined : { ...everyMorning, ...digest } },
    ...options,
    keys,
    ledgers: ledgers,
  })
  const firstMs = everyMorning.schedule.next(Date.now())
  const to = oncall.destinations.map(({ id }) => id)
  rig.clock.aheadMs = aheadMs
  await rig.ensureDigests()
  return Object.assign(rig, {
    keys,
    ledgers: ledgers,
    oncall,
    async show(ledger: AccountLedger, ...events: Partial<ThreatEvent>[]) {
      const routed = events.map((event) => rig.event(event, { sinks: to }))
      const { changes: made } = (await takeIn(ledger, routed)) as {
        changes: { ref: string; kind: string }[]
      }
      for (const { ref, kind } of made) if (kind === 'single') await rig.deliver(ref, ledger)
    },
    toMorning(n: number) {
      rig.clock.aheadMs = firstMs + (n - 1) * dayMs + 2_000 - Date.now()
    },
  })
}
