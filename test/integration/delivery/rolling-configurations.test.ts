/** Replicas of different configurations over one ledger: who may call what removed, and that all is told. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { SinkDrain, type DrainOptions } from '../../../src/delivery/sink-drain.ts'
import { createGoneSinks } from '../../../src/delivery/relief/gone-sinks.ts'
import { systemClock } from '../../../src/lib/clock.ts'
import type { Keys } from '../../../src/redis/keys.ts'
import type { Sink } from '../../../src/sinks/sink.ts'
import {
  type AccountLedger,
  activateGeneration,
  confirmGeneration,
  isNewestGeneration,
  type Standing,
} from '../../../src/store/account-ledger.ts'
import { sumPending } from '../../../src/store/accounts.ts'
import { type Item, scanRecords } from '../../../src/store/records.ts'
import { drainOptions, modesOf } from '../../support/delivery.ts'
import {
  expectConservation,
  expectNothingStranded,
  redisForTests,
  routed,
  silent,
  takeIn,
} from '../../support/ledger.ts'
import { aRehearsedSink, type RehearsedSink } from '../../support/rehearsed-sink.ts'
import { runs } from '../../support/runs.ts'

const tests = redisForTests()

/** Destinations by sink. */
type Config = Readonly<Record<string, readonly string[]>>

interface Replica {
  name: string
  config: Config
  sinks: Map<string, RehearsedSink>
  standing: Standing
  /** As its loop does every two seconds; what it knows is old meanwhile. */
  confirm(patienceMs?: number): Promise<void>
  /** Looks at every sink until it has nothing in hand. */
  pass(): Promise<void>
}

interface Place {
  keys: Keys
  ledger: AccountLedger
}

async function aPlace(): Promise<Place> {
  const keys = tests.keys()
  return { keys, ledger: await tests.ledger({ keys }) }
}

function sinksOf(config: Config): Map<string, RehearsedSink> {
  const sinks = Object.entries(config).map(([name, ids]) =>
    aRehearsedSink(name, {
      type: 'email',
      destinations: ids.map((id) => ({ id, label: id })),
    }),
  )
  return new Map(sinks.map((sink) => [sink.name, sink]))
}

let replicas = 0

/** A replica that starts with a configuration, which is the newest from then on. */
async function start({ keys, ledger }: Place, config: Config): Promise<Replica> {
  const { redis } = tests
  const hash = JSON.stringify(config)
  const name = `r${(replicas += 1)}`
  const sinks = sinksOf(config)
  const known = { isActive: true, isNewest: true }
  const standing: Standing = Object.assign(known, {
    async checkNewest() {
      known.isNewest = await isNewestGeneration(redis, keys, hash)
      return known.isNewest
    },
    isForeign: () => false,
  })
  const batchWaits = modesOf([...sinks.values()])
  const options: DrainOptions = {
    ...drainOptions({ redis, keys, ledgers: [ledger], clock: systemClock }),
    holder: { owner: name, leaseMs: 10_000 },
    replica: name,
    standing,
    batchWaits,
  }
  const goneSinks = createGoneSinks({
    ledgers: [ledger],
    outlets: new Map(),
    standing,
    logger: silent,
  })
  await activateGeneration(redis, keys, hash)
  return {
    name,
    config,
    sinks,
    standing,
    async confirm(patienceMs) {
      const { active } = await confirmGeneration(redis, keys, hash, patienceMs)
      known.isActive = active !== undefined
      await standing.checkNewest()
    },
    async pass() {
      for (const sink of ['oncall', 'soc']) {
        const own = sinks.get(sink)
        if (!own) await goneSinks.note(ledger, sink)
        else {
          await goneSinks.takeBack(ledger, sink)
          await drainOnce(ledger, own, options)
        }
      }
    },
  }
}

async function drainOnce(ledger: AccountLedger, sink: Sink, options: DrainOptions): Promise<void> {
  const drain = new SinkDrain(sink, options)
  drain.nudge(ledger.account)
  for (;;) {
    const ready = Promise.withResolvers<void>()
    drain.onReady(ready.resolve)
    const waitMs = await drain.tick()
    const failure = drain.takeFailure()
    if (failure) throw failure.error
    if (drain.inHand === 0 && waitMs !== 0) return
    if (waitMs !== 0) await Promise.race([ready.promise, systemClock.sleep(waitMs ?? 1_000)])
  }
}

