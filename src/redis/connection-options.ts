/**
 * The configuration as ioredis takes it. Files with addresses, passwords and certificates are read
 * at each call: a connection asks before every try, so that rotated ones take effect.
 */
import { join } from 'node:path'
import { getCACertificates } from 'node:tls'
import { certificateLimits, readFileWithin } from '../lib/config/private-files.ts'
import type { RedisOptions } from 'ioredis'
import type { RedisConfig, SentinelsConfig } from './config.ts'

export const socketName = 'redis.sock'

type Login = Pick<RedisOptions, 'username' | 'password'>
type NodeOptions = Login & Pick<RedisOptions, 'tls'>

type SentinelKey = 'sentinels' | 'sentinelUsername' | 'sentinelPassword' | 'sentinelTLS'
type AddressKey = 'host' | 'port' | 'path' | 'family' | 'db' | 'name' | 'enableTLSForSentinelMode'
export type AddressOptions = NodeOptions & Pick<RedisOptions, AddressKey | SentinelKey>

/** Where Redis is, and how to sign in there; for a Cluster only the latter. */
export function addressOptions(config: RedisConfig): AddressOptions {
  if (config.embedded !== undefined) return { path: join(config.embedded, socketName) }
  if (config.url !== undefined) return urlOptions(config.url.reveal(), config)
  const { sentinels } = config
  return { ...nodeOptions(config), ...(sentinels ? sentinelOptions(sentinels, config) : {}) }
}

/** How to sign in at each node of a Cluster, or at a master that sentinels name. */
export function nodeOptions(config: RedisConfig): NodeOptions {
  return { ...configLogin(config), ...(config.tls === true ? { tls: tlsOptions(config) } : {}) }
}

function urlOptions(text: string, config: RedisConfig): AddressOptions {
  const url = new URL(text)
  const query = url.searchParams
  const db = Number(query.get('db') ?? 0)
  if (url.protocol === 'unix:') {
    return { path: decodeURIComponent(url.pathname), db, ...configLogin(config) }
  }
  return {
    host: url.hostname.replaceAll(/^\[|\]$/g, ''),
    port: Number(url.port || 6379),
    family: Number(query.get('family') ?? 0),
    db: url.pathname.length > 1 ? Number(url.pathname.slice(1)) : db,
    ...(hasLogin(url) ? urlLogin(url) : configLogin(config)),
    ...(url.protocol === 'rediss:' ? { tls: tlsOptions(config) } : {}),
  }
}

function hasLogin({ username, password }: URL): boolean {
  return username !== '' || password !== ''
}

function urlLogin({ username, password }: URL): Login {
  const named = username === '' ? {} : { username: decodeURIComponent(username) }
  return { ...named, password: decodeURIComponent(password) }
}

function configLogin({ username, password }: RedisConfig): Login {
  return {
    ...(username === undefined ? {} : { username }),
    ...(password === undefined ? {} : { password: password.reveal() }),
  }
}

function sentinelOptions(
  { name, nodes, db, username, password }: SentinelsConfig,
  config: RedisConfig,
): AddressOptions {
  return {
    sentinels: nodes.map(({ host, port }) => ({ host, port })),
    name,
    db,
    ...(username === undefined ? {} : { sentinelUsername: username }),
    ...(password === undefined ? {} : { sentinelPassword: password.reveal() }),
    ...(config.tls === true
      ? { sentinelTLS: tlsOptions(config), enableTLSForSentinelMode: true }
      : {}),
  }
}

function tlsOptions({ caFile, certFile, keyFile }: RedisConfig): NonNullable<RedisOptions['tls']> {
  return {
    ...(caFile === undefined ? {} : { ca: readAuthorities(caFile) }),
    ...(certFile === undefined ? {} : { cert: readFileWithin(certFile, certificateLimits) }),
    ...(keyFile === undefined ? {} : { key: readFileWithin(keyFile, certificateLimits) }),
  }
}

/** The authorities of `caFile` in addition to Node's own. */
function readAuthorities(caFile: string): string[] {
  return [...getCACertificates('default'), readFileWithin(caFile, certificateLimits)]
}
