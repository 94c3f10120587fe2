import { expect, test } from 'vitest'
import { expectConservation } from '../support/ledger.ts'
import { nothingPending, until } from '../support/rehearsal.ts'
import { startRig } from '../support/rig.ts'

test('a Redis that crashes and comes back costs no event, and the daemon says how it is meanwhile', async () => {
  await using rig = await startRig({ redis: { mayCrash: true } })
  const { sandbox, server, arrived } = rig
  const received = (): number => new Set(arrived()).size
  const { app, ledger, url, metrics } = await rig.start()
  sandbox.addEvents(15)
  await until('the first events arrive', () => received() === 15)
  await until('the scrape says so', async () => (await metrics()).includes('\ntocsin_redis_up 1\n'))

  await server.kill()
  sandbox.addEvents(25)
  await until('the scrape says so', async () => (await metrics()).includes('tocsin_redis_up 0'))
  expect((await fetch(`${url}/healthz`)).status).toBe(200)
  expect((await fetch(`${url}/readyz`)).status).toBe(503)

  await server.restart()
  await until('the others arrive', () => received() === 40)
  await until('all is settled', () => nothingPending(app))
  expect((await fetch(`${url}/readyz`)).status).toBe(200)
  const { feeds, sinks } = await expectConservation(ledger)
  expect(feeds['brand']).toMatchObject({ new: 40 })
  expect(sinks['siem']).toMatchObject({ created: 40, delivered: 40 })
})
