import { expect, test } from 'vitest'
import { readAccounting } from '../../src/store/accounts.ts'
import { expectConservation } from '../support/ledger.ts'
import { nothingPending, until } from '../support/rehearsal.ts'
import { startRig } from '../support/rig.ts'

test('a sink that is down delays only itself, keeps what it misses, and gets the worst first', async () => {
  await using rig = await startRig()
  const { sandbox, arrived } = rig
  const mend = sandbox.faults.add({ on: '/hooks/down', effect: 'status', status: 503 })
  const { app, ledger, metrics } = await rig.start(rig.yaml({ sinks: { down: '', up: '' } }))
  sandbox.addEvents(30, { severity: 'low' })
  const worst = sandbox.addEvents(10, { severity: 'critical' }).map(({ uid }) => uid)
  await until('the other sink has everything', () => arrived('up').length === 40)
  await until('the circuit is open', async () =>
    (await metrics()).includes('tocsin_sink_circuit_state{sink="down",state="open"} 1'),
  )
  expect(arrived('down')).toEqual([])
  await until('what arrived is accounted for', async () => {
    return (await readAccounting(ledger)).sinks['up']?.delivered === 40
  })
  const { sinks } = await readAccounting(ledger)
  expect(sinks['down']).toMatchObject({ created: 40, delivered: 0, dead: 0, unaccounted: 0 })

  mend()
  await until('it gets what it missed', () => arrived('down').length === 40)
  await until('all is settled', () => nothingPending(app))
  const firstTen = arrived('down').slice(0, 10)
  expect(firstTen.filter((uid) => worst.includes(uid)).length).toBeGreaterThan(5)
  expect(new Set(arrived('down')).size).toBe(40)
  await expectConservation(ledger)
})