/** All retries are due, every lease has ended, and no destination waits any more. */
async function makeAllDue({ keys, ledger }: Place): Promise<void> {
  const { redis } = tests
  await redis.del(ledger.key('claims'))
  for (const sink of ['oncall', 'soc']) {
    const due = ledger.key('due', sink)
    for (const ref of await redis.zrange(due, '0', '-1')) await redis.zadd(due, 1, ref)
  }
  const circuits = await redis.keys(`${keys.shared('circuit')}*`)
  if (circuits.length > 0) await redis.del(circuits)
}

async function itemsOf(ledger: AccountLedger): Promise<Item[]> {
  const items: Item[] = []
  for await (const record of scanRecords(ledger)) items.push(...record.items)
  return items
}

/** What somebody has called removed. */
async function countRemoved(ledger: AccountLedger): Promise<number> {
  const items = await itemsOf(ledger)
  const dead = items.filter(
    ({ state, history }) => state === 'dead' && history.at(-1)?.reason === 'recipient_removed',
  )
  return dead.length + (await ledger.redis.scard(ledger.key('gone')))
}

async function bring(
  { ledger }: Place,
  { config }: Replica,
  uids: readonly string[],
): Promise<void> {
  const all = Object.values(config).flat()
  const events = uids.map((uid) => routed({ uid, severity: 'critical' }, all))
  await takeIn(ledger, events)
}

type Step =
  | { do: 'start'; config: Config }
  | { do: 'die' | 'confirm' | 'lapse' | 'bring'; which: number }
  | { do: 'pass'; which: number; isRefused: boolean }

const which = fc.nat({ max: 5 })
const configs: fc.Arbitrary<Config> = fc
  .tuple(fc.subarray(['oncall:a', 'oncall:b', 'oncall:c'], { minLength: 1 }), fc.boolean())
  .map(([oncall, hasSoc]) => ({ oncall, ...(hasSoc && { soc: ['soc'] }) }))

const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 2, arbitrary: fc.record({ do: fc.constant('start' as const), config: configs }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('die' as const), which }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('confirm' as const), which }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('lapse' as const), which }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('bring' as const), which }) },
  {
    weight: 6,
    arbitrary: fc.record({ do: fc.constant('pass' as const), which, isRefused: fc.boolean() }),
  },
)

const everything: Config = { oncall: ['oncall:a', 'oncall:b', 'oncall:c'], soc: ['soc'] }

test(
  'in any order of starts, deaths and lapses only the configuration started last calls anything removed, and all else is told',
  async () => {
    await fc.assert(
      fc.asyncProperty(
        configs,
        fc.array(step, { minLength: 4, maxLength: 24 }),
        async (first, steps) => {
          const place = await aPlace()
          let newest = await start(place, first)
          const running = [newest]
          let uid = 0
          for (const one of steps) {
            if (one.do === 'start') {
              running.push((newest = await start(place, one.config)))
              continue
            }
            const replica = running[one.which % running.length]!
            if (one.do === 'die' && running.length > 1) running.splice(running.indexOf(replica), 1)
            if (one.do === 'confirm') await replica.confirm()
            if (one.do === 'lapse') await replica.confirm(-1)
            if (one.do === 'bring') await bring(place, replica, [`a/b/${(uid += 1)}`])
            if (one.do !== 'pass') continue
            await makeAllDue(place)
            const before = await countRemoved(place.ledger)
            for (const sink of replica.sinks.values()) if (one.isRefused) sink.next('rate_limited')
            await replica.pass()
            const isNewest = JSON.stringify(replica.config) === JSON.stringify(newest.config)
            const after = await countRemoved(place.ledger)
            expect(isNewest ? before : after).toBeLessThanOrEqual(before)
            await expectNothingStranded(place.ledger)
          }
          const last = await start(place, everything)
          await makeAllDue(place)
          await last.pass()
          const { sinks } = await expectConservation(place.ledger)
          expect(Object.values(sinks).map(sumPending)).toEqual(Object.values(sinks).map(() => 0))
          for (const { state, history } of await itemsOf(place.ledger)) {
            expect(state === 'delivered' ? state : history.at(-1)?.reason).toMatch(
              /^(delivered|recipient_removed)$/,
            )
          }
        },
      ),
      { numRuns: runs({ short: 80, long: 1_500 }) },
    )
  },
  runs({ short: 300_000, long: 900_000 }),
)
