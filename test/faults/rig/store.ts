/** The Redis of a chaos run: one behind a proxy, a master with Sentinels, or a Cluster. */
import { setTimeout as sleep } from 'node:timers/promises'
import { parseConfig } from '../../../src/config/load.ts'
import type { Redis } from '../../../src/redis/client.ts'
import { connectRedis } from '../../../src/redis/connection.ts'
import { silent } from '../../support/ledger.ts'
import { startCluster } from '../../support/redis-cluster.ts'
import { startSentinels, type SentinelRig } from '../../support/redis-sentinel.ts'
import { startRedis } from '../../support/redis.ts'
import { until } from '../../support/until.ts'
import { startTcpProxy, type TcpProxy } from './tcp-proxy.ts'

/** One with `appendfsync everysec` or `always`; or several. */
export type StoreKind = 'everysec' | 'always' | 'sentinel' | 'cluster'

export interface Store {
  /** The `redis:` section of the replicas' configuration. */
  section: string
  /** The rig's own connection, past the proxy. */
  client: Redis
  /** Before a single server; undefined where there are several. */
  proxy: TcpProxy | undefined
  /** SIGKILL of the server, or of a master; it is back on its data when this resolves. */
  crash(awayMs: number): Promise<void>
  /** When acknowledged writes were lost, or may have been (a failover): wall clock ms. */
  lossesMs: readonly number[]
  stop(): Promise<void>
}

export function startStore(kind: StoreKind): Promise<Store> {
  switch (kind) {
    case 'everysec':
    case 'always':
      return single(kind)
    case 'sentinel':
      return withSentinels()
    case 'cluster':
      return ofSeveral()
  }
}

async function single(appendfsync: 'everysec' | 'always'): Promise<Store> {
  const server = await startRedis({ mayCrash: true, settings: [`appendfsync ${appendfsync}`] })
  const proxy = await startTcpProxy(server.port)
  const client = clientOf(`{url: '${server.url}'}`)
  const lossesMs: number[] = []
  return {
    section: `{url: 'redis://127.0.0.1:${proxy.port}'}`,
    client,
    proxy,
    async crash(awayMs) {
      // with everysec Redis answers before it writes while the disk is busy: then the last answers were not true
      const answered = await client.incr('witness')
      await server.kill()
      const atMs = Date.now()
      await sleep(awayMs)
      await server.restart()
      if (Number(await client.get('witness')) < answered) lossesMs.push(atMs)
    },
    lossesMs,
    async stop() {
      client.disconnect()
      await proxy.stop()
      await server.stop()
    },
  }
}

async function withSentinels(): Promise<Store> {
  const rig = await startSentinels()
  const client = clientOf(rig.yaml)
  const lossesMs: number[] = []
  return {
    section: rig.yaml,
    client,
    proxy: undefined,
    async crash(awayMs) {
      lossesMs.push(await rig.killMaster())
      await sleep(awayMs)
      await rig.restart()
      // otherwise the next failover would choose one that knows nothing yet
      await until('the replica is in step', () => isInStep(rig.master))
    },
    lossesMs,
    async stop() {
      client.disconnect()
      await rig.stop()
    },
  }
}

async function isInStep(master: SentinelRig['master']): Promise<boolean> {
  return (await master.info('replication')).includes('state=online')
}

async function ofSeveral(): Promise<Store> {
  const rig = await startCluster()
  const client = clientOf(rig.yaml)
  let crashes = 0
  return {
    section: rig.yaml,
    client,
    proxy: undefined,
    async crash(awayMs) {
      // the ledger's master and the queues' in turn
      await rig.killMasterOf(crashes++ % 2 === 0 ? '{tocsin:main}' : '{tocsin}')
      await sleep(awayMs)
      await rig.restart()
    },
    lossesMs: [],
    async stop() {
      client.disconnect()
      await rig.stop()
    },
  }
}

function clientOf(section: string): Redis {
  const yaml = `
redis: ${section}
accounts: {main: {base_url: 'http://127.0.0.1:9', api_key: none}}
feeds: {brand: {type: events, identifier_group: 1, detail: []}}
sinks: {soc: {type: slack, url: 'https://slack.example.com/a'}}
route: {sinks: [soc]}
`
  const { config } = parseConfig(yaml, { file: 'rig.yaml', env: {} })
  return connectRedis(config.redis, silent)
}
