import { expect, test } from 'vitest'
import { readAccounting, type Accounting } from '../../src/store/accounts.ts'
import { startSandbox } from '../../src/sandbox/sandbox.ts'
import { expectConservation } from '../support/ledger.ts'
import { startRedis } from '../support/redis.ts'
import { aReplica, nothingPending, until } from '../support/rehearsal.ts'

test('a sink that is down delays only itself, keeps what it misses, and gets the worst first', async () => {
  const redis = await startRedis()
  const sandbox = await startSandbox({
    organizations: [
      { id: 7, limits: { search: 20, basic: 20 }, keys: [{ key: 'fw_sandbox', tenants: [42] }] },
    ],
  })
  const sink = (name: string): string =>
    `{type: webhook, url: '${sandbox.url}/hooks/${name}', secret: '${sandbox.webhookSecret}', allow_private: true}`
  const replica = aReplica(`
redis: {url: '${redis.url}'}
http: {port: 0}
accounts: {main: {base_url: '${sandbox.url}', link_hosts: [app.example.com], api_key: fw_sandbox, limits: {search: 20, basic: 20}}}
feeds: {brand: {type: events, identifier_group: 1042, detail: [], every: 5s}}
sinks: {down: ${sink('down')}, up: ${sink('up')}}
route: {sinks: [down, up]}
`)
  const arrived = (name: string): string[] =>
    sandbox.received.webhook
      .filter(({ to }) => to === `/hooks/${name}`)
      .flatMap((message) => message.uids)
  const mend = sandbox.faults.add({ on: '/hooks/down', effect: 'status', status: 503 })
  try {
    const { url } = await replica.start()
    const scrape = async (): Promise<string> => (await fetch(`${url}/metrics`)).text()
    sandbox.addEvents(30, { severity: 'low' })
    const worst = sandbox.addEvents(10, { severity: 'critical' }).map(({ uid }) => uid)
    await until('the other sink has everything', () => arrived('up').length === 40)
    await until('the circuit is open', async () =>
      (await scrape()).includes('tocsin_sink_circuit_state{sink="down",state="open"} 1'),
    )
    expect(arrived('down')).toEqual([])
    const accounted = async (): Promise<Accounting['sinks']> =>
      (await readAccounting(replica.ledgers[0]!)).sinks
    await until('what arrived is accounted for', async () => {
      return (await accounted())['up']?.delivered === 40
    })
    const sinks = await accounted()
    expect(sinks['down']).toMatchObject({ created: 40, delivered: 0, dead: 0, unaccounted: 0 })

    mend()
    await until('it gets what it missed', () => arrived('down').length === 40)
    await until('all is settled', () => nothingPending(replica))
    const firstTen = arrived('down').slice(0, 10)
    expect(firstTen.filter((uid) => worst.includes(uid)).length).toBeGreaterThan(5)
    expect(new Set(arrived('down')).size).toBe(40)
    await expectConservation(replica.ledgers[0]!)
  } finally {
    await replica.stop()
    await sandbox.close()
    await redis.stop()
  }
})
