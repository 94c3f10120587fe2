/** A master, its replica and sentinels that fail over within about a second. */
import type { ChildProcess } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import { freePort } from './free-port.ts'
import { endServer, launchSentinel, launchServer } from './redis.ts'
import { until } from './rehearsal.ts'

export interface SentinelRig {
  /** The section `redis:`, in one line. */
  yaml: string
  /** A connection to whoever is master by now; the rig's own. */
  master: Redis
  /** SIGKILL; resolves when the sentinels have named another master, with when it was killed. */
  killMaster(): Promise<number>
  /** A failover in which the old master stays alive, as a replica. */
  demoteMaster(): Promise<void>
  /** Whoever was killed comes back, as a replica. */
  restart(): Promise<void>
  stop(): Promise<void>
}

export interface SentinelRigOptions {
  sentinels?: number
}

/** A sentinel that had no processor for two seconds does nothing for half a minute. */
const failoverMs = 90_000

const password = 'rig-pa55word'
const sentinelPassword = 'sentinel-pa55word'

interface Node {
  port: number
  child: ChildProcess
  launch: () => Promise<ChildProcess>
}

export async function startSentinels({
  sentinels: count = 1,
}: SentinelRigOptions = {}): Promise<SentinelRig> {
  const folder = mkdtempSync(join(tmpdir(), 'tocsin-sentinel-'))
  const first = await startNode(folder, [])
  const replicaOf = [`replicaof 127.0.0.1 ${first.port}`]
  const nodes = [first, await startNode(folder, replicaOf)]
  const sentinels = await Promise.all(
    Array.from({ length: count }, (_none, i) => startSentinel(folder, i, first.port, count)),
  )
  const addresses = sentinels.map(({ port }) => `127.0.0.1:${port}`)
  const asked = new Redis({ port: sentinels[0]!.port, password: sentinelPassword })
  const master = new Redis({
    sentinels: sentinels.map(({ port }) => ({ host: '127.0.0.1', port })),
    name: 'rig',
    password,
    sentinelPassword,
    maxRetriesPerRequest: null,
    retryStrategy: () => 100,
    sentinelRetryStrategy: () => 100,
  })
  for (const client of [asked, master]) client.on('error', () => {})
  const masterPort = async (): Promise<number> =>
    Number(((await asked.call('SENTINEL', 'get-master-addr-by-name', 'rig')) as string[])[1])
  const another = (port: number): Promise<void> =>
    until('another master is named', async () => (await masterPort()) !== port, failoverMs)
  await until('the replica is in step', async () =>
    (await master.info('replication')).includes('state=online'),
  )
  await until(
    'the sentinel knows the replica',
    async () => ((await asked.call('SENTINEL', 'replicas', 'rig')) as unknown[]).length === 1,
  )
  return {
    yaml: `{sentinels: {name: rig, nodes: ['${addresses.join("', '")}'], password: ${sentinelPassword}}, password: ${password}}`,
    master,
    async killMaster() {
      const port = await masterPort()
      await endServer(nodes.find((node) => node.port === port)!.child)
      const killedMs = Date.now()
      await another(port)
      return killedMs
    },
    async demoteMaster() {
      const port = await masterPort()
      await asked.call('SENTINEL', 'failover', 'rig')
      await another(port)
    },
    async restart() {
      for (const node of nodes) {
        if (node.child.signalCode !== null) node.child = await node.launch()
      }
    },
    async stop() {
      asked.disconnect()
      master.disconnect()
      await Promise.all([...nodes, ...sentinels].map(({ child }) => endServer(child)))
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

async function startNode(folder: string, settings: string[]): Promise<Node> {
  const port = await freePort()
  const home = join(folder, String(port))
  mkdirSync(home)
  const login = [`requirepass ${password}`, `masterauth ${password}`]
  const quick = ['repl-diskless-sync-delay 0', 'repl-ping-replica-period 1']
  const lines = [`port ${port}`, ...login, ...quick, ...settings]
  const launch = (): Promise<ChildProcess> => launchServer(home, lines)
  return { port, launch, child: await launch() }
}

async function startSentinel(
  folder: string,
  index: number,
  masterPort: number,
  count: number,
): Promise<{ port: number; child: ChildProcess }> {
  const port = await freePort()
  const child = await launchSentinel(join(folder, `sentinel-${index}.conf`), [
    `port ${port}`,
    'bind 127.0.0.1',
    `dir ${folder}`,
    `requirepass ${sentinelPassword}`,
    `sentinel monitor rig 127.0.0.1 ${masterPort} ${Math.floor(count / 2) + 1}`,
    `sentinel auth-pass rig ${password}`,
    'sentinel down-after-milliseconds rig 500',
    'sentinel failover-timeout rig 3000',
  ])
  return { port, child }
}
