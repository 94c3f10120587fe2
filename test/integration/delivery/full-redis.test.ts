import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, test } from 'vitest'
import { readAccounting } from '../../../src/store/accounts.ts'
import { hasRoom } from '../../../src/redis/health.ts'
import { createKeys } from '../../../src/redis/keys.ts'
import { aDeliveryRig } from '../../support/delivery.ts'
import {
  expectConservation,
  redisForTests,
  routed,
  takeIn,
  whileFull,
} from '../../support/ledger.ts'
import { aRehearsedSink } from '../../support/rehearsed-sink.ts'
import { aReplica, until } from '../../support/rehearsal.ts'

const tests = redisForTests()

async function rig() {
  const { redis } = tests
  const keys = tests.keys()
  const ledger = await tests.ledger({ keys })
  const siem = aRehearsedSink('siem', { limitPerSecond: 1_000 })
  return {
    keys,
    ledger: ledger,
    siem,
    ...aDeliveryRig({ redis, keys, ledger: ledger, sinks: [siem] }),
  }
}

test('a full Redis takes no page in, and what it holds is delivered all the same', async () => {
  const { redis } = tests
  const { ledger, siem, deliver } = await rig()
  const accepted = await takeIn(ledger, [routed({ uid: 'a/b/1' }, ['siem'])])
  const [made] = accepted.status === 'committed' ? accepted.changes : []
  expect(await hasRoom(redis)).toBe(true)
  await whileFull(redis, async () => {
    expect(await hasRoom(redis)).toBe(false)
    await expect(takeIn(ledger, [routed({ uid: 'a/b/2' }, ['siem'])])).rejects.toThrow(/OOM/)
    expect(await deliver(siem, made!.ref)).toEqual({ next: 'done', halves: [] })
  })
  const accounting = await expectConservation(ledger)
  expect(accounting.feeds['brand']).toMatchObject({ fetched: 1 })
  expect(accounting.sinks['siem']).toMatchObject({ created: 1, delivered: 1 })
})

test('a daemon that starts on a full Redis, with a new account, delivers what waits', async () => {
  const hooks = await startHooks()
  const config = `
redis: {url: '${tests.server.url}', prefix: start, allow_unsafe: true}
http: {port: 0}
accounts: {main: {base_url: 'http://127.0.0.1:9', api_key: fw_sandbox}}
feeds: {brand: {type: events, account: main, identifier_group: 1042, detail: []}}
sinks: {siem: {type: webhook, url: '${hooks.url}', secret: '${'x'.repeat(32)}', allow_private: true}}
route: {sinks: [siem]}
`
  const first = aReplica(config)
  await first.start()
  await first.stop()
  const ledger = await tests.ledger({ keys: createKeys('start') })
  await takeIn(
    ledger,
    Array.from({ length: 50 }, (_, i) => routed({ uid: `a/b/${i}` }, ['siem'])),
  )
  const added = "umbrella: {base_url: 'http://127.0.0.1:9', api_key: fw_other}"
  const again = aReplica(config.replace('accounts: {', `accounts: {${added}, `))
  await whileFull(tests.redis, async () => {
    await again.start()
    await until('all is delivered', async () => {
      return (await readAccounting(ledger)).sinks['siem']?.delivered === 50
    })
    expect((await expectConservation(ledger)).sinks['siem']).toMatchObject({ delivered: 50 })
    await again.stop()
  })
  await hooks.close()
})

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
