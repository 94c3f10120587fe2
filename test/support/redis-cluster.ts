/** A Cluster of three masters, each with a replica where a test wants a failover. */
import type { ChildProcess } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import type { RedisConfig } from '../../src/redis/config.ts'
import { secretFromText } from '../../src/lib/config/secret.ts'
import { freePort } from './free-port.ts'
import { endServer, launchServer } from './redis.ts'
import { until } from './rehearsal.ts'

export interface ClusterRig {
  /** The section `redis:`, in one line. */
  yaml: string
  /** The same, as it is understood. */
  config: RedisConfig
  /** SIGKILL for the master that has this key; with replicas resolves when one has taken over. */
  killMasterOf(key: string): Promise<void>
  /** Moves the slot of a key to another master in two steps: nothing of it has moved until the second. */
  beginMoveOf(key: string): Promise<() => Promise<void>>
  /** Nobody has the slot of a key any more: the Cluster is down. Gives it back to whom it was taken from. */
  orphanSlotOf(key: string): Promise<() => Promise<void>>
  /** Whoever was killed comes back. */
  restart(): Promise<void>
  stop(): Promise<void>
}

export interface ClusterRigOptions {
  withReplicas?: boolean
  /** More lines of the redis.conf of the third master. */
  thirdSettings?: string[]
}

interface Node {
  port: number
  busPort: number
  client: Redis
  child: ChildProcess
  launch: () => Promise<ChildProcess>
}

const slots = [
  [0, 5460],
  [5461, 10922],
  [10923, 16383],
] as const

const password = 'rig-pa55word'

export async function startCluster({
  withReplicas = false,
  thirdSettings = [],
}: ClusterRigOptions = {}): Promise<ClusterRig> {
  const folder = mkdtempSync(join(tmpdir(), 'tocsin-cluster-'))
  // where nobody takes over, a node that a busy machine keeps waiting stays well
  const patience = `cluster-node-timeout ${withReplicas ? 1000 : 5000}`
  const masters = await Promise.all(
    slots.map((_range, i) => startNode(folder, [patience, ...(i === 2 ? thirdSettings : [])])),
  )
  const replicas = withReplicas
    ? await Promise.all(masters.map(() => startNode(folder, [patience])))
    : []
  const nodes = [...masters, ...replicas]
  await joinUp(masters, replicas)
  const ownerOf = async (key: string): Promise<Node> => {
    const alive = nodes.filter(({ child }) => child.signalCode === null)
    const slot = await alive[0]!.client.cluster('KEYSLOT', key)
    const ranges = await alive[0]!.client.cluster('SLOTS')
    const range = ranges.find(([from, to]) => from <= slot && slot <= to)
    return nodes.find(({ port }) => port === range?.[2]?.[1])!
  }
  const beginMoveOf = async (key: string): Promise<() => Promise<void>> => {
    const from = await ownerOf(key)
    const to = masters.find(({ port }) => port !== from.port)!
    return beginMove(key, from, to)
  }
  return {
    config: {
      cluster: masters.map(({ port }) => ({ host: '127.0.0.1', port })),
      password: secretFromText(password),
      prefix: 'rig',
      allowUnsafe: false,
    },
    yaml: `{cluster: [${masters.map(({ port }) => `'127.0.0.1:${port}'`).join(', ')}], password: ${password}}`,
    async killMasterOf(key) {
      const owner = await ownerOf(key)
      await endServer(owner.child)
      if (!withReplicas) return
      await until('a replica takes over', async () => (await ownerOf(key)).port !== owner.port)
    },
    beginMoveOf,
    async orphanSlotOf(key) {
      const owner = await ownerOf(key)
      const slot = await owner.client.cluster('KEYSLOT', key)
      const isDown = async ({ client }: Node): Promise<boolean> =>
        (await client.cluster('INFO')).includes('cluster_state:fail')
      for (const { client } of nodes) await client.cluster('DELSLOTS', slot)
      await until('no node is well', async () =>
        (await Promise.all(nodes.map(isDown))).every(Boolean),
      )
      return async () => {
        await owner.client.cluster('ADDSLOTS', slot)
      }
    },
    async restart() {
      for (const node of nodes) {
        if (node.child.signalCode !== null) node.child = await node.launch()
      }
    },
    async stop() {
      for (const { client } of nodes) client.disconnect()
      await Promise.all(nodes.map(({ child }) => endServer(child)))
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

async function startNode(folder: string, settings: string[]): Promise<Node> {
  const [port, busPort] = [await freePort(), await freePort()]
  const home = join(folder, String(port))
  mkdirSync(home)
  const lines = [
    `port ${port}`,
    `cluster-port ${busPort}`,
    'cluster-enabled yes',
    'cluster-replica-validity-factor 0',
    'repl-diskless-sync-delay 0',
    'repl-ping-replica-period 1',
    `requirepass ${password}`,
    `masterauth ${password}`,
    ...settings,
  ]
  const launch = (): Promise<ChildProcess> => launchServer(home, lines)
  const child = await launch()
  const client = new Redis({ port, password, retryStrategy: () => 100 })
  client.on('error', () => {})
  return { port, busPort, client, child, launch }
}

async function joinUp(masters: Node[], replicas: Node[]): Promise<void> {
  const nodes = [...masters, ...replicas]
  for (const [i, { client }] of masters.entries()) {
    await client.cluster('ADDSLOTSRANGE', ...slots[i]!)
    await client.call('CLUSTER', 'SET-CONFIG-EPOCH', i + 1)
  }
  for (const { client } of nodes) {
    for (const { port, busPort } of nodes) {
      await client.call('CLUSTER', 'MEET', '127.0.0.1', port, busPort)
    }
  }
  await until('the nodes know each other', async () => {
    const known = await Promise.all(nodes.map(({ client }) => client.cluster('INFO')))
    return known.every((info) => info.includes(`cluster_known_nodes:${nodes.length}`))
  })
  for (const [i, { client }] of replicas.entries()) {
    await client.cluster('REPLICATE', await masters[i]!.client.cluster('MYID'))
  }
  await until('the cluster is whole', async () => {
    const infos = await Promise.all(nodes.map(({ client }) => client.cluster('INFO')))
    const seen = await Promise.all(nodes.map(({ client }) => client.cluster('SLOTS')))
    const perSlot = replicas.length > 0 ? 4 : 3
    return (
      infos.every((info) => info.includes('cluster_state:ok')) &&
      seen.every((ranges) => ranges.length === 3 && ranges.every((one) => one.length === perSlot))
    )
  })
}

async function beginMove(key: string, from: Node, to: Node): Promise<() => Promise<void>> {
  const slot = await from.client.cluster('KEYSLOT', key)
  const [fromId, toId] = [await from.client.cluster('MYID'), await to.client.cluster('MYID')]
  await to.client.cluster('SETSLOT', slot, 'IMPORTING', fromId)
  await from.client.cluster('SETSLOT', slot, 'MIGRATING', toId)
  return async () => {
    for (;;) {
      const names = (await from.client.cluster('GETKEYSINSLOT', slot, 100)) as string[]
      if (names.length === 0) break
      const what = ['127.0.0.1', to.port, '', 0, 5000, 'AUTH', password, 'KEYS', ...names]
      await from.client.call('MIGRATE', ...what)
    }
    await to.client.cluster('SETSLOT', slot, 'NODE', toId)
    await from.client.cluster('SETSLOT', slot, 'NODE', toId)
  }
}
