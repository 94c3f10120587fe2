import { expect, onTestFinished, test } from 'vitest'
import { openLedger } from '../../../src/store/account-ledger.ts'
import { connectRedis } from '../../../src/redis/connection.ts'
import { createKeys } from '../../../src/redis/keys.ts'
import { createRedisWatch } from '../../../src/redis/health.ts'
import { systemClock } from '../../../src/lib/clock.ts'
import {
  expectConservation,
  expectNothingStranded,
  ledgerConfig,
  routed,
  silent,
  takeIn,
} from '../../support/ledger.ts'
import { startCluster } from '../../support/redis-cluster.ts'
import { until } from '../../support/rehearsal.ts'

test('while the slot of a ledger moves nothing happens in it, and that is waiting for Redis', async () => {
  const rig = await startCluster()
  const redis = connectRedis(rig.config, silent)
  const keys = createKeys('rig')
  const watched = (): string[] => [keys.account('main', 'mark-key')]
  const watch = createRedisWatch({ redis, keys: watched, clock: systemClock, logger: silent })
  onTestFinished(async () => {
    redis.disconnect()
    await watch.stop()
    await rig.stop()
  })
  const ledger = await openLedger({ redis, keys, account: 'main', config: ledgerConfig })
  await takeIn(ledger, [routed({ uid: 'a' }), routed({ uid: 'b' })])
  watch.start()
  const finish = await rig.beginMoveOf(ledger.key())
  const taken = takeIn(ledger, [routed({ uid: 'a' }), routed({ uid: 'c' })])
  await until('the watch sees that it moves', () => watch.lastUnreachableMs() > 0)
  await finish() // refused by Redis where anything was written to the new place meanwhile
  expect(await taken).toMatchObject({ counts: { new: 1, duplicate: 1 } })
  await expectConservation(ledger)
  await expectNothingStranded(ledger)
})
