import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { openLedger, type AccountLedger } from '../../../src/store/account-ledger.ts'
import { readAccounting } from '../../../src/store/accounts.ts'
import { hasRoom } from '../../../src/redis/health.ts'
import { createKeys } from '../../../src/redis/keys.ts'
import type { Redis } from '../../../src/redis/connection.ts'
import { aDeliveryRig } from '../../support/delivery.ts'
import {
  connectTo,
  expectConservation,
  ledgerConfig,
  routed,
  takeIn,
} from '../../support/ledger.ts'
import { startRedis, type TestRedis } from '../../support/redis.ts'
import { aRehearsedSink } from '../../support/rehearsed-sink.ts'
import { aReplica, until } from '../../support/rehearsal.ts'

let server: TestRedis
let redis: Redis

beforeAll(async () => {
  server = await startRedis({ settings: ['maxmemory 20mb'] })
  redis = connectTo(server.url)
})

// A test that fails leaves no full Redis to the next one.
afterEach(() => redis.flushall())

afterAll(async () => {
  redis.disconnect()
  await server.stop()
})

/** Until Redis refuses to take any more. */
async function fill(): Promise<void> {
  for (const size of [100_000, 1_000, 1]) {
    let isFull = false
    for (let i = 0; !isFull; i += 1) {
      const set = redis.set(`filler:${size}:${i}`, 'x'.repeat(size))
      isFull = await set.then(
        () => false,
        () => true,
      )
    }
  }
}

async function rig(prefix: string) {
  const keys = createKeys(prefix)
  const ledger: AccountLedger = await openLedger({
    redis,
    keys,
    account: 'main',
    config: ledgerConfig,
  })
  const siem = aRehearsedSink('siem', { limitPerSecond: 1_000 })
  return {
    keys,
    ledger: ledger,
    siem,
    ...aDeliveryRig({ redis, keys, ledger: ledger, sinks: [siem] }),
  }
}

test('a full Redis takes no page in, and what it holds is delivered all the same', async () => {
  const { ledger, siem, deliver } = await rig('drain')
  const accepted = await takeIn(ledger, [routed({ uid: 'a/b/1' }, ['siem'])])
  const [made] = accepted.status === 'committed' ? accepted.changes : []
  expect(await hasRoom(redis)).toBe(true)
  await fill()
  expect(await hasRoom(redis)).toBe(false)
  await expect(takeIn(ledger, [routed({ uid: 'a/b/2' }, ['siem'])])).rejects.toThrow(/OOM/)
  expect(await deliver(siem, made!.ref)).toEqual({ next: 'done', halves: [] })
  const accounting = await expectConservation(ledger)
  expect(accounting.feeds['brand']).toMatchObject({ fetched: 1 })
  expect(accounting.sinks['siem']).toMatchObject({ created: 1, delivered: 1 })
})

test('300 waiting items are delivered while Redis is full, by a daemon that starts then, too', async () => {
  const { ledger, siem, drains, ...place } = await rig('backlog')
  const events = Array.from({ length: 300 }, (_, i) => routed({ uid: `a/b/${i}` }, ['siem']))
  await takeIn(ledger, events)
  await fill()
  const half = async (): Promise<boolean> => siem.received.length >= 150
  drains.start()
  await drains.reconcileOnce()
  await until('half of it is delivered', half)
  await drains.stop(1_000)
  const again = aDeliveryRig({ redis, keys: place.keys, ledger: ledger, sinks: [siem] })
  again.drains.start()
  await again.drains.reconcileOnce()
  await until('all is delivered', async () => {
    return (await readAccounting(ledger)).sinks['siem']?.delivered === 300
  })
  await again.drains.stop(1_000)
  expect(siem.received).toHaveLength(300)
  await expectConservation(ledger)
})

test('a daemon that starts on a full Redis, with a new account, delivers what waits', async () => {
  const hooks = await startHooks()
  const config = `
redis: {url: '${server.url}', prefix: start, allow_unsafe: true}
http: {port: 0}
accounts: {main: {base_url: 'http://127.0.0.1:9', api_key: fw_sandbox}}
feeds: {brand: {type: events, account: main, identifier_group: 1042, detail: []}}
sinks: {siem: {type: webhook, url: '${hooks.url}', secret: '${'x'.repeat(32)}', allow_private: true}}
route: {sinks: [siem]}
`
  const first = aReplica(config)
  await first.start()
  await first.stop()
  const keys = createKeys('start')
  const ledger = await openLedger({ redis, keys, account: 'main', config: ledgerConfig })
  await takeIn(
    ledger,
    Array.from({ length: 50 }, (_, i) => routed({ uid: `a/b/${i}` }, ['siem'])),
  )
  await fill()
  const added = "umbrella: {base_url: 'http://127.0.0.1:9', api_key: fw_other}"
  const again = aReplica(config.replace('accounts: {', `accounts: {${added}, `))
  await again.start()
  await until('all is delivered', async () => {
    return (await readAccounting(ledger)).sinks['siem']?.delivered === 50
  })
  expect((await expectConservation(ledger)).sinks['siem']).toMatchObject({ delivered: 50 })
  await again.stop()
  await hooks.close()
}, 60_000)

async function startHooks(): Promise<{ url: string; close: () => Promise<void> }> {
  const hooks = createServer((request, answer) => {
    request.resume()
    answer.end('ok')
  })
  hooks.listen(0, '127.0.0.1')
  await once(hooks, 'listening')
  const { port } = hooks.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}/`,
    close: async () => {
      hooks.closeAllConnections()
      await new Promise((resolve) => hooks.close(resolve))
    },
  }
}
