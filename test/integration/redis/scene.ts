/** The whole daemon on a Redis of some kind: what goes in, what arrives, what the ledgers say. */
import { expect } from 'vitest'
import type { App } from '../../../src/daemon/daemon.ts'
import { readAccounting } from '../../../src/store/accounts.ts'
import type { Logger } from '../../../src/lib/logger.ts'
import { startSandbox, type Sandbox } from '../../../src/sandbox/sandbox.ts'
import { expectConservation } from '../../support/ledger.ts'
import { aReplica, nothingPending, until } from '../../support/rehearsal.ts'

export interface Scene {
  sandbox: Sandbox
  replica: App
  /** The configuration, for a command beside the daemon. */
  yaml: string
  /** Where /healthz is. */
  url: string
  /** How many different events have arrived. */
  arrived(): number
  /** Until that many have arrived, and the ledgers agree. */
  settled(count: number): Promise<void>
  stop(): Promise<void>
}

export async function aScene(redis: string, logger?: Logger): Promise<Scene> {
  const sandbox = await startSandbox({
    organizations: [
      { id: 7, limits: { search: 50, basic: 50 }, keys: [{ key: 'fw_sandbox', tenants: [42] }] },
    ],
  })
  const yaml = `
redis: ${redis}
http: {port: 0}
accounts: {main: {base_url: '${sandbox.url}', link_hosts: [app.example.com], api_key: fw_sandbox, limits: {search: 50, basic: 50}}}
feeds: {brand: {type: events, identifier_group: 1042, detail: [], every: 5s}}
sinks: {siem: {type: webhook, url: '${sandbox.webhookUrl}', secret: '${sandbox.webhookSecret}', allow_private: true}}
route: {sinks: [siem]}
`
  const replica = aReplica(yaml, logger)
  const arrived = (): number =>
    new Set(sandbox.received.webhook.flatMap((message) => message.uids)).size
  const { url } = await replica.start()
  return {
    sandbox,
    replica,
    yaml,
    url,
    arrived,
    async settled(count) {
      await until(`${count} events arrive`, () => arrived() === count)
      await until('all is settled', () => nothingPending(replica))
      await expectConservation(replica.ledgers[0]!)
      const { feeds, sinks } = await readAccounting(replica.ledgers[0]!)
      expect(feeds['brand']).toMatchObject({ new: count })
      expect(sinks['siem']).toMatchObject({ created: count, delivered: count })
    },
    async stop() {
      await replica.stop()
      await sandbox.close()
    },
  }
}
