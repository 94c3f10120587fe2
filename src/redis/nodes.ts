/** What has to be asked of every node, since a Cluster sends a command without a key to any of them. */
import type { Cluster, Redis as IORedis } from 'ioredis'
import type { Redis } from './connection.ts'

export interface NodeInfo {
  /** host:port of one of several; undefined for one that is the only one. */
  node: string | undefined
  field: (name: string) => string | undefined
}

export async function infoOfMasters(redis: Redis): Promise<NodeInfo[]> {
  if (isCluster(redis)) {
    return Promise.all((await mastersOf(redis)).map((node) => infoOf(node, nameOf(node))))
  }
  const info = await infoOf(redis, undefined)
  const { remoteAddress, remotePort } = redis.stream
  return [redis.options.sentinels ? { ...info, node: `${remoteAddress}:${remotePort}` } : info]
}

/** Of those that answer soon, behind sentinels and in a Cluster: any of them may be master next. */
export async function infoOfReplicas(redis: Redis): Promise<NodeInfo[]> {
  const replicas = isCluster(redis) ? clusterReplicas(redis) : await watchedReplicas(redis)
  const infos = replicas.map(async (node) => {
    node.on('error', () => {}) // it is left out
    try {
      return [await infoOf(node, nameOf(node))]
    } catch {
      return []
    } finally {
      node.disconnect()
    }
  })
  return (await Promise.all(infos)).flat()
}

/** Of connections that are for one question. */
const shortly = {
  retryStrategy: () => null,
  connectTimeout: 1_000,
  commandTimeout: 1_000,
  enableReadyCheck: false,
}

function clusterReplicas(cluster: Cluster): IORedis[] {
  return cluster.nodes('slave').map((node) => node.duplicate(shortly))
}

/** Of the master whom sentinels name, as it knows them itself. */
async function watchedReplicas(master: IORedis): Promise<IORedis[]> {
  const { sentinels, username, password, tls } = master.options
  if (!sentinels) return []
  const { Redis: One } = await import('ioredis')
  const { field } = await infoOf(master, undefined)
  const login = { username: username ?? '', password: password ?? '' }
  const found: IORedis[] = []
  for (let i = 0; ; i += 1) {
    const [, host, port] = /ip=([^,]+),port=(\d+)/.exec(field(`slave${i}`) ?? '') ?? []
    if (host === undefined) return found
    const address = { host, port: Number(port), ...(tls === undefined ? {} : { tls }) }
    found.push(new One({ ...shortly, ...login, ...address }))
  }
}

/** Names of keys by a pattern, in portions, after which the caller may pause; some are empty, some names come twice. */
export async function* scanKeys(redis: Redis, pattern: string): AsyncGenerator<string[]> {
  for (const node of await mastersOf(redis)) {
    let cursor = '0'
    do {
      const [next, names] = await node.scan(cursor, 'MATCH', pattern, 'COUNT', 500)
      cursor = next
      yield names
    } while (cursor !== '0')
  }
}

/** A server as it runs now: started again, it is another one to whoever keeps a cursor. */
export interface MasterId {
  name: string
  run: string
  node: IORedis
}

export async function masterIds(redis: Redis): Promise<MasterId[]> {
  return Promise.all(
    (await mastersOf(redis)).map(async (node) => {
      const { field } = await infoOf(node, undefined)
      const name = isCluster(redis) ? nameOf(node) : 'master'
      return { name, run: field('run_id') ?? '', node }
    }),
  )
}

/** One step of a scan that its caller paces and resumes; the cursor 0 begins and ends it. */
export async function scanNode(
  node: IORedis,
  pattern: string,
  { cursor, count }: { cursor: string; count: number },
): Promise<{ cursor: string; names: string[] }> {
  const [next, names] = await node.scan(cursor, 'MATCH', pattern, 'COUNT', count)
  return { cursor: next, names }
}

function isCluster(redis: Redis): redis is Cluster {
  return redis.isCluster
}

async function mastersOf(redis: Redis): Promise<IORedis[]> {
  if (!isCluster(redis)) return [redis]
  await redis.ping() // the nodes are known once one has answered
  return redis.nodes('master')
}

async function infoOf(node: IORedis, name: string | undefined): Promise<NodeInfo> {
  const info = await node.info()
  return { node: name, field: (key) => new RegExp(`^${key}:(.*?)\r?$`, 'm').exec(info)?.[1] }
}

function nameOf({ options: { host, port } }: IORedis): string {
  return `${host}:${port}`
}
