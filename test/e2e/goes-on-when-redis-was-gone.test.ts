import { expect, test } from 'vitest'
import { readAccounting } from '../../src/store/accounts.ts'
import { startSandbox } from '../../src/sandbox/sandbox.ts'
import { expectConservation } from '../support/ledger.ts'
import { startRedis } from '../support/redis.ts'
import { aReplica, nothingPending, until } from '../support/rehearsal.ts'

test('a Redis that crashes and comes back costs no event, and the daemon says how it is meanwhile', async () => {
  const redis = await startRedis({ mayCrash: true })
  const sandbox = await startSandbox({
    organizations: [
      { id: 7, limits: { search: 20, basic: 20 }, keys: [{ key: 'fw_sandbox', tenants: [42] }] },
    ],
  })
  const replica = aReplica(`
redis: {url: '${redis.url}'}
http: {port: 0}
accounts: {main: {base_url: '${sandbox.url}', link_hosts: [app.example.com], api_key: fw_sandbox, limits: {search: 20, basic: 20}}}
feeds: {brand: {type: events, identifier_group: 1042, detail: [], every: 5s}}
sinks: {siem: {type: webhook, url: '${sandbox.webhookUrl}', secret: '${sandbox.webhookSecret}', allow_private: true}}
route: {sinks: [siem]}
`)
  const received = (): Set<string> =>
    new Set(sandbox.received.webhook.flatMap((message) => message.uids))
  try {
    const { url } = await replica.start()
    sandbox.addEvents(15)
    await until('the first events arrive', () => received().size === 15)

    await redis.kill()
    sandbox.addEvents(25)
    const get = async (path: string): Promise<string> => (await fetch(`${url}${path}`)).text()
    await until('the scrape says so', async () =>
      (await get('/metrics')).includes('tocsin_redis_up 0'),
    )
    expect((await fetch(`${url}/healthz`)).status).toBe(200)
    expect((await fetch(`${url}/readyz`)).status).toBe(503)

    await redis.restart()
    await until('the others arrive', () => received().size === 40)
    await until('all is settled', () => nothingPending(replica))
    expect((await fetch(`${url}/readyz`)).status).toBe(200)
    await expectConservation(replica.ledgers[0]!)
    const { feeds, sinks } = await readAccounting(replica.ledgers[0]!)
    expect(feeds['brand']).toMatchObject({ new: 40 })
    expect(sinks['siem']).toMatchObject({ created: 40, delivered: 40 })
  } finally {
    await replica.stop()
    await sandbox.close()
    await redis.stop()
  }
})
