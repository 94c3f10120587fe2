import { expect, test } from 'vitest'
import {
  createLedgerCheckSchedule,
  holdLedgerCheck,
  ledgerCheckEveryMs,
  readLedgerCheckNote,
} from '../../../src/audit/ledger-check-schedule.ts'
import { systemClock } from '../../../src/lib/clock.ts'
import { createLogger } from '../../../src/lib/logger.ts'
import type { Keys } from '../../../src/redis/keys.ts'
import type { AccountLedger } from '../../../src/store/account-ledger.ts'
import { redisForTests, routed, takeIn } from '../../support/ledger.ts'

const tests = redisForTests()

interface Scene {
  keys: Keys
  ledger: AccountLedger
  log: string[]
  prove: (given?: { aheadMs?: number; isActive?: boolean; signal?: AbortSignal }) => Promise<void>
}

async function aScene(): Promise<Scene> {
  const keys = tests.keys()
  const ledger = await tests.ledger({ keys })
  await takeIn(ledger, [routed({ uid: 'a/b/1' }, ['soc'])])
  const log: string[] = []
  const logger = createLogger({ destination: { write: (line) => void log.push(line) } })
  return {
    keys,
    ledger: ledger,
    log,
    async prove({ aheadMs = 0, isActive = true, signal = new AbortController().signal } = {}) {
      const clock = { ...systemClock, now: () => Date.now() + aheadMs }
      const { redis } = tests
      const schedule = createLedgerCheckSchedule({
        ledgers: [ledger],
        redis,
        keys,
        clock,
        logger,
        isActive: () => isActive,
      })
      await schedule.checkOnce(signal, () => undefined)
    },
  }
}

test('it is made at once, and again when its time has come', async () => {
  const { keys, prove } = await aScene()
  await prove()
  const first = await readLedgerCheckNote(tests.redis, keys)
  expect(first).toMatchObject({ records: 1, discrepancies: { soc: 0 } })
  await prove({ aheadMs: ledgerCheckEveryMs - 60_000 })
  expect(await readLedgerCheckNote(tests.redis, keys)).toEqual(first)
  await prove({ aheadMs: ledgerCheckEveryMs + 1_000 })
  expect((await readLedgerCheckNote(tests.redis, keys))?.endedAtMs).toBeGreaterThan(
    first!.endedAtMs,
  )
})

test('it does not wait for a time that a clock which was ahead had set', async () => {
  const { keys, prove } = await aScene()
  await prove({ aheadMs: 86_400_000 })
  await prove()
  expect((await readLedgerCheckNote(tests.redis, keys))?.endedAtMs).toBeLessThan(Date.now() + 1_000)
})

test('what it finds is named in the log, and counted by sink', async () => {
  const { keys, ledger, log, prove } = await aScene()
  await tests.redis.del(ledger.key('due', 'soc'))
  await prove()
  expect((await readLedgerCheckNote(tests.redis, keys))?.discrepancies).toEqual({ soc: 1 })
  expect(log.join('')).toContain('the ledger does not add up')
  expect(log.join('')).toContain('a/b/1')
})

test('one replica makes it at a time, and none whose configuration is not the active one', async () => {
  const { keys, prove } = await aScene()
  await prove({ isActive: false })
  expect(await holdLedgerCheck(tests.redis, keys, 'another')).toBe(true)
  await prove()
  expect(await readLedgerCheckNote(tests.redis, keys)).toBeUndefined()
})

test('one that is stopped says nothing and leaves its turn to others', async () => {
  const { keys, prove } = await aScene()
  await prove({ signal: AbortSignal.abort() })
  expect(await readLedgerCheckNote(tests.redis, keys)).toBeUndefined()
  expect(await holdLedgerCheck(tests.redis, keys, 'another')).toBe(true)
})
