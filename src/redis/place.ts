/** Where Redis is, in words: for messages and the log. Loads nothing, as `--help` comes by here. */
import type { Endpoint, RedisConfig } from './config.ts'

/** The configuration key that says where Redis is. */
export function redisConfigKey({ sentinels, cluster, embedded }: RedisConfig): string {
  if (sentinels) return 'redis.sentinels'
  if (cluster) return 'redis.cluster'
  return embedded === undefined ? 'redis.url' : 'redis.embedded'
}

/** The beginning of a sentence: the configuration key and where Redis is, without the password. */
export function describeRedis(config: RedisConfig): string {
  const { sentinels, cluster, embedded, url } = config
  const key = redisConfigKey(config)
  if (sentinels) return `${key}: Redis "${sentinels.name}" of ${formatEndpoints(sentinels.nodes)}`
  if (cluster) return `${key}: the Cluster of ${formatEndpoints(cluster)}`
  if (embedded !== undefined) return `${key}: the Redis in ${embedded}`
  return `${key}: Redis at ${formatAddress(url?.reveal() ?? '')}`
}

function formatEndpoints(nodes: readonly Endpoint[]): string {
  return nodes.map(({ host, port }) => `${host}:${port}`).join(', ')
}

function formatAddress(text: string): string {
  const url = URL.parse(text)
  if (url === null) return 'an unreadable address'
  return url.protocol === 'unix:' ? url.pathname : `${url.hostname}:${url.port || '6379'}`
}
