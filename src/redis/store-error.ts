import { messageOf, TocsinError } from '../runtime/errors.ts'
import type { Endpoint, RedisConfig } from './config.ts'

export type StoreReason =
  | 'unreachable' // no connection to Redis
  | 'refused' // it refuses the sign-in or a command
  | 'unsafe' // it can evict or forget
  | 'too_new' // written by a newer version
  | 'out_of_memory'

export class StoreError extends TocsinError {
  override readonly name = 'StoreError'
  readonly code = 'TOCSIN_STORE'
  readonly reason: StoreReason

  constructor(reason: StoreReason, message: string, options: { cause?: unknown } = {}) {
    super(message, { cause: options.cause })
    this.reason = reason
  }
}

/** What Redis says no to for reasons of its own, at its `placeOf`; undefined for anything else. */
export function refusalOf(error: unknown, place: string): StoreError | undefined {
  const said = messageOf(error)
  const [, word = ''] = /(?:^|because )([A-Z]+) /.exec(said) ?? []
  const refused = (problem: string): StoreError =>
    new StoreError('refused', `${place} ${problem}`, { cause: error })
  switch (word) {
    case 'OOM':
      return new StoreError(
        'out_of_memory',
        'Redis has no memory left; raise maxmemory, or make room',
        { cause: error },
      )
    case 'NOAUTH':
      return refused(`asks for a password (NOAUTH); write ${loginRemedy(place)}`)
    case 'WRONGPASS':
      return refused('refuses this user or password (WRONGPASS); correct them')
    case 'MOVED':
    case 'CROSSSLOT':
      return refused('is a node of a Redis Cluster; write redis.cluster: [host:port] instead')
    case 'NOPERM':
    case 'READONLY':
    case 'MISCONF':
    case 'NOREPLICAS':
      return refused(`refuses the command: ${said}`)
    default:
      return undefined
  }
}

function loginRemedy(place: string): string {
  return place.startsWith('redis.url')
    ? 'redis://user:password@host, or :password@'
    : 'redis.password or redis.password_file'
}

/** The key of the file that says where Redis is. */
export function keyOf({ sentinels, cluster, embedded }: RedisConfig): string {
  if (sentinels) return 'redis.sentinels'
  if (cluster) return 'redis.cluster'
  return embedded === undefined ? 'redis.url' : 'redis.embedded'
}

/** As a sentence begins: the key of the file, and where Redis is; never a password. */
export function placeOf(config: RedisConfig): string {
  const { sentinels, cluster, embedded, url } = config
  const key = keyOf(config)
  if (sentinels) return `${key}: Redis "${sentinels.name}" of ${listOf(sentinels.nodes)}`
  if (cluster) return `${key}: the Cluster of ${listOf(cluster)}`
  if (embedded !== undefined) return `${key}: the Redis in ${embedded}`
  return `${key}: Redis at ${addressIn(url?.reveal() ?? '')}`
}

function listOf(nodes: readonly Endpoint[]): string {
  return nodes.map(({ host, port }) => `${host}:${port}`).join(', ')
}

function addressIn(text: string): string {
  const url = URL.parse(text)
  if (url === null) return 'an unreadable address'
  return url.protocol === 'unix:' ? url.pathname : `${url.hostname}:${url.port || '6379'}`
}
